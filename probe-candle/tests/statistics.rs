//! Statistics against a plain reference: over every element type, layout and sort of value.

use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, DType, Device, Result, Storage, Tensor, WithDType};
use tmrun_probe_candle::TensorStats;

/// What the statistics should be, computed the obvious way from candle's own dense copy.
fn reference<T: WithDType>(tensor: &Tensor, top: T, bottom: Option<T>) -> Result<TensorStats> {
    // (candle 0.11 panics when it copies some views that show nothing.)
    let elements = match tensor.elem_count() {
        0 => Vec::new(),
        _ => tensor.flatten_all()?.to_vec1::<T>()?,
    };
    let all: Vec<f64> = elements.iter().map(|element| element.to_f64()).collect();
    let count =
        |test: &dyn Fn(f64) -> bool| all.iter().filter(|&&value| test(value)).count() as u64;
    let saturated = |element: &&T| **element == top || bottom == Some(**element);
    let mut stats = TensorStats {
        count: all.len() as u64,
        nan: count(&f64::is_nan),
        positive_inf: count(&|value| value == f64::INFINITY),
        negative_inf: count(&|value| value == f64::NEG_INFINITY),
        zeros: count(&|value| value == 0.0),
        saturated: elements.iter().filter(saturated).count() as u64,
        ..TensorStats::default()
    };
    let finite: Vec<f64> = all.into_iter().filter(|value| value.is_finite()).collect();
    let Some(abs_max) = finite.iter().map(|value| value.abs()).reduce(f64::max) else {
        return Ok(stats);
    };
    // In units of the greatest value nothing overflows, and what underflows does not count.
    let unit = if abs_max > 0.0 { abs_max } else { 1.0 };
    let sum = |of: &dyn Fn(f64) -> f64| finite.iter().map(|&value| of(value / unit)).sum::<f64>();
    let (n, squares) = (finite.len() as f64, sum(&|value| value * value));
    stats.abs_max = abs_max;
    stats.rms = (squares / n).sqrt() * unit;
    stats.norm = squares.sqrt() * unit;
    stats.mean = sum(&|value| value) / n * unit;
    stats.min = finite.iter().copied().fold(f64::INFINITY, f64::min);
    stats.max = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(stats)
}

#[track_caller]
fn assert_agree(found: &TensorStats, expected: &TensorStats, of: &Tensor) {
    let exact =
        TensorStats { rms: expected.rms, norm: expected.norm, mean: expected.mean, ..*found };
    assert_eq!(exact, *expected, "{of:?}");
    // Rounding, and nothing else: of the sums relative to what was added up, and of a subnormal
    // result in its last places.
    let close = |a: f64, b: f64, scale: f64| a == b || (a - b).abs() <= scale * 1e-12 + 1e-322;
    assert!(close(found.rms, expected.rms, expected.rms), "{found:?} {expected:?}");
    assert!(close(found.norm, expected.norm, expected.norm), "{found:?} {expected:?}");
    assert!(close(found.mean, expected.mean, expected.rms), "{found:?} {expected:?}");
}

/// A small generator: the tests are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.next() as usize % values.len()]
    }

    /// Between −1 and 1.
    fn unit(&mut self) -> f64 {
        self.next() as i64 as f64 / i64::MAX as f64
    }
}

/// Tensors of this shape: ordinary values, and every mixture of the values that go wrong.
fn samples<T: WithDType>(random: &mut Random, top: f64, shape: &[usize]) -> Result<Vec<Tensor>> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        top,
        -top,
        1e-45,
        -1e-40,
        6e-8,
        1e-40,
        5e-324,
        1e-310,
        1e-180,
        1e300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let finite = &edges[..14];
    let only_small = &edges[6..13];
    let n = shape.iter().product::<usize>();
    let mut tensor = |value: &mut dyn FnMut(&mut Random) -> f64| {
        let elements: Vec<T> = (0..n).map(|_| T::from_f64(value(random))).collect();
        Tensor::from_vec(elements, shape, &Device::Cpu)
    };
    Ok(vec![
        tensor(&mut |random| random.unit() * 100.0)?,
        tensor(&mut |random| {
            if random.next() % 8 == 0 { random.of(&edges) } else { random.unit() }
        })?,
        tensor(&mut |random| random.of(&edges))?,
        tensor(&mut |random| random.of(finite))?,
        tensor(&mut |random| random.of(only_small))?,
        tensor(&mut |random| random.of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]))?,
        tensor(&mut |_| f64::NAN)?,
        tensor(&mut |_| 0.0)?,
        tensor(&mut |_| top)?,
        tensor(&mut |_| -top)?,
    ])
}

