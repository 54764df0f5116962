//! Modules that report their calls.

use std::borrow::Cow;
use std::ops::Deref;

use candle_core::{Module, ModuleT, Result, Tensor};
use tmrun_probe_core::{Global, Target};

use super::Layer;

/// A module whose calls are recorded: what [`Layer`] says of a call. It derefs to the module, and takes its
/// place wherever a `Module` is asked for, such as in a `Sequential`.
#[derive(Debug, Clone)]
pub struct Instrumented<M, T = Global> {
    module: M,
    layer: Layer<T>,
}

/// The same for modules that train otherwise than they infer, such as dropout and batch norm: it is a
/// `ModuleT`.
#[derive(Debug, Clone)]
pub struct InstrumentedT<M, T = Global> {
    module: M,
    layer: Layer<T>,
}

/// Has the calls of a module recorded under this address by the probe that the program installs. For the
/// address and the kind see [`Layer`].
///
/// ```
/// use candle_core::{DType, Device, Module, Tensor};
/// use tmrun_probe_candle::instrument;
///
/// # fn main() -> candle_core::Result<()> {
/// let double = instrument("blocks.0.double", "double", |x: &Tensor| x + x);
/// let x = Tensor::ones(3, DType::F32, &Device::Cpu)?;
/// assert_eq!(double.forward(&x)?.to_vec1::<f32>()?, [2., 2., 2.]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn instrument<M>(
    address: impl Into<Cow<'static, str>>,
    kind: impl Into<Cow<'static, str>>,
    module: M,
) -> Instrumented<M> {
    instrument_on(Global, address, kind, module)
}

/// The same by this probe.
#[track_caller]
pub fn instrument_on<M, T: Target>(
    target: T,
    address: impl Into<Cow<'static, str>>,
    kind: impl Into<Cow<'static, str>>,
    module: M,
) -> Instrumented<M, T> {
    Instrumented { module, layer: Layer::on(target, address, kind) }
}

/// As [`instrument`], for a module that trains otherwise than it infers.
#[track_caller]
pub fn instrument_t<M>(
    address: impl Into<Cow<'static, str>>,
    kind: impl Into<Cow<'static, str>>,
    module: M,
) -> InstrumentedT<M> {
    instrument_t_on(Global, address, kind, module)
}

/// The same by this probe.
#[track_caller]
pub fn instrument_t_on<M, T: Target>(
    target: T,
    address: impl Into<Cow<'static, str>>,
    kind: impl Into<Cow<'static, str>>,
    module: M,
) -> InstrumentedT<M, T> {
    InstrumentedT { module, layer: Layer::on(target, address, kind) }
}

impl<M, T: Target> Instrumented<M, T> {
    /// Its address, its kind and its probe.
    pub const fn layer(&self) -> &Layer<T> {
        &self.layer
    }

    /// Calls the module in a way of its own: with several inputs, say, or with a mask. `inputs` are those that
    /// are recorded.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn call(
        &self,
        inputs: &[&Tensor],
        body: impl FnOnce(&M) -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.layer.call(inputs, || body(&self.module))
    }

    /// The module, which records nothing any more.
    pub fn into_inner(self) -> M {
        self.module
    }
}

impl<M: Module, T: Target> Instrumented<M, T> {
    /// What `Module::forward` does, for who has not imported that.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layer.call(&[x], || self.module.forward(x))
    }
}

impl<M: Module, T: Target> Module for Instrumented<M, T> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Self::forward(self, x)
    }
}

impl<M, T> Deref for Instrumented<M, T> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.module
    }
}

impl<M, T: Target> InstrumentedT<M, T> {
    /// Its address, its kind and its probe.
    pub const fn layer(&self) -> &Layer<T> {
        &self.layer
    }

    /// The module, which records nothing any more.
    pub fn into_inner(self) -> M {
        self.module
    }
}

impl<M: ModuleT, T: Target> InstrumentedT<M, T> {
    /// What `ModuleT::forward_t` does, for who has not imported that.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn forward_t(&self, x: &Tensor, train: bool) -> Result<Tensor> {
        self.layer.call(&[x], || self.module.forward_t(x, train))
    }

    /// The same: `Dropout` calls it so.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn forward(&self, x: &Tensor, train: bool) -> Result<Tensor> {
        self.forward_t(x, train)
    }
}

impl<M: ModuleT, T: Target> ModuleT for InstrumentedT<M, T> {
    fn forward_t(&self, x: &Tensor, train: bool) -> Result<Tensor> {
        Self::forward_t(self, x, train)
    }
}

impl<M, T> Deref for InstrumentedT<M, T> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.module
    }
}
