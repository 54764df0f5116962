//! How numbers went from step to step.

use crate::published::finite;
use crate::published::label::label;
use crate::runtime::GradientState;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the points are over, always.
pub const COORDINATE: &str = "capture_step";

label! {
    /// The schema of a [`Series`].
    SeriesSchema = "candle-graph/series/1"
}

/// Several captures of one entrypoint, as curves. Points are in the order of their steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series<'a> {
    /// The label.
    pub schema: SeriesSchema,
    /// What every capture ran.
    pub entrypoint: Cow<'a, str>,
    /// [`COORDINATE`].
    pub coordinate: Cow<'a, str>,
    /// What the labels and gradients start with; none for all of them.
    pub label_prefix: Option<Cow<'a, str>>,
    /// The bundles, by step.
    pub inputs: Vec<SeriesInput<'a>>,
    /// The wall time of the measured region.
    pub outer_wall_time: Vec<SeriesTime<'a>>,
    /// Tensor statistics, by label.
    pub tensor_stats: BTreeMap<Cow<'a, str>, Vec<SeriesStats<'a>>>,
    /// Gradients, by `root/key`.
    pub gradients: BTreeMap<Cow<'a, str>, Vec<SeriesGradient<'a>>>,
}

/// One bundle of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesInput<'a> {
    /// Its step, which no other has.
    pub capture_step: u64,
    /// Its run.
    pub run_id: Cow<'a, str>,
    /// Where it lies.
    pub bundle: Cow<'a, str>,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Cow<'a, str>,
}

/// The wall time of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesTime<'a> {
    /// The step.
    pub capture_step: u64,
    /// The run.
    pub run_id: Cow<'a, str>,
    /// The time; none unless exactly one measured span is closed.
    pub outer_wall_time_ns: Option<u64>,
}

/// One observation of a tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesStats<'a> {
    /// The step.
    pub capture_step: u64,
    /// The run.
    pub run_id: Cow<'a, str>,
    /// Root mean square.
    #[serde(serialize_with = "finite::write")]
    pub rms: f64,
    /// Greatest magnitude.
    #[serde(serialize_with = "finite::write")]
    pub abs_max: f64,
    /// Mean.
    #[serde(serialize_with = "finite::write")]
    pub mean: f64,
    /// How many elements are not finite.
    pub non_finite: u64,
    /// How many elements there are.
    pub elements: u64,
}

/// One observation of a gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesGradient<'a> {
    /// The step.
    pub capture_step: u64,
    /// The run.
    pub run_id: Cow<'a, str>,
    /// What was found.
    pub state: GradientState,
    /// Its norm, where it has one.
    #[serde(serialize_with = "finite::write_option")]
    pub norm: Option<f64>,
}
