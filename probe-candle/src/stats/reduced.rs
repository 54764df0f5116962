//! Statistics by candle's own reductions: what is not in the processor's memory is not copied there.
//!
//! Everything is looked at in f64, which holds every element as the pass sees it. Candle's least and
//! greatest do not tell NaN, and its sum of one is NaN: that is how it is noticed, and only then are
//! the finite elements told from the others. All numbers of a round are read back as one tensor.

use candle_core::{D, DType, Result, Tensor};

use super::TensorStats;
use super::pass::{Finite, power_of_two};

/// Reductions begin in as many rows at most: candle's CUDA gives every row to one block of threads.
const ROWS: usize = 1024;

/// The statistics of elements that are not saturated at the ends of i64, whose f64 is that of others
/// too: then there is none.
///
/// # Errors
///
/// The device cannot convert the elements to f64, or an operation failed.
pub(super) fn over(tensor: &Tensor) -> Result<Option<TensorStats>> {
    let count = tensor.elem_count();
    if count == 0 {
        return Ok(Some(TensorStats::default()));
    }
    let values = rows(tensor)?;
    let zero = count_of(&values.eq(0.0)?)?;
    let [sum, squares, min, max, zeros] =
        read([sum(&values)?, sum(&values.sqr()?)?, min(&values)?, max(&values)?, zero])?;

    let mut stats =
        TensorStats { count: count as u64, zeros: zeros as u64, ..TensorStats::default() };
    let mut finite = Finite { count: count as u64, min, max, sum, squares, unit: 1.0 };
    let mut values = values;
    if !sum.is_finite() {
        (values, finite) = finite_of(&values, &mut stats)?;
    }
    if finite.count > 0 && !finite.is_squarable() {
        finite.unit = power_of_two(finite.abs_max());
        // Not `values / unit`, which multiplies by what one divided by it is rounded to.
        let unit = Tensor::new(finite.unit, values.device())?;
        let scaled = values.broadcast_div(&unit)?;
        [finite.sum, finite.squares] = read([self::sum(&scaled)?, self::sum(&scaled.sqr()?)?])?;
    }
    if let Some((top, bottom)) = ends(tensor.dtype()) {
        let bottom = bottom.unwrap_or(f64::NEG_INFINITY);
        if finite.count > 0 && (finite.max >= top || finite.min <= bottom) {
            if tensor.dtype() == DType::I64 {
                return Ok(None);
            }
            let (at_top, at_bottom) = (values.eq(top)?, values.eq(bottom)?);
            let [at_top, at_bottom] = read([count_of(&at_top)?, count_of(&at_bottom)?])?;
            stats.saturated = (at_top + at_bottom) as u64;
        }
    }
    Ok(Some(finite.stats(1, stats)))
}

/// The root of the sum of the squares; infinite or NaN when an element is, and out of range when the
/// squares are.
pub(super) fn norm(tensor: &Tensor) -> Result<f64> {
    if tensor.elem_count() == 0 {
        return Ok(0.0);
    }
    let [squares] = read([sum(&rows(tensor)?.sqr()?)?])?;
    Ok(squares.sqrt())
}

/// The elements with zeros in the place of those that are not finite, and what is known of them;
/// those are counted.
fn finite_of(values: &Tensor, stats: &mut TensorStats) -> Result<(Tensor, Finite)> {
    let is_finite = values.abs()?.le(f64::MAX)?;
    let others = |other: f64| values.zeros_like()? + other;
    let kept = is_finite.where_cond(values, &values.zeros_like()?)?;
    let low = is_finite.where_cond(values, &others(f64::INFINITY)?)?;
    let high = is_finite.where_cond(values, &others(f64::NEG_INFINITY)?)?;
    let [sum, squares, min, max, count, positive_inf, negative_inf] = read([
        sum(&kept)?,
        sum(&kept.sqr()?)?,
        min(&low)?,
        max(&high)?,
        count_of(&is_finite)?,
        count_of(&values.eq(f64::INFINITY)?)?,
        count_of(&values.eq(f64::NEG_INFINITY)?)?,
    ])?;
    let count = count as u64;
    stats.positive_inf = positive_inf as u64;
    stats.negative_inf = negative_inf as u64;
    stats.nan = stats.count - count - stats.positive_inf - stats.negative_inf;
    Ok((kept, Finite { count, min, max, sum, squares, unit: 1.0 }))
}

/// All elements in f64, as rows: as many as a power of two divides them into.
fn rows(tensor: &Tensor) -> Result<Tensor> {
    let rows = 1 << tensor.elem_count().trailing_zeros().min(ROWS.ilog2());
    let mut values = tensor.detach();
    if values.dtype() == DType::F8E4M3 {
        // Not at once: on the processor candle 0.11 never comes back from that.
        values = values.to_dtype(DType::F32)?;
    }
    values.to_dtype(DType::F64)?.reshape((rows, ()))
}

fn sum(rows: &Tensor) -> Result<Tensor> {
    rows.sum(D::Minus1)?.sum(0)
}

fn min(rows: &Tensor) -> Result<Tensor> {
    rows.min(D::Minus1)?.min(0)
}