/// The tensor, and views of it: transposed, narrowed with an offset, broadcast, single elements.
fn views(tensor: &Tensor) -> Result<Vec<Tensor>> {
    let mut views = vec![tensor.clone()];
    for dim in 0..tensor.rank() {
        let len = tensor.dim(dim)?;
        views.push(tensor.narrow(dim, len / 2, len - len / 2)?);
        views.push(tensor.narrow(dim, 0, 0)?);
        if len > 0 {
            let one = tensor.narrow(dim, len - 1, 1)?;
            let mut wider = one.dims().to_vec();
            wider[dim] = 4;
            views.extend([one.broadcast_as(wider)?, one.squeeze(dim)?, one]);
        }
    }
    if tensor.rank() >= 2 {
        let transposed = tensor.t()?;
        let len = transposed.dim(0)?;
        views.extend([transposed.narrow(0, len / 3, len - len / 3)?, transposed]);
    }
    views.push(tensor.unsqueeze(0)?.broadcast_left(2)?);
    Ok(views)
}

fn holds_for<T: WithDType>(top: T, bottom: Option<T>) -> Result<()> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let shapes: [&[usize]; 11] = [
        &[],
        &[1],
        &[0],
        &[2, 0, 3],
        &[257],
        &[7, 5],
        &[3, 4, 5],
        &[2, 1, 3, 2, 2, 1, 3],
        // Beyond blocks of 1024: rows longer than one, and rows that do not divide one.
        &[3, 1500],
        &[65, 33],
        &[4, 3, 257],
    ];
    for shape in shapes {
        for tensor in samples::<T>(&mut random, top.to_f64(), shape)? {
            for view in views(&tensor)? {
                let expected = reference(&view, top, bottom)?;
                assert_agree(&TensorStats::of(&view)?, &expected, &view);
            }
        }
    }
    Ok(())
}

#[test]
fn floats_agree() -> Result<()> {
    holds_for(f64::MAX, Some(f64::MIN))?;
    holds_for(f32::MAX, Some(f32::MIN))
}

#[test]
fn floats_of_16_bits_agree() -> Result<()> {
    holds_for(half::f16::MAX, Some(half::f16::MIN))?;
    holds_for(half::bf16::MAX, Some(half::bf16::MIN))
}

#[test]
fn integers_agree() -> Result<()> {
    holds_for(u8::MAX, None)?;
    holds_for(u32::MAX, None)?;
    holds_for(i16::MAX, Some(i16::MIN))?;
    holds_for(i32::MAX, Some(i32::MIN))?;
    holds_for(i64::MAX, Some(i64::MIN))
}

#[test]
fn floats_of_8_bits_agree() -> Result<()> {
    let all: Vec<f32> = (0..=255).map(|byte| byte as f32 * 4.0 - 512.0).collect();
    let tensor = Tensor::from_vec(all, 256, &Device::Cpu)?.to_dtype(DType::F8E4M3)?;
    let (found, wide) =
        (TensorStats::of(&tensor)?, TensorStats::of(&tensor.to_dtype(DType::F32)?)?);
    assert_eq!(TensorStats { saturated: 0, ..found }, wide);
    assert!(found.saturated > 1 && found.abs_max == 448.0, "{found:?}");
    Ok(())
}

#[test]
fn types_without_arithmetic_are_refused() -> Result<()> {
    let storage = CpuStorage::F4(vec![0; 4]);
    let tensor = Tensor::from_storage(Storage::Cpu(storage), 8, BackpropOp::none(), false);
    assert!(TensorStats::of(&tensor).is_err());
    Ok(())
}

#[test]
fn a_nan_is_found_wherever_it_is() -> Result<()> {
    // Up to three blocks of 1024, and what is left over of one.
    for len in (1..40).chain([1023, 1024, 1025, 2048, 3072, 3089]) {
        let tensor = |values: &[f32]| Tensor::from_slice(values, len, &Device::Cpu);
        let mut values = vec![-2f32; len];
        for at in 0..len {
            for planted in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                values[at] = planted;
                let stats = TensorStats::of(&tensor(&values)?)?;
                values[at] = -2.0;
                let found = (stats.nan, stats.positive_inf, stats.negative_inf);
                let expected = match planted {
                    f32::INFINITY => (0, 1, 0),
                    f32::NEG_INFINITY => (0, 0, 1),
                    _ => (1, 0, 0),
                };
                assert_eq!(found, expected, "at {at} of {len}");
                let rest = if len == 1 { (0.0, 0.0) } else { (2.0, -2.0) };
                assert_eq!((stats.abs_max, stats.mean), rest, "at {at} of {len}");
            }
        }
    }
    Ok(())
}

/// A sum in two parts, which hold some 106 bits of it.
#[derive(Default)]
struct Exact(f64, f64);

