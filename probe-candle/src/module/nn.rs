//! The layers of candle-nn, reporting under the path of their `VarBuilder` (feature `nn`).
//!
//! The names are candle-nn's own, and all that is not here is passed on from there. So a model moves over by
//! its imports, and the rest of it stays as it is:
//!
//! ```
//! use tmrun_probe_candle::nn as candle_nn; // the one line that changes
//!
//! use candle_core::{DType, Device, Result, Tensor};
//! use candle_nn::{Linear, Module, VarBuilder, VarMap, linear};
//!
//! struct Mlp {
//!     up: Linear,
//!     down: Linear,
//! }
//!
//! impl Mlp {
//!     fn new(vb: VarBuilder) -> Result<Self> {
//!         Ok(Self { up: linear(4, 16, vb.pp("up"))?, down: linear(16, 4, vb.pp("down"))? })
//!     }
//! }
//!
//! impl Module for Mlp {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.down.forward(&self.up.forward(x)?.gelu()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let variables = VarMap::new();
//! let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
//! // A module of one's own: its span holds those of its layers.
//! let mlp = candle_nn::instrument_in(vb.pp("mlp"), "mlp", Mlp::new)?;
//! assert_eq!(mlp.up.layer().address(), "mlp.up"); // which holds mlp.up.weight
//! mlp.forward(&Tensor::ones((2, 4), DType::F32, &Device::Cpu)?)?;
//! # Ok(())
//! # }
//! ```
//!
//! The probe is the one that the program installs. What is made by hand rather than from a `VarBuilder`
//! (`Linear::new(weight, bias)`), records by another probe or has another form of call (recurrent layers) is
//! for [`instrument`], [`instrument_on`](crate::instrument_on) and [`Layer`]. Operations that pass no gradient
//! on ([`ops::softmax_last_dim`], [`rotary_emb::rope`], …) report here, too, so that what they cut off can be
//! laid to them; other functions do not.

use candle_core::{Result, Tensor};
use tmrun_probe_core::Target;

use super::{Instrumented, InstrumentedT, Layer, instrument, instrument_t};

pub use candle_nn::*;

/// A module whose calls are recorded under the path of this `VarBuilder`.
///
/// # Errors
///
/// What `build` gives.
#[track_caller]
pub fn instrument_in<'a, M>(
    vb: VarBuilder<'a>,
    kind: &'static str,
    build: impl FnOnce(VarBuilder<'a>) -> Result<M>,
) -> Result<Instrumented<M>> {
    let address = vb.prefix();
    Ok(instrument(address, kind, build(vb)?))
}

/// The same for a module that trains otherwise than it infers.
///
/// # Errors
///
/// What `build` gives.
#[track_caller]
pub fn instrument_t_in<'a, M>(
    vb: VarBuilder<'a>,
    kind: &'static str,
    build: impl FnOnce(VarBuilder<'a>) -> Result<M>,
) -> Result<InstrumentedT<M>> {
    let address = vb.prefix();
    Ok(instrument_t(address, kind, build(vb)?))
}

macro_rules! layers {
    ($($Layer:ident $kind:literal { $($name:ident($($arg:ident: $of:ty),*);)* })*) => { $(
        #[doc = concat!("candle-nn's, reporting as `", $kind, "`.")]
        pub type $Layer = Instrumented<candle_nn::$Layer>;
        $(
            #[doc = concat!("candle-nn's, reporting as `", $kind, "` under the path of `vb`.")]
            ///
            /// # Errors
            ///
            /// As candle-nn's.
            #[track_caller]
            pub fn $name($($arg: $of,)* vb: VarBuilder) -> Result<$Layer> {
                instrument_in(vb, $kind, |vb| candle_nn::$name($($arg,)* vb))
            }
        )*
    )* };
}

layers! {
    Linear "linear" {
        linear(in_dim: usize, out_dim: usize);
        linear_no_bias(in_dim: usize, out_dim: usize);
        linear_b(in_dim: usize, out_dim: usize, bias: bool);
    }
    Embedding "embedding" {
        embedding(in_size: usize, out_size: usize);
    }
    RmsNorm "rms_norm" {
        rms_norm(size: usize, eps: f64);
    }
    GroupNorm "group_norm" {
        group_norm(num_groups: usize, num_channels: usize, eps: f64);
    }
    Conv1d "conv1d" {
        conv1d(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: Conv1dConfig);
        conv1d_no_bias(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: Conv1dConfig);
    }
    Conv2d "conv2d" {
        conv2d(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: Conv2dConfig);
        conv2d_no_bias(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: Conv2dConfig);
    }
    ConvTranspose1d "conv_transpose1d" {
        conv_transpose1d(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: ConvTranspose1dConfig);
        conv_transpose1d_no_bias(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: ConvTranspose1dConfig);
    }
    ConvTranspose2d "conv_transpose2d" {
        conv_transpose2d(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: ConvTranspose2dConfig);
        conv_transpose2d_no_bias(in_channels: usize, out_channels: usize, kernel_size: usize, cfg: ConvTranspose2dConfig);
    }
    PReLU "prelu" {
        prelu(num_channels: Option<usize>);
    }
}

