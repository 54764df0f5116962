//! The one place every layer's call goes through.

use candle_core::{Device, Result, Tensor};
use candle_nn::VarBuilder;

use crate::record::PROBE;

/// What sort of layer a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A table looked up by token or position.
    Embedding,
    /// A normalisation over the last dimension.
    Norm,
    /// A matrix and a bias.
    Linear,
    /// The weights that one position gives to those before it.
    Softmax,
    /// Queries, keys and values to one output.
    Attention,
    /// Up, a bend, and down again.
    Mlp,
    /// Attention and MLP, each added to what came in.
    Block,
}

impl Kind {
    /// Its name in a recording.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Norm => "norm",
            Self::Linear => "linear",
            Self::Softmax => "softmax",
            Self::Attention => "attention",
            Self::Mlp => "mlp",
            Self::Block => "block",
        }
    }
}

/// A layer, as the probe sees it, that can be broken for a try. The address is that of its parameters,
/// without their last part: `blocks.0.attn.q_proj` holds `blocks.0.attn.q_proj.weight`.
#[derive(Debug, Clone)]
pub struct Layer {
    recorded: tmrun_probe_candle::Layer<PROBE>,
}

/// How attention goes about its heads. What comes out is the same, but for rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Heads {
    /// All of them in one multiplication.
    #[default]
    Together,
    /// One after another.
    InTurn,
}

/// One forward pass: which update it belongs to, how it is done, and what is to go wrong in it.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The update, one-based.
    pub step: u64,
    /// How attention goes about its heads.
    pub heads: Heads,
    /// The fault to plant, if any.
    pub fault: Option<Fault<'a>>,
}

/// A NaN that appears in one layer's output during one update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault<'a> {
    /// The update it appears in, one-based.
    pub step: u64,
    /// The address of the layer.
    pub layer: &'a str,
}

impl Layer {
    /// The layer whose parameters `vb` builds. Its names are made known to the probe here, so that a
    /// call does no work on text.
    #[track_caller]
    pub fn new(vb: &VarBuilder, kind: Kind) -> Self {
        Self { recorded: tmrun_probe_candle::Layer::on(PROBE, vb.prefix(), kind.name()) }
    }

    /// Runs the layer: a span, an operation, what came out, as the level asks for it.
    pub fn call(
        &self,
        pass: &Pass,
        inputs: &[&Tensor],
        body: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.recorded.call(inputs, || self.maybe_broken(pass, body()?))
    }

    fn maybe_broken(&self, pass: &Pass, output: Tensor) -> Result<Tensor> {
        match pass.fault {
            Some(fault) if fault.step == pass.step && fault.layer == self.recorded.address() => {
                poison(&output)
            }
            _ => Ok(output),
        }
    }
}

/// `tensor` with its first element replaced by NaN.
fn poison(tensor: &Tensor) -> Result<Tensor> {
    let mut addend = vec![0f32; tensor.elem_count()];
    if let Some(first) = addend.first_mut() {
        *first = f32::NAN;
    }
    tensor + Tensor::from_vec(addend, tensor.shape(), &Device::Cpu)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::DType;

    fn layer() -> Layer {
        let vb = VarBuilder::zeros(DType::F32, &Device::Cpu);
        Layer::new(&vb.pp("blocks").pp(0).pp("mlp"), Kind::Mlp)
    }

    fn call(pass: Pass, x: &Tensor) -> Result<Vec<f32>> {
        layer().call(&pass, &[x], || x * 2.)?.flatten_all()?.to_vec1()
    }

    #[test]
    fn a_fault_hits_one_element_of_its_layer_in_its_step() {
        let x = Tensor::new(&[[1f32, 2.], [3., 4.]], &Device::Cpu).unwrap();
        let fault = Fault { step: 2, layer: "blocks.0.mlp" };
        let output = |step, fault| call(Pass { step, heads: Heads::Together, fault }, &x).unwrap();
        let broken = output(2, Some(fault));
        assert!(broken[0].is_nan());
        assert_eq!(broken[1..], [4., 6., 8.]);
        assert_eq!(output(1, Some(fault)), [2., 4., 6., 8.]);
        assert_eq!(output(2, Some(Fault { layer: "blocks.1.mlp", ..fault })), [2., 4., 6., 8.]);
        assert_eq!(output(2, None), [2., 4., 6., 8.]);
    }

    #[test]
    fn an_error_says_which_layer_and_what_went_in() {
        let x = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap();
        let pass = Pass { step: 1, heads: Heads::Together, fault: None };
        let error = layer().call(&pass, &[&x], || x.matmul(&x)).unwrap_err().to_string();
        assert!(error.contains("blocks.0.mlp (mlp)") && error.contains("[2, 3]"), "{error}");
    }
}
