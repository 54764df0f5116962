//! What is in a tensor: one pass over its elements.

mod block;
mod element;
mod pass;
mod vectors;
mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

use candle_core::{Device, Result, Storage, Tensor};
use tmrun_probe_core::{Range, Stats};

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
    /// 64-bit integers are rounded to f64.
    ///
    /// What it waits for: on the processor one pass over the elements (two for f64 values whose
    /// squares do not fit f64), without an allocation, under the storage's read lock. On an
    /// accelerator it waits for all work that the tensor depends on, and copies it to the host.
    ///
    /// # Errors
    ///
    /// The element type has no arithmetic (the 4- and 6-bit floats and the scale type), or an
    /// accelerator refused the copy. Never on the processor otherwise.
    pub fn of(tensor: &Tensor) -> Result<Self> {
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
