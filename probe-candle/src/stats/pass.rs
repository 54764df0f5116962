//! One pass over the elements on the processor.

use candle_core::{CpuStorage, Error, Layout, Result};

use super::TensorStats;
use super::block::{BLOCK, Sums};
use super::element::{Element, Wide};
use super::vectors::{Vectorised, Vectors};
use super::walk::{Run, runs};

/// Squares of f64 values beyond these leave the range of f64 or its full precision, or the sum of as many
/// as memory holds does; then a second pass works on the values in units of about the greatest.
pub(super) const SQUARABLE: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// The statistics of what a layout shows of a storage.
///
/// # Errors
///
/// The element type has no arithmetic.
pub(super) fn over(storage: &CpuStorage, layout: &Layout, vectors: Vectors) -> Result<TensorStats> {
    Ok(match storage {
        CpuStorage::U8(elements) => of(elements, layout, vectors),
        CpuStorage::U32(elements) => of(elements, layout, vectors),
        CpuStorage::I16(elements) => of(elements, layout, vectors),
        CpuStorage::I32(elements) => of(elements, layout, vectors),
        CpuStorage::I64(elements) => of(elements, layout, vectors),
        CpuStorage::BF16(elements) => of(elements, layout, vectors),
        CpuStorage::F16(elements) => of(elements, layout, vectors),
        CpuStorage::F32(elements) => of(elements, layout, vectors),
        CpuStorage::F64(elements) => of(elements, layout, vectors),
        CpuStorage::F8E4M3(elements) => of(elements, layout, vectors),
        CpuStorage::F6E2M3(_)
        | CpuStorage::F6E3M2(_)
        | CpuStorage::F4(_)
        | CpuStorage::F8E8M0(_) => {
            let dtype = candle_core::backend::BackendStorage::dtype(storage);
            return Err(Error::UnsupportedDTypeForOp(dtype, "statistics").bt());
        }
    })
}

fn of<E: Vectorised>(elements: &[E], layout: &Layout, vectors: Vectors) -> TensorStats {
    let mut sums = Sums::EMPTY;
    let repeats = each(elements, layout, |elements| E::add(vectors, elements, &mut sums));

    let of_finite = Finite {
        count: sums.count - sums.nan - sums.positive_inf - sums.negative_inf,
        min: sums.min(),
        max: sums.max(),
        sum: sums.sum(),
        squares: sums.squares(),
        unit: 1.0,
    };
    let of_finite = if of_finite.is_squarable() {
        of_finite
    } else {
        let unit = power_of_two(of_finite.abs_max());
        let sums = scaled(elements, layout, unit, vectors);
        Finite { sum: sums.sum(), squares: sums.squares(), unit, ..of_finite }
    };
    let shown = |count: u64| count.saturating_mul(repeats);
    of_finite.stats(
        repeats,
        TensorStats {
            count: shown(sums.count),
            nan: shown(sums.nan),
            positive_inf: shown(sums.positive_inf),
            negative_inf: shown(sums.negative_inf),
            zeros: shown(sums.zeros),
            saturated: shown(sums.saturated),
            ..TensorStats::default()
        },
    )
}

/// What is known of the finite elements; the sums are in units, and units squared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finite {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) sum: f64,
    pub(super) squares: f64,
    pub(super) unit: f64,
}

impl Finite {
    pub(super) fn abs_max(&self) -> f64 {
        self.max.max(-self.min).max(0.0)
    }

    /// Whether the squares of the values can be added up as they are.
    pub(super) fn is_squarable(&self) -> bool {
        let abs_max = self.abs_max();
        self.count == 0 || abs_max == 0.0 || SQUARABLE.contains(&abs_max)
    }

    /// The statistics, with the counts that are given, when all elements are shown so many times.
    pub(super) fn stats(&self, repeats: u64, counts: TensorStats) -> TensorStats {
        if self.count == 0 {
            return counts;
        }
        let (count, abs_max) = (self.count as f64, self.abs_max());
        // Rounding does not lead beyond what no mean is beyond. Zero has no sign here.
        TensorStats {
            rms: ((self.squares / count).sqrt() * self.unit).min(abs_max),
            abs_max,
            mean: (self.sum / count * self.unit).clamp(self.min, self.max) + 0.0,
            min: self.min + 0.0,
            max: self.max + 0.0,
            norm: self.squares.sqrt() * (repeats as f64).sqrt() * self.unit,
            ..counts
        }
    }
}

/// The greatest power of two that is not greater: dividing by it does not round.
pub(super) fn power_of_two(value: f64) -> f64 {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = value.abs().to_bits();
    f64::from_bits(match bits >> MANTISSA {
        0 => 1 << bits.checked_ilog2().unwrap_or(0),
        exponent => exponent << MANTISSA,
    })
}

/// The sums of the finite elements, in units.
#[cold]
fn scaled<E: Element>(elements: &[E], layout: &Layout, unit: f64, vectors: Vectors) -> Sums<f64> {
    let mut sums = Sums::EMPTY;
    each(elements, layout, |elements| {
        for elements in elements.chunks(BLOCK) {
            let mut values = [0.0; BLOCK];
            for (place, element) in values.iter_mut().zip(elements) {
                let value = element.wide();
                *place = if value.is_finite() { value.to_f64() / unit } else { 0.0 };
            }
            f64::add(vectors, values.get(..elements.len()).unwrap_or(&values), &mut sums);
        }
    });
    sums
}

/// Hands the elements that the layout shows to `add`, each once, in slices of whole blocks but for the
/// last, and returns how often all of that is shown.
fn each<E: Element>(elements: &[E], layout: &Layout, mut add: impl FnMut(&[E])) -> u64 {
    if let Some((start, end)) = layout.contiguous_offsets() {
        add(elements.get(start..end).unwrap_or_default());
        return 1;
    }
    gathered(elements, layout, add)
}

/// Fewer elements are copied sooner one by one than by asking how.
const SHORT: usize = 16;

/// The same for what does not lie together: short runs become blocks.
fn gathered<E: Element>(elements: &[E], layout: &Layout, mut add: impl FnMut(&[E])) -> u64 {
    let mut block = [E::ZERO; BLOCK];
    let mut len = 0;
    let repeats = runs(layout, &mut |Run { start, stride, len: mut left }| {
        let Some(mut from) = elements.get(start..) else { return };
        while left > 0 {
            if stride == 1 && len == 0 && left >= BLOCK {
                let (whole, rest) = from.split_at((left - left % BLOCK).min(from.len()));
                add(whole);
                (from, left) = (rest, left % BLOCK);
                continue;
            }
            let count = left.min(BLOCK - len);
            let places = block.get_mut(len..len + count).unwrap_or_default();
            if stride == 1 && count > SHORT {
                places.iter_mut().zip(from).for_each(|(place, &element)| *place = element);
            } else {
                for (at, place) in places.iter_mut().enumerate() {
                    if let Some(&element) = from.get(at * stride) {
                        *place = element;
                    }
                }
            }
            from = from.get(count * stride..).unwrap_or_default();
            (len, left) = (len + count, left - count);
            if len == BLOCK {
                add(&block);
                len = 0;
            }
        }
    });
    add(block.get(..len).unwrap_or_default());
    repeats
}
