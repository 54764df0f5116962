//! What became of gradients.

use candle_core::{Result, Tensor};
use tmrun_probe_core::GradientState;

use crate::stats::TensorStats;

/// What became of the gradients of one update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GradientCounts {
    /// Finite and not zero.
    pub present: usize,
    /// Not there: the parameter is cut off from the loss.
    pub missing: usize,
    /// There, and zero everywhere.
    pub zero: usize,
    /// There, and NaN or infinity is in it.
    pub non_finite: usize,
}

/// A gradient, looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradient {
    /// What became of it.
    pub state: GradientState,
    /// Its norm, when it is finite.
    pub norm: Option<f64>,
}

impl GradientCounts {
    pub(crate) fn add(&mut self, state: GradientState) {
        let count = match state {
            GradientState::MISSING => &mut self.missing,
            GradientState::ZERO => &mut self.zero,
            GradientState::NON_FINITE => &mut self.non_finite,
            _ => &mut self.present,
        };
        *count += 1;
    }
}

impl Gradient {
    /// Looks at a gradient, or at its absence. The norm is computed in f64, and scaled where squares
    /// would not fit: the smallest subnormal has a norm, and only zeros have the norm zero.
    ///
    /// What it waits for: on the processor one pass over the elements, without an allocation. On
    /// CUDA one reduction in f64 (three rounds of them for f64 values whose squares do not fit), on
    /// Metal a copy to the host; both wait for all work before it.
    ///
    /// # Errors
    ///
    /// As [`TensorStats::of`]; on CUDA also when the reduction cannot be launched.
    pub fn of(gradient: Option<&Tensor>) -> Result<Self> {
        let Some(gradient) = gradient else {
            return Ok(Self { state: GradientState::MISSING, norm: None });
        };
        if gradient.device().is_cuda() {
            return TensorStats::reduced_norm(gradient).map(Self::of_norm);
        }
        let stats = TensorStats::of(gradient)?;
        Ok(if stats.non_finite() > 0 {
            Self { state: GradientState::NON_FINITE, norm: None }
        } else {
            Self::of_norm(stats.norm)
        })
    }

    fn of_norm(norm: f64) -> Self {
        match norm {
            0.0 => Self { state: GradientState::ZERO, norm: Some(0.0) },
            _ if norm.is_finite() => Self { state: GradientState::PRESENT, norm: Some(norm) },
            _ => Self { state: GradientState::NON_FINITE, norm: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    #[test]
    fn the_reduction_and_the_pass_agree() -> Result<()> {
        let tensors = [
            Tensor::new(&[3f32, 4.], &Device::Cpu)?,
            Tensor::new(&[0f32, -0.], &Device::Cpu)?,
            Tensor::new(&[1f32, f32::NAN], &Device::Cpu)?,
            Tensor::new(&[f32::NEG_INFINITY], &Device::Cpu)?,
            Tensor::new(&[f32::from_bits(1)], &Device::Cpu)?,
            Tensor::new(&[f32::MAX, f32::MAX], &Device::Cpu)?,
            Tensor::new(&[3e200, -4e200], &Device::Cpu)?,
            Tensor::new(&[5e-324, 0.0], &Device::Cpu)?,
            Tensor::new(&[1e200, f64::INFINITY], &Device::Cpu)?,
            Tensor::zeros((0, 3), DType::F32, &Device::Cpu)?,
        ];
        for tensor in &tensors {
            let pass = Gradient::of(Some(tensor))?;
            assert_eq!(Gradient::of_norm(TensorStats::reduced_norm(tensor)?), pass, "{tensor:?}");
        }
        Ok(())
    }
}
