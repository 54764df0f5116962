//! Operations of candle-nn that pass no gradient on, and tell nobody.

/// An operation through which no gradient comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// What a recording calls it: the function of candle-nn.
    pub op: &'static str,
    /// What passes the gradient on instead, in words.
    pub instead: &'static str,
}

/// All of them, as of candle-nn 0.11.1. `LayerNorm::forward` and `RmsNorm::forward` are among them
/// where what goes in is contiguous; else they are made of operations that pass gradients on.
pub const CUTS: [Cut; 7] = [
    cut("layer_norm", "`ops::layer_norm_slow`"),
    cut("rms_norm", "`RmsNorm::forward_diff` or `ops::rms_norm_slow`"),
    cut("softmax_last_dim", "`ops::softmax(x, D::Minus1)`"),
    cut("rope", "`rotary_emb::rope_slow`"),
    cut("rope_i", "`rotary_emb::rope_i_slow`"),
    cut("rope_thd", "`rotary_emb::rope_slow` of the transposed tensor"),
    cut("sdpa", "two `matmul` and `ops::softmax`"),
];

const fn cut(op: &'static str, instead: &'static str) -> Cut {
    Cut { op, instead }
}

/// The operation of this name, if it is one of them.
#[must_use]
pub fn cut_of(op: &str) -> Option<&'static Cut> {
    CUTS.iter().find(|cut| cut.op == op)
}
