//! The one place every layer's call goes through.

use candle_core::{Device, Result, Tensor};
use candle_nn::VarBuilder;

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

/// A layer's address and kind. The address is that of its parameters, without their last part:
/// `blocks.0.attn.q_proj` holds `blocks.0.attn.q_proj.weight`.
#[derive(Debug, Clone)]
pub struct Layer {
    name: String,
    kind: Kind,
}

/// One forward pass: which update it belongs to, and what is to go wrong in it.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The update, one-based.
    pub step: u64,
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
    /// The layer whose parameters `vb` builds.
    pub fn new(vb: &VarBuilder, kind: Kind) -> Self {
        Self { name: vb.prefix(), kind }
    }

    /// Runs the layer. What is to be known about a call is at hand here: when it began and ended,
    /// what went in, what came out.
    pub fn call(
        &self,
        pass: &Pass,
        inputs: &[&Tensor],
        body: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        let output = body().map_err(|error| self.explain(inputs, error))?;
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
        let output = |step, fault| call(Pass { step, fault }, &x).unwrap();
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
        let pass = Pass { step: 1, fault: None };
        let error = layer().call(&pass, &[&x], || x.matmul(&x)).unwrap_err().to_string();
        assert!(error.contains("blocks.0.mlp (Mlp)") && error.contains("[2, 3]"), "{error}");
    }
}
