//! Summaries of tensors.

use crate::published::finite;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What the elements of one tensor came to, once. A scalar is a tensor without dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorStats<'a> {
    /// The span it was taken in.
    pub span_id: Cow<'a, str>,
    /// The caller's name, the same in every run.
    pub label: Cow<'a, str>,
    /// Dimensions.
    pub shape: Cow<'a, [u64]>,
    /// Element type.
    pub dtype: Cow<'a, str>,
    /// How many elements there are.
    pub elements: u64,
    /// How many of them are not finite.
    pub non_finite: u64,
    /// Root mean square.
    #[serde(serialize_with = "finite::write")]
    pub rms: f64,
    /// Greatest magnitude.
    #[serde(serialize_with = "finite::write")]
    pub abs_max: f64,
    /// Mean.
    #[serde(serialize_with = "finite::write")]
    pub mean: f64,
}
