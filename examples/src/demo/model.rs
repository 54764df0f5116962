//! A small language model: two embeddings, pre-norm blocks, a head.

use candle_core::{Device, Module, Result, Tensor};
use candle_nn::{Embedding, VarBuilder};

use crate::block::{Block, Linear, Norm};
use crate::layer::{Kind, Layer, Pass};

/// How big the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How many tokens there are.
    pub vocabulary: usize,
    /// How many tokens it sees at once.
    pub context: usize,
    /// How many features stand for a token.
    pub width: usize,
    /// How many attention heads share them; divides `width`.
    pub heads: usize,
    /// How many blocks.
    pub blocks: usize,
}

/// A causal transformer over characters.
#[derive(Debug)]
pub struct Model {
    tokens: Table,
    positions: Table,
    blocks: Vec<Block>,
    norm: Norm,
    head: Linear,
    mask: Tensor,
    config: Config,
}

/// An embedding with its address.
#[derive(Debug)]
struct Table {
    layer: Layer,
    inner: Embedding,
}

impl Config {
    /// The demo's size: small enough for a laptop, big enough to learn spelling.
    pub fn demo(vocabulary: usize) -> Self {
        Self { vocabulary, context: 32, width: 64, heads: 4, blocks: 2 }
    }
}

impl Model {
    /// Builds every parameter in `vb`.
    pub fn new(config: Config, vb: VarBuilder) -> Result<Self> {
        let Config { vocabulary, context, width, heads, blocks } = config;
        if heads == 0 || width % heads != 0 {
            candle_core::bail!("{width} features cannot be shared out among {heads} heads");
        }
        let blocks = (0..blocks)
            .map(|block| Block::new(width, heads, vb.pp("blocks").pp(block)))
            .collect::<Result<_>>()?;
        Ok(Self {
            tokens: Table::new(vocabulary, width, vb.pp("embed.tokens"))?,
            positions: Table::new(context, width, vb.pp("embed.positions"))?,
            blocks,
            norm: Norm::new(width, vb.pp("norm"))?,
            head: Linear::new(width, vocabulary, vb.pp("head"))?,
            mask: causal_mask(context)?,
            config,
        })
    }

    /// The size it was built with.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Logits `(rows, columns, vocabulary)` of the token after each of `ids`, `(rows, columns)`.
    pub fn forward(&self, pass: &Pass, ids: &Tensor) -> Result<Tensor> {
        let (_, columns) = ids.dims2()?;
        let positions = Tensor::arange(0, columns as u32, ids.device())?;
        let mask = self.mask.narrow(0, 0, columns)?.narrow(1, 0, columns)?;
        let tokens = self.tokens.forward(pass, ids)?;
        let mut x = tokens.broadcast_add(&self.positions.forward(pass, &positions)?)?;
        for block in &self.blocks {
            x = block.forward(pass, &x, &mask)?;
        }
        self.head.forward(pass, &self.norm.forward(pass, &x)?)
    }
}

impl Table {
    fn new(rows: usize, width: usize, vb: VarBuilder) -> Result<Self> {
        let inner = Embedding::new(vb.get((rows, width), "weight")?, width);
        Ok(Self { layer: Layer::new(&vb, Kind::Embedding), inner })
    }

    fn forward(&self, pass: &Pass, ids: &Tensor) -> Result<Tensor> {
        self.layer.call(pass, &[ids], || self.inner.forward(ids))
    }
}

/// Zero where a position may look, strongly negative where it may not. Finite, so that every
/// value of a healthy run is.
fn causal_mask(context: usize) -> Result<Tensor> {
    let value = |row: usize, column: usize| if column > row { -1e9f32 } else { 0. };
    let values: Vec<f32> =
        (0..context).flat_map(|row| (0..context).map(move |column| value(row, column))).collect();
    Tensor::from_vec(values, (context, context), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Heads;
    use candle_core::DType;
    use candle_nn::VarMap;

    const SMALL: Config = Config { vocabulary: 5, context: 4, width: 8, heads: 2, blocks: 1 };
    const PASS: Pass = Pass { step: 1, heads: Heads::Together, fault: None };

    fn model(config: Config, variables: &VarMap) -> Result<Model> {
        Model::new(config, VarBuilder::from_varmap(variables, DType::F32, &Device::Cpu))
    }

    fn logits(model: &Model, ids: [u32; 4]) -> Vec<Vec<f32>> {
        let ids = Tensor::new(&[ids], &Device::Cpu).unwrap();
        model.forward(&PASS, &ids).unwrap().squeeze(0).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn a_position_does_not_see_those_after_it() {
        let variables = VarMap::new();
        let model = model(SMALL, &variables).unwrap();
        for variable in variables.all_vars() {
            variable.set(&variable.rand_like(-1., 1.).unwrap()).unwrap();
        }
        let (one, other) = (logits(&model, [0, 1, 2, 3]), logits(&model, [0, 1, 4, 3]));
        assert_eq!(one[..2], other[..2]);
        assert_ne!(one[2], other[2]);
        assert_ne!(one[3], other[3]);
    }

    #[test]
    fn addresses_are_those_of_the_parameters() {
        let variables = VarMap::new();
        model(SMALL, &variables).unwrap();
        let data = variables.data().lock().unwrap();
        let mut names: Vec<&str> =
            data.keys().filter_map(|key| key.strip_suffix(".weight")).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "blocks.0.attn.k_proj",
                "blocks.0.attn.o_proj",
                "blocks.0.attn.q_proj",
                "blocks.0.attn.v_proj",
                "blocks.0.attn_norm",
                "blocks.0.mlp.down",
                "blocks.0.mlp.up",
                "blocks.0.mlp_norm",
                "embed.positions",
                "embed.tokens",
                "head",
                "norm",
            ]
        );
    }

    #[test]
    fn heads_that_do_not_divide_the_width_are_refused() {
        let config = Config { heads: 3, ..SMALL };
        assert!(model(config, &VarMap::new()).is_err());
        assert!(model(Config { heads: 0, ..SMALL }, &VarMap::new()).is_err());
    }
}
