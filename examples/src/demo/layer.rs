//! The one place every layer's call goes through.

use std::panic::Location;

use candle_core::{Device, Result, Tensor};
use candle_nn::VarBuilder;
use tmrun_probe_candle::CandleRecorder;
use tmrun_probe_core::{Level, NameId, Node, span};

use crate::record::{self, PROBE};

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

/// A layer's address and kind. The address is that of its parameters, without their last part:
/// `blocks.0.attn.q_proj` holds `blocks.0.attn.q_proj.weight`.
#[derive(Debug, Clone)]
pub struct Layer {
    name: String,
    kind: Kind,
    /// The address in a recording, with the kind and the place in the source.
    node: NameId,
    /// What a recording calls the operation.
    op: NameId,
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
        let (name, place) = (vb.prefix(), Location::caller());
        let source = format!("{}:{}", place.file(), place.line());
        let node = PROBE.node(&Node {
            name: &name,
            node_type: Some(kind.name()),
            static_id: Some(&name),
            source: Some(&source),
        });
        Self { name, kind, node, op: PROBE.name(kind.name()) }
    }

    /// Runs the layer. What is to be known about a call is at hand here: when it began and ended,
    /// what went in, what came out.
    pub fn call(
        &self,
        pass: &Pass,
        inputs: &[&Tensor],
        body: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        let output = {
            let _span = span!(PROBE, self.node, kind = MODULE);
            let start = PROBE.at(Level::TIMING, |to| to.now());
            let output = body().map_err(|error| self.explain(inputs, error))?;
            let output = self.maybe_broken(pass, output)?;
            if let Some(start) = start {
                PROBE.at(Level::TIMING, |to| {
                    to.candle_op(self.node, self.op, start..to.now(), &output, inputs);
                });
            }
            output
        };
        record::output(self.node, &output)?;
        Ok(output)
    }

    fn maybe_broken(&self, pass: &Pass, output: Tensor) -> Result<Tensor> {
        match pass.fault {
            Some(fault) if fault.step == pass.step && fault.layer == self.name => poison(&output),
            _ => Ok(output),
        }
    }

    /// `error`, with the layer and the shapes it met.
    fn explain(&self, inputs: &[&Tensor], error: candle_core::Error) -> candle_core::Error {
        let shapes: Vec<_> = inputs.iter().map(|input| input.shape()).collect();
        error.context(format!("in {} ({:?}) with inputs {shapes:?}", self.name, self.kind))
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
        assert!(error.contains("blocks.0.mlp (Mlp)") && error.contains("[2, 3]"), "{error}");
    }
}
