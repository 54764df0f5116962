//! The parts of the model. All of them are made of operations that pass gradients on:
//! `candle_nn::LayerNorm` and `softmax_last_dim` are faster and do not.

use candle_core::{D, Module, Result, Tensor};
use candle_nn::{Init, VarBuilder, ops};

use crate::layer::{Heads, Kind, Layer, Pass};

/// A matrix and a bias.
#[derive(Debug)]
pub struct Linear {
    layer: Layer,
    inner: candle_nn::Linear,
}

/// Layer normalisation.
#[derive(Debug)]
pub struct Norm {
    layer: Layer,
    gain: Tensor,
    bias: Tensor,
}

/// Causal self-attention.
#[derive(Debug)]
struct Attention {
    layer: Layer,
    query: Linear,
    key: Linear,
    value: Linear,
    softmax: Layer,
    output: Linear,
    heads: usize,
}

/// Two linear layers with a bend between them.
#[derive(Debug)]
struct Mlp {
    layer: Layer,
    up: Linear,
    down: Linear,
}

/// Attention and MLP, each normalised before and added to what came in.
#[derive(Debug)]
pub struct Block {
    layer: Layer,
    attention_norm: Norm,
    attention: Attention,
    mlp_norm: Norm,
    mlp: Mlp,
}

impl Linear {
    /// From `from` features to `to`.
    pub fn new(from: usize, to: usize, vb: VarBuilder) -> Result<Self> {
        let weight = vb.get((to, from), "weight")?;
        let inner = candle_nn::Linear::new(weight, Some(vb.get(to, "bias")?));
        Ok(Self { layer: Layer::new(&vb, Kind::Linear), inner })
    }

    /// Applies it to the last dimension.
    pub fn forward(&self, pass: &Pass, x: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[x], || self.inner.forward(x))
    }
}

impl Norm {
    /// Over `width` features.
    pub fn new(width: usize, vb: VarBuilder) -> Result<Self> {
        let gain = vb.get_with_hints(width, "weight", Init::Const(1.))?;
        let bias = vb.get(width, "bias")?;
        Ok(Self { layer: Layer::new(&vb, Kind::Norm), gain, bias })
    }

    /// Normalises the last dimension.
    pub fn forward(&self, pass: &Pass, x: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[x], || ops::layer_norm_slow(x, &self.gain, &self.bias, 1e-5))
    }
}

impl Attention {
    fn new(width: usize, heads: usize, vb: VarBuilder) -> Result<Self> {
        let project = |name| Linear::new(width, width, vb.pp(name));
        Ok(Self {
            layer: Layer::new(&vb, Kind::Attention),
            query: project("q_proj")?,
            key: project("k_proj")?,
            value: project("v_proj")?,
            softmax: Layer::new(&vb.pp("softmax"), Kind::Softmax),
            output: project("o_proj")?,
            heads,
        })
    }

    fn forward(&self, pass: &Pass, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[x, mask], || {
            let (rows, columns, width) = x.dims3()?;
            let head_width = width / self.heads;
            let split = |projected: Tensor| {
                let heads = projected.reshape((rows, columns, self.heads, head_width))?;
                heads.transpose(1, 2)?.contiguous()
            };
            let query = split(self.query.forward(pass, x)?)?;
            let key = split(self.key.forward(pass, x)?)?;
            let value = split(self.value.forward(pass, x)?)?;

            let mixed = match pass.heads {
                Heads::Together => self.mix(pass, &query, &key, &value, mask)?,
                Heads::InTurn => {
                    let head = |all: &Tensor, at| all.narrow(1, at, 1)?.contiguous();
                    let mix = |at| {
                        let [query, key, value] = [&query, &key, &value].map(|all| head(all, at));
                        self.mix(pass, &query?, &key?, &value?, mask)
                    };
                    Tensor::cat(&(0..self.heads).map(mix).collect::<Result<Vec<_>>>()?, 1)?
                }
            };
            self.output.forward(pass, &mixed.transpose(1, 2)?.reshape(x.shape())?)
        })
    }

    /// What each position of some heads makes of those before it.
    fn mix(
        &self,
        pass: &Pass,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: &Tensor,
    ) -> Result<Tensor> {
        let head_width = query.dim(D::Minus1)?;
        let scores = (query.matmul(&key.t()?)? / (head_width as f64).sqrt())?;
        let scores = scores.broadcast_add(mask)?;
        let weights = self.softmax.call(pass, &[&scores], || ops::softmax(&scores, D::Minus1))?;
        weights.matmul(value)
    }
}

impl Mlp {
    fn new(width: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            layer: Layer::new(&vb, Kind::Mlp),
            up: Linear::new(width, 4 * width, vb.pp("up"))?,
            down: Linear::new(4 * width, width, vb.pp("down"))?,
        })
    }

    fn forward(&self, pass: &Pass, x: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[x], || {
            let hidden = self.up.forward(pass, x)?.gelu()?;
            self.down.forward(pass, &hidden)
        })
    }
}

impl Block {
    /// `width` features, shared out among `heads`.
    pub fn new(width: usize, heads: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            layer: Layer::new(&vb, Kind::Block),
            attention_norm: Norm::new(width, vb.pp("attn_norm"))?,
            attention: Attention::new(width, heads, vb.pp("attn"))?,
            mlp_norm: Norm::new(width, vb.pp("mlp_norm"))?,
            mlp: Mlp::new(width, vb.pp("mlp"))?,
        })
    }

    /// `mask` is added to the attention scores.
    pub fn forward(&self, pass: &Pass, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[x], || {
            let normed = self.attention_norm.forward(pass, x)?;
            let x = (x + self.attention.forward(pass, &normed, mask)?)?;
            let normed = self.mlp_norm.forward(pass, &x)?;
            &x + self.mlp.forward(pass, &normed)?
        })
    }
}
