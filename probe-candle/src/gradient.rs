//! Gradients by the name of their parameter.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use tmrun_probe_core::{Clock, GradientState, NameId, ProbeRef, Recorder};

use crate::stats::TensorStats;

/// Which gradients are expected, prepared once: the parameters by name, sorted. It holds their
/// identities and keeps no tensor alive; it stays valid while the variables do, across
/// `Var::set` and therefore every optimizer step.
#[derive(Debug, Clone)]
pub struct GradientPlan {
    root: NameId,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone)]
struct Parameter {
    name: String,
    key: NameId,
    id: candle_core::TensorId,
}

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

impl GradientPlan {
    /// A plan of these variables. `root` names what they belong to, such as `model`.
    ///
    /// With a `candle_nn::VarMap` it is prepared from `varmap.data().lock().unwrap().iter()`.
    /// This is set-up: it interns every name.
    pub fn from_named_vars<'v, C, N: Into<String>>(
        probe: &ProbeRef<'_, C>,
        root: &str,
        variables: impl IntoIterator<Item = (N, &'v Var)>,
    ) -> Self {
        let parameter = |(name, variable): (N, &Var)| {
            let name = name.into();
            let key = probe.name(&name);
            Parameter { name, key, id: variable.id() }
        };
        let mut parameters: Vec<_> = variables.into_iter().map(parameter).collect();
        parameters.sort_by(|a, b| a.name.cmp(&b.name));
        Self { root: probe.name(root), parameters }
    }

    /// The names of the parameters, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Records what became of each gradient (level 2), in the order of the names; one record each. A
    /// parameter for which `gradients` has nothing is recorded as missing; one of which gradients
    /// are not wanted is not looked at and not counted.
    ///
    /// It waits as [`Gradient::of`] does, once for every parameter.
    ///
    /// # Errors
    ///
    /// A gradient could not be looked at. It has no record; all others have theirs.
    pub fn record<C: Clock>(
        &self,
        recorder: &Recorder<'_, C>,
        gradients: &GradStore,
    ) -> Result<GradientCounts> {
        let mut counts = GradientCounts::default();
        let mut failed = None;
        let wanted = |parameter: &&Parameter| recorder.wants(parameter.key);
        for parameter in self.parameters.iter().filter(wanted) {
            match Gradient::of(gradients.get_id(parameter.id)) {
                Ok(gradient) => {
                    counts.add(gradient.state);
                    recorder.gradient(self.root, parameter.key, gradient.state, gradient.norm);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(counts), Err)
    }
}

impl GradientCounts {
    fn add(&mut self, state: GradientState) {
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
