//! What is in a tensor: one pass over its elements.

mod block;
mod element;
mod pass;
mod reduced;
mod vectors;
mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

use candle_core::{DType, Device, Result, Storage, Tensor};
use tmrun_probe_core::{Range, Stats};

use pass::SQUARABLE;
use vectors::Vectors;

/// Statistics of the elements of a tensor. Everything after the counts of NaN and infinities is over
/// the finite elements, and 0 where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TensorStats {
    /// How many elements there are, finite or not; one that a broadcast repeats counts each time.
    pub count: u64,
    /// NaN elements.
    pub nan: u64,
    /// Elements that are positive infinity.
    pub positive_inf: u64,
    /// Elements that are negative infinity.
    pub negative_inf: u64,
    /// Root of the mean square.
    pub rms: f64,
    /// Greatest absolute value.
    pub abs_max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Elements that are zero.
    pub zeros: u64,
    /// Elements that are the greatest value of their type or, where it is signed, the least.
    pub saturated: u64,
    /// Root of the sum of the squares.
    pub norm: f64,
}

impl TensorStats {
    /// The statistics of a tensor, computed in f64. Every element type with arithmetic is taken;
    /// 64-bit integers are rounded to f64. Counts, least, greatest and the greatest absolute value
    /// are exact; subnormals are not zero.
    ///
    /// What it waits for: on the processor one pass over the elements (two for f64 values whose
    /// squares do not fit f64), on the calling thread, without an allocation, under the storage's read
    /// lock. Elements that a broadcast repeats are read once. The result is the same, bit for bit,
    /// whatever vector unit the processor has and however many threads there are; the sums are
    /// compensated, so that with *u* = 2⁻⁵³ the mean is within 66 *u* times the mean of the absolute
    /// values, and the root mean square and the norm within 36 *u* of themselves, however many
    /// elements there are.
    ///
    /// On CUDA it waits for all work that the tensor depends on. The numbers are candle's reductions:
    /// five in f64 and one copy of five numbers to the host. Elements that are not finite, or at an
    /// end of their type, or that cannot be squared in f64, take another round of reductions and
    /// another copy each. Meanwhile the device holds one to three copies of the elements in f64, and
    /// five where some are not finite. The counts, least and greatest are the same; a sum of *n* elements is
    /// within *n u* of the sum of their absolute values. What reductions cannot do (64-bit
    /// integers at the ends of their range, types that the device does not convert) and everything
    /// on Metal, which has no f64, is copied to the host.
    ///
    /// # Errors
    ///
    /// The element type has no arithmetic (the 4- and 6-bit floats and the scale type), or an
    /// accelerator refused. Never on the processor otherwise.
    pub fn of(tensor: &Tensor) -> Result<Self> {
        if tensor.device().is_cuda()
            && let Ok(Some(stats)) = reduced::over(tensor)
        {
            return Ok(stats);
        }
        if !tensor.device().is_cpu() {
            // A view is made dense first: what is copied is the whole storage.
            return Self::of(&tensor.detach().contiguous()?.to_device(&Device::Cpu)?);
        }
        let (storage, layout) = tensor.storage_and_layout();
        match &*storage {
            Storage::Cpu(storage) => pass::over(storage, layout, Vectors::widest()),
            Storage::Cuda(_) | Storage::Metal(_) => {
                candle_core::bail!("a tensor on the processor has a storage on an accelerator")
            }
        }
    }

    /// The norm alone, on CUDA: one reduction in f64, of which eight bytes are read back. It is infinite
    /// or NaN when an element is. Only f64 values whose squares do not fit take all of [`Self::of`].
    pub(crate) fn reduced_norm(tensor: &Tensor) -> Result<f64> {
        let norm = reduced::norm(tensor)?;
        if tensor.dtype() != DType::F64 || (norm.is_normal() && SQUARABLE.contains(&norm)) {
            return Ok(norm);
        }
        let stats = Self::of(tensor)?;
        Ok(if stats.non_finite() > 0 { f64::NAN } else { stats.norm })
    }

    /// Elements that are not finite.
    pub const fn non_finite(&self) -> u64 {
        self.nan + self.positive_inf + self.negative_inf
    }

    /// The first half, as it is recorded.
    pub fn to_stats(&self) -> Stats {
        Stats {
            count: self.count,
            nan: saturating(self.nan),
            inf: saturating(self.positive_inf + self.negative_inf),
            rms: self.rms,
            abs_max: self.abs_max,
            mean: self.mean,
        }
    }

    /// The second half, as it is recorded.
    pub fn to_range(&self) -> Range {
        Range {
            min: self.min,
            max: self.max,
            zeros: self.zeros,
            saturated: self.saturated,
            positive_inf: saturating(self.positive_inf),
            non_finite: saturating(self.non_finite()),
        }
    }
}

fn saturating(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