impl Exact {
    fn add(&mut self, value: f64) {
        let sum = self.0 + value;
        let of_value = sum - self.0;
        let lost = (self.0 - (sum - of_value)) + (value - of_value);
        let low = self.1 + lost;
        self.0 = sum + low;
        self.1 = low - (self.0 - sum);
    }

    /// The product rounded, and what that took from it.
    fn add_square(&mut self, value: f64) {
        let square = value * value;
        self.add(square);
        self.add(value.mul_add(value, -square));
    }

    /// How far `found` times `scale` is from this.
    fn distance(&self, found: f64, scale: f64) -> f64 {
        let product = found * scale;
        ((product - self.0) - self.1 + found.mul_add(scale, -product)).abs()
    }
}

/// The unit of rounding in f64.
const U: f64 = f64::EPSILON / 2.0;

/// The bounds that [`TensorStats::of`] states. Returns by how many times a plain sum would miss that of
/// the mean.
fn bounds_hold(values: Vec<f64>) -> Result<f64> {
    let count = values.len() as f64;
    let (mut sum, mut squares, mut absolute) = Default::default();
    for &value in &values {
        Exact::add(&mut sum, value);
        Exact::add_square(&mut squares, value);
        Exact::add(&mut absolute, value.abs());
    }
    let bound = 66.0 * U * absolute.0;
    let plain = sum.distance(values.iter().fold(0.0, |sum, value| sum + value), 1.0) / bound;
    let stats = TensorStats::of(&Tensor::new(values, &Device::Cpu)?)?;
    let off = sum.distance(stats.mean, count);
    assert!(off <= bound, "the mean is {off} off, allowed is {bound}: {stats:?}");
    // Of a square, an error counts twice.
    for (root, of) in [(stats.rms, count), (stats.norm, 1.0)] {
        let off = squares.distance(root * root, of) / squares.0;
        assert!(off <= 73.0 * U, "a root is {off} off: {stats:?}");
    }
    Ok(plain)
}

#[test]
fn sums_are_within_their_bounds() -> Result<()> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let n = 300_000;
    let mut worst = 0f64;
    for sample in [
        vec![0.1; n],
        (0..n).map(|at| 1.0 / (at + 1) as f64).collect(),
        (0..n).map(|_| random.unit()).collect(),
        (0..n).map(|_| random.unit() * 10f64.powi((random.next() % 30) as i32)).collect(),
        // One great value among many that vanish beside it one by one.
        (0..n).map(|at| if at == 0 { 1e16 } else { 0.7 }).collect(),
        // Great values that cancel.
        (0..n).map(|at| [1e15 + 0.3, 0.1, -1e15, 0.7][at % 4]).collect(),
        (0..1500).map(|_| random.unit()).collect(),
        vec![0.1; 3],
    ] {
        worst = worst.max(bounds_hold(sample)?);
    }
    assert!(worst > 10.0, "a plain sum would do: {worst}");
    Ok(())
}

#[test]
fn values_whose_squares_do_not_fit_are_scaled() -> Result<()> {
    let huge = TensorStats::of(&Tensor::new(&[3e200, 4e200], &Device::Cpu)?)?;
    assert!((huge.norm / 5e200 - 1.0).abs() < 1e-15, "{huge:?}");
    let sum = TensorStats::of(&Tensor::new(&[f64::MAX, f64::MAX], &Device::Cpu)?)?;
    assert_eq!((sum.mean, sum.rms, sum.saturated), (f64::MAX, f64::MAX, 2));
    let tiny = TensorStats::of(&Tensor::new(&[5e-324, 0.0], &Device::Cpu)?)?;
    assert_eq!((tiny.norm, tiny.abs_max, tiny.zeros), (5e-324, 5e-324, 1));
    Ok(())
}

#[test]
fn what_is_recorded_is_both_halves_of_the_statistics() -> Result<()> {
    let values = [1f32, -3., 0., f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX];
    let stats = TensorStats::of(&Tensor::new(&values, &Device::Cpu)?)?;
    let (first, second) = (stats.to_stats(), stats.to_range());
    assert_eq!((first.count, first.nan, first.inf), (7, 1, 2));
    assert_eq!((second.min, second.max), (-3.0, f32::MAX.into()));
    assert_eq!((second.zeros, second.saturated), (1, 1));
    assert_eq!((second.positive_inf, second.non_finite), (1, 3));
    Ok(())
}

#[test]
fn statistics_are_the_same_every_time_and_on_every_thread() -> Result<()> {
    let mut random = Random(77);
    let values: Vec<f32> = (0..100_003).map(|_| random.unit() as f32).collect();
    let tensor = Tensor::from_vec(values, 100_003, &Device::Cpu)?;
    let first = TensorStats::of(&tensor)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| TensorStats::of(&tensor))).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no panic")?, first);
        }
        Ok(())
    })
}