/// candle-nn's, reporting as `layer_norm`, or as `layer_norm_no_bias` without a bias: only with one is
/// it an operation that passes no gradient on.
pub type LayerNorm = Instrumented<candle_nn::LayerNorm>;

/// candle-nn's, reporting as `batch_norm`.
pub type BatchNorm = InstrumentedT<candle_nn::BatchNorm>;

/// candle-nn's, reporting as `layer_norm` under the path of `vb`, or as `layer_norm_no_bias`.
///
/// # Errors
///
/// As candle-nn's.
#[track_caller]
pub fn layer_norm<C: Into<LayerNormConfig>>(
    size: usize,
    config: C,
    vb: VarBuilder,
) -> Result<LayerNorm> {
    let config = config.into();
    let kind = if config.affine { "layer_norm" } else { "layer_norm_no_bias" };
    instrument_in(vb, kind, |vb| candle_nn::layer_norm(size, config, vb))
}

/// candle-nn's, reporting as `layer_norm_no_bias` under the path of `vb`.
///
/// # Errors
///
/// As candle-nn's.
#[track_caller]
pub fn layer_norm_no_bias(size: usize, eps: f64, vb: VarBuilder) -> Result<LayerNorm> {
    instrument_in(vb, "layer_norm_no_bias", |vb| candle_nn::layer_norm_no_bias(size, eps, vb))
}

/// candle-nn's, reporting as `batch_norm` under the path of `vb`.
///
/// # Errors
///
/// As candle-nn's.
#[track_caller]
pub fn batch_norm<C: Into<BatchNormConfig>>(
    num_features: usize,
    config: C,
    vb: VarBuilder,
) -> Result<BatchNorm> {
    instrument_t_in(vb, "batch_norm", |vb| candle_nn::batch_norm(num_features, config, vb))
}

impl<T: Target> Instrumented<candle_nn::RmsNorm, T> {
    /// candle-nn's variant that passes the gradient on, recorded as well.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn forward_diff(&self, x: &Tensor) -> Result<Tensor> {
        self.call(&[x], |norm| norm.forward_diff(x))
    }
}

impl<T: Target> InstrumentedT<candle_nn::BatchNorm, T> {
    /// candle-nn's pass in training, recorded as well.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn forward_train(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_t(x, true)
    }
}

/// candle-nn's; those that pass no gradient on report their calls.
pub mod ops {
    use super::{Layer, Result, Tensor};

    pub use candle_nn::ops::*;

    /// candle-nn's, reporting as `softmax_last_dim`. It passes no gradient on: `softmax(x, D::Minus1)`
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn softmax_last_dim(xs: &Tensor) -> Result<Tensor> {
        static OP: Layer = Layer::of_op("softmax_last_dim");
        OP.call(&[xs], || candle_nn::ops::softmax_last_dim(xs))
    }

    /// candle-nn's, reporting as `rms_norm`. It passes no gradient on: `rms_norm_slow` does.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn rms_norm(xs: &Tensor, alpha: &Tensor, eps: f32) -> Result<Tensor> {
        static OP: Layer = Layer::of_op("rms_norm");
        OP.call(&[xs, alpha], || candle_nn::ops::rms_norm(xs, alpha, eps))
    }

    /// candle-nn's, reporting as `layer_norm`. It passes no gradient on: `layer_norm_slow` does.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn layer_norm(xs: &Tensor, alpha: &Tensor, beta: &Tensor, eps: f32) -> Result<Tensor> {
        static OP: Layer = Layer::of_op("layer_norm");
        OP.call(&[xs, alpha, beta], || candle_nn::ops::layer_norm(xs, alpha, beta, eps))
    }

    /// candle-nn's, reporting as `sdpa`. It passes no gradient on.
    ///
    /// # Errors
    ///
    /// As [`Layer::call`].
    pub fn sdpa(
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
        do_causal: bool,
        scale: f32,
        softcapping: f32,
    ) -> Result<Tensor> {
        static OP: Layer = Layer::of_op("sdpa");
        OP.call(&[q, k, v], || candle_nn::ops::sdpa(q, k, v, mask, do_causal, scale, softcapping))
    }
}

/// candle-nn's; those that pass no gradient on report their calls.
pub mod rotary_emb {
    use super::{Layer, Result, Tensor};

    pub use candle_nn::rotary_emb::*;

    macro_rules! ropes {
        ($($name:ident)*) => { $(
            #[doc = concat!("candle-nn's, reporting as `", stringify!($name), "`.")]
            /// It passes no gradient on.
            ///
            /// # Errors
            ///
            /// As [`Layer::call`].
            pub fn $name(xs: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
                static OP: Layer = Layer::of_op(stringify!($name));
                OP.call(&[xs, cos, sin], || candle_nn::rotary_emb::$name(xs, cos, sin))
            }
        )* };
    }

    ropes! { rope rope_i rope_thd }
}
