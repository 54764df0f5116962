//! `cargo bench -p tmrun-probe-candle --bench statistics`: what a tensor's statistics cost, beside a plain
//! sum of the same bytes, a sum of the same elements in f64, and the same numbers from candle's
//! operations. One thread, all of it in turn in the same rounds; ratios of medians.

use std::error::Error;
use std::hint::black_box;

use candle_core::{DType, Device, Result, Tensor};
use tmrun_benches::{Better, Case, Row, Table, measure};
use tmrun_probe_candle::TensorStats;

const ROUNDS: usize = 41;

/// What is measured, and how many elements it has.
const TENSORS: [(&str, DType, usize); 7] = [
    ("4,096 f32", DType::F32, 4096),
    ("65,536 f32", DType::F32, 1 << 16),
    ("1 M f32", DType::F32, 1 << 20),
    ("16 M f32", DType::F32, 1 << 24),
    ("1 M bf16", DType::BF16, 1 << 20),
    ("1 M f16", DType::F16, 1 << 20),
    ("1 M f64", DType::F64, 1 << 20),
];

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut table = Table::default();
    for (name, dtype, len) in TENSORS {
        rows(&mut table, name, dtype, len)?;
    }
    views(&mut table)?;
    print!("{table}");
    Ok(())
}

fn rows(table: &mut Table, name: &str, dtype: DType, len: usize) -> Result<()> {
    let values: Vec<f32> = (0..len).map(value).collect();
    let tensor = Tensor::from_slice(&values, len, &Device::Cpu)?.to_dtype(dtype)?;
    let bytes = len * dtype.size_in_bytes();
    // The plain sum is always one of f32: of as many bytes.
    let same_bytes: Vec<f32> = (0..bytes / 4).map(value).collect();
    let calls = ((1 << 21) / len as u64).max(1);
    let [ours, sum, wide, candle] = measure(
        [
            repeated("statistics", || {
                black_box(TensorStats::of(black_box(&tensor)).ok());
            }),
            repeated("a plain sum", || {
                black_box(plain_sum(black_box(&same_bytes)));
            }),
            repeated("a sum in f64", || {
                black_box(wide_sum(black_box(&values)));
            }),
            repeated("candle's operations", || {
                black_box(by_operations(black_box(&tensor)).ok());
            }),
        ],
        ROUNDS,
        calls,
    );
    let what = format!("statistics of {name}");
    let row = Row::speed(&*what, ours, "a plain sum of the same bytes", sum);
    table.push(Row { reach: Some(0.8), ..row });
    if dtype == DType::F32 {
        table.push(Row::speed(&*what, ours, "a sum of the same elements in f64", wide));
    }
    let row = Row::speed(&*what, ours, "mean, rms, abs-max, min, max by candle", candle);
    table.push(Row { reach: Some(5.0), ..row });
    for (what, cost) in [(&*what, ours), ("the plain sum", sum)] {
        let gigabytes = bytes as f64 / cost.median;
        let row = Row::new(what, "a gigabyte a second", gigabytes);
        table.push(Row { better: Better::Higher, ..row });
    }
    Ok(())
}

/// What does not lie together, beside what does.
fn views(table: &mut Table) -> Result<()> {
    let values: Vec<f32> = (0..1 << 20).map(value).collect();
    let dense = Tensor::from_vec(values, (1024, 1024), &Device::Cpu)?;
    let (transposed, rows) = (dense.t()?, dense.narrow(1, 3, 1000)?);
    let short = dense.reshape((1 << 16, 16))?.narrow(1, 1, 7)?;
    let column = dense.reshape((1 << 17, 8))?.narrow(1, 1, 1)?;
    let broadcast = dense.narrow(0, 0, 1)?.broadcast_as((1024, 1024))?;
    let mut hurt = dense.flatten_all()?.to_vec1::<f32>()?;
    hurt.iter_mut().step_by(500).for_each(|value| *value = f32::NEG_INFINITY);
    let hurt = Tensor::from_vec(hurt, 1 << 20, &Device::Cpu)?;
    let views = [
        ("transposed", &transposed),
        ("rows of 1,000 out of 1,024", &rows),
        ("runs of 7 out of 16", &short),
        ("one element of 8", &column),
        ("a row, broadcast", &broadcast),
        ("an infinity in every block", &hurt),
    ];
    for (name, view) in views {
        let [cost, one] = measure(
            [view, &dense].map(|tensor| {
                repeated(name, move || {
                    black_box(TensorStats::of(black_box(tensor)).ok());
                })
            }),
            ROUNDS,
            2,
        );
        let share = view.elem_count() as f64 / dense.elem_count() as f64;
        let row = Row::new(
            format!("statistics of f32, {name}: an element"),
            "an element of a dense tensor",
            cost.median / one.median / share,
        );
        table.push(row);
    }
    Ok(())
}

fn value(at: usize) -> f32 {
    // No zeros, no pattern that a predictor learns.
    (at.wrapping_mul(0x9e37_79b9) % 2003) as f32 * 1e-3 - 1.0005
}

fn repeated<'a>(name: &'static str, mut once: impl FnMut() + 'a) -> Case<'a> {
    Case::new(name, move |calls| (0..calls).for_each(|_| once()))
}

/// Without the counts.
fn by_operations(tensor: &Tensor) -> Result<[f64; 5]> {
    // The sums of floats of 16 bits overflow.
    let dtype = tensor.dtype();
    let tensor = if dtype == DType::F64 { tensor.clone() } else { tensor.to_dtype(DType::F32)? };
    let read = |scalar: Tensor| scalar.to_dtype(DType::F64)?.to_scalar::<f64>();
    Ok([
        read(tensor.mean_all()?)?,
        read(tensor.sqr()?.mean_all()?.sqrt()?)?,
        read(tensor.abs()?.max_all()?)?,
        read(tensor.min_all()?)?,
        read(tensor.max_all()?)?,
    ])
}

/// Functions that do the same with the widest vectors that there are.
macro_rules! widest {
    ($name:ident, $portable:ident, $result:ty) => {
        fn $name(values: &[f32]) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512(values: &[f32]) -> $result {
                    $portable(values)
                }
                #[target_feature(enable = "avx2")]
                fn avx2(values: &[f32]) -> $result {
                    $portable(values)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the feature.
                    return unsafe { avx512(values) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the feature.
                    return unsafe { avx2(values) };
                }
            }
            $portable(values)
        }
    };
}
widest!(plain_sum, lanes_of_f32, f32);
widest!(wide_sum, lanes_of_f64, f64);

#[inline(always)]
fn lanes_of_f32(values: &[f32]) -> f32 {
    let mut lanes = [0.0; 64];
    let (chunks, rest) = values.as_chunks::<64>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().chain(rest).sum()
}

#[inline(always)]
fn lanes_of_f64(values: &[f32]) -> f64 {
    let mut lanes = [0.0; 32];
    let (chunks, rest) = values.as_chunks::<32>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&value| f64::from(value)).sum::<f64>()
}
