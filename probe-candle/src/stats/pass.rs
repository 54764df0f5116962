//! One pass over the elements on the processor, in f64.

use candle_core::{CpuStorage, Error, Layout, Result, WithDType};

use super::TensorStats;
use super::walk::{Run, runs};

/// Squares of f64 values beyond these leave the range of f64 or its full precision; then a second
/// pass works on the values divided by the greatest.
const SQUARABLE: std::ops::RangeInclusive<f64> = 1e-140..=1e150;

/// The statistics of what a layout shows of a storage.
///
/// # Errors
///
/// The element type has no arithmetic.
pub(super) fn over(storage: &CpuStorage, layout: &Layout) -> Result<TensorStats> {
    let float = |greatest: f64| (Some(-greatest), greatest);
    Ok(match storage {
        CpuStorage::U8(elements) => of(elements, layout, (None, u8::MAX.into())),
        CpuStorage::U32(elements) => of(elements, layout, (None, u32::MAX.into())),
        CpuStorage::I16(elements) => of(elements, layout, (Some(i16::MIN.into()), i16::MAX.into())),
        CpuStorage::I32(elements) => of(elements, layout, (Some(i32::MIN.into()), i32::MAX.into())),
        CpuStorage::I64(elements) => {
            // The greatest is rounded up, and comes back from f64 as the greatest.
            of(elements, layout, (Some(i64::MIN as f64), i64::MAX as f64))
        }
        CpuStorage::BF16(elements) => of(elements, layout, float(BF16_MAX)),
        CpuStorage::F16(elements) => of(elements, layout, float(65_504.0)),
        CpuStorage::F32(elements) => of(elements, layout, float(f32::MAX.into())),
        CpuStorage::F64(elements) => of(elements, layout, float(f64::MAX)),
        CpuStorage::F8E4M3(elements) => {
            // Not `WithDType::to_f64`: of this type it calls itself without end (candle 0.11).
            over_with(elements, layout, float(448.0), |element| element.to_f32().into())
        }
        CpuStorage::F6E2M3(_)
        | CpuStorage::F6E3M2(_)
        | CpuStorage::F4(_)
        | CpuStorage::F8E8M0(_) => {
            let dtype = candle_core::backend::BackendStorage::dtype(storage);
            return Err(Error::UnsupportedDTypeForOp(dtype, "statistics").bt());
        }
    })
}

/// 2^128 less its last bit: the eight leading bits of an f32 are kept.
const BF16_MAX: f64 = 3.389_531_389_251_535_5e38;

/// What the pass adds up.
struct Sums {
    nan: u64,
    positive_inf: u64,
    negative_inf: u64,
    zeros: u64,
    saturated: u64,
    finite: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Sums {
    const EMPTY: Self = Self {
        nan: 0,
        positive_inf: 0,
        negative_inf: 0,
        zeros: 0,
        saturated: 0,
        finite: 0,
        sum: 0.0,
        squares: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
    };

    #[inline(always)]
    fn add(&mut self, value: f64, saturated: bool) {
        if !value.is_finite() {
            self.add_other(value);
            return;
        }
        self.finite += 1;
        self.sum += value;
        self.squares += value * value;
        self.min = if value < self.min { value } else { self.min };
        self.max = if value > self.max { value } else { self.max };
        self.zeros += u64::from(value == 0.0);
        self.saturated += u64::from(saturated);
    }

    #[cold]
    fn add_other(&mut self, value: f64) {
        if value.is_nan() {
            self.nan += 1;
        } else if value > 0.0 {
            self.positive_inf += 1;
        } else {
            self.negative_inf += 1;
        }
    }
}

/// An element is saturated that is the greatest finite value of its type or the least: `(least,
/// greatest)`. The least of an unsigned type is zero, and counts as that alone.
fn of<T: WithDType>(elements: &[T], layout: &Layout, ends: (Option<f64>, f64)) -> TensorStats {
    over_with(elements, layout, ends, T::to_f64)
}

/// The same, with the conversion to f64.
#[inline(always)]
fn over_with<T: WithDType>(
    elements: &[T],
    layout: &Layout,
    (least, greatest): (Option<f64>, f64),
    wide: impl Fn(T) -> f64 + Copy,
) -> TensorStats {
    let (least, greatest) = (least.map(T::from_f64), T::from_f64(greatest));
    let mut sums = Sums::EMPTY;
    each(elements, layout, |element| {
        let at_least = least.is_some_and(|least| element == least);
        sums.add(wide(element), at_least || element == greatest);
    });

    let count = sums.finite as f64;
    let abs_max = sums.max.max(-sums.min).max(0.0);
    let (mut mean, mut rms) = (sums.sum / count, (sums.squares / count).sqrt());
    let mut norm = sums.squares.sqrt();
    if abs_max > 0.0 && !SQUARABLE.contains(&abs_max) {
        let (sum, squares) = scaled(elements, layout, abs_max, wide);
        (mean, rms) = (sum / count * abs_max, (squares / count).sqrt() * abs_max);
        norm = squares.sqrt() * abs_max;
    }
    let any = |value: f64| if sums.finite > 0 { value + 0.0 } else { 0.0 };
    TensorStats {
        count: sums.finite + sums.nan + sums.positive_inf + sums.negative_inf,
        nan: sums.nan,
        positive_inf: sums.positive_inf,
        negative_inf: sums.negative_inf,
        rms: any(rms),
        abs_max: any(abs_max),
        mean: any(mean),
        min: any(sums.min),
        max: any(sums.max),
        zeros: sums.zeros,
        saturated: sums.saturated,
        norm: any(norm),
    }
}

/// The sums of the finite values and of their squares, in units of the greatest of them.
#[cold]
fn scaled<T: Copy>(
    elements: &[T],
    layout: &Layout,
    unit: f64,
    wide: impl Fn(T) -> f64,
) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    each(elements, layout, |element| {
        let value = wide(element);
        if value.is_finite() {
            sum += value / unit;
            squares += (value / unit) * (value / unit);
        }
    });
    (sum, squares)
}

/// Hands every element that the layout shows to `f`.
#[inline(always)]
fn each<T: Copy>(elements: &[T], layout: &Layout, mut f: impl FnMut(T)) {
    runs(layout, &mut |Run { start, stride, len }| {
        let Some(from) = elements.get(start..) else { return };
        if stride == 1 {
            from.iter().take(len).for_each(|&element| f(element));
        } else {
            let strided = (0..len).filter_map(|at| from.get(at * stride));
            strided.for_each(|&element| f(element));
        }
    });
}