fn max(rows: &Tensor) -> Result<Tensor> {
    rows.max(D::Minus1)?.max(0)
}

/// How many places of a mask are set. (Candle adds up bytes in bytes.)
fn count_of(mask: &Tensor) -> Result<Tensor> {
    sum(&mask.to_dtype(DType::F64)?)
}

/// Scalars, in one copy to the host: this waits.
fn read<const N: usize>(scalars: [Tensor; N]) -> Result<[f64; N]> {
    let read = Tensor::stack(&scalars, 0)?.to_vec1::<f64>()?;
    read.try_into().map_err(|_| candle_core::Error::msg("as many numbers as were stacked").bt())
}

/// The greatest finite value of a type and, if it is signed, the least.
fn ends(dtype: DType) -> Option<(f64, Option<f64>)> {
    let signed = |top: f64| Some((top, Some(-top)));
    match dtype {
        DType::F64 => signed(f64::MAX),
        DType::F32 => signed(f32::MAX.into()),
        DType::F16 => signed(half::f16::MAX.into()),
        DType::BF16 => signed(half::bf16::MAX.into()),
        DType::F8E4M3 => signed(448.0),
        DType::U8 => Some((u8::MAX.into(), None)),
        DType::U32 => Some((u32::MAX.into(), None)),
        DType::I16 => Some((i16::MAX.into(), Some(i16::MIN.into()))),
        DType::I32 => Some((i32::MAX.into(), Some(i32::MIN.into()))),
        DType::I64 => Some((i64::MAX as f64, Some(i64::MIN as f64))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    fn assert_agree(tensor: &Tensor) -> Result<()> {
        let pass = TensorStats::of(tensor)?;
        let Some(found) = over(tensor)? else { panic!("{tensor:?} has no reductions") };
        let exact = TensorStats { rms: pass.rms, norm: pass.norm, mean: pass.mean, ..found };
        assert_eq!(exact, pass, "{tensor:?}");
        // Whatever the order of the additions; a subnormal result is rounded in its last place.
        let close = |found: f64, pass: f64, scale: f64| {
            let bound = (pass_len(tensor) + 80.0) * f64::EPSILON / 2.0 * scale + 1e-322;
            assert!(found == pass || (found - pass).abs() <= bound, "{found} {pass} {tensor:?}");
        };
        close(found.rms, pass.rms, pass.rms);
        close(found.norm, pass.norm, pass.norm);
        close(found.mean, pass.mean, pass.rms);
        Ok(())
    }

    fn pass_len(tensor: &Tensor) -> f64 {
        tensor.elem_count() as f64
    }

    #[test]
    fn reductions_and_the_pass_agree() -> Result<()> {
        let edges = [0.0, -0.0, 1.0, -3.0, 1e-3, 65_504.0, 448.0, -448.0, 255.0, 32_767.0];
        let others = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let ends = [f64::MAX, f64::MIN, 5e-324, 1e-300, 3.4e38, 1e200];
        let samples: [&[f64]; 8] = [
            &edges,
            &[&edges[..], &others].concat(),
            &[&edges[..], &others, &ends].concat(),
            &others,
            &[f64::NAN],
            &[5e-324, 1e-310, 0.0],
            &[f64::MAX],
            &[],
        ];
        let types = [
            DType::F64,
            DType::F32,
            DType::F16,
            DType::BF16,
            DType::F8E4M3,
            DType::U8,
            DType::U32,
            DType::I16,
            DType::I32,
        ];
        for sample in samples {
            for len in [1, 7, 64, 2048] {
                let values: Vec<f64> = sample.iter().copied().cycle().take(len).collect();
                let values = Tensor::new(values, &Device::Cpu)?;
                for dtype in types {
                    let tensor = values.to_dtype(dtype)?;
                    assert_agree(&tensor)?;
                    if tensor.elem_count() == 64 {
                        let tensor = tensor.reshape((8, ()))?;
                        assert_agree(&tensor.t()?)?;
                        assert_agree(&tensor.narrow(0, 2, 1)?.broadcast_as(tensor.shape())?)?;
                    }
                }
            }
        }
        assert_agree(&Tensor::new(7f32, &Device::Cpu)?)
    }

    #[test]
    fn integers_of_64_bits_agree_or_have_no_reductions() -> Result<()> {
        assert_agree(&Tensor::new(&[3i64, -5, 0, i64::MAX / 2], &Device::Cpu)?)?;
        for end in [i64::MAX, i64::MIN, i64::MAX - 1] {
            assert_eq!(over(&Tensor::new(&[3i64, end], &Device::Cpu)?)?, None);
        }
        Ok(())
    }

    #[test]
    fn a_norm_is_that_of_the_pass() -> Result<()> {
        let values: Vec<f32> = (0..5000).map(|at| (at % 77) as f32 - 38.0).collect();
        let tensor = Tensor::new(values, &Device::Cpu)?;
        let (found, pass) = (norm(&tensor)?, TensorStats::of(&tensor)?.norm);
        assert!((found / pass - 1.0).abs() < 1e-12, "{found} {pass}");
        Ok(())
    }
}
