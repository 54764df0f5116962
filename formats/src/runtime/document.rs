//! The owned types: what a reader returns and what an application hands to the writer.
//!
//! Names and fields are those of `candle_graph::runtime`, so that a program moves over by changing
//! its imports. Only [`RuntimeDocument`] has a field more: `gaps`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What ran, and how it was built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RunMetadata {
    /// The function that was observed, such as `model::train_step`.
    pub entrypoint: String,
    /// Cargo profile.
    pub profile: String,
    /// Cargo features that were on.
    #[serde(default)]
    pub cargo_features: Vec<String>,
    /// `cfg` flags that mattered.
    #[serde(default)]
    pub cfg: Vec<String>,
    /// The static analysis this run belongs to; an importer compares it with its own.
    #[serde(default)]
    pub analysis_id: Option<String>,
    /// The build this run belongs to; an importer compares it with its own.
    #[serde(default)]
    pub build_id: Option<String>,
    /// `train` or `infer`; any other string reads, and is dropped when merged.
    #[serde(default)]
    pub phase: Option<String>,
}

/// One tensor, as it was seen once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TensorObservation {
    /// Unique in the document, over all collections.
    pub event_id: String,
    /// The tensor of the static model that this one realises.
    #[serde(default)]
    pub static_id: Option<String>,
    /// Where it was seen, for people.
    #[serde(default)]
    pub source: Option<String>,
    /// The step it was seen in.
    #[serde(default)]
    pub step: Option<u64>,
    /// Dimensions; empty for a scalar.
    pub shape: Vec<usize>,
    /// Element type, such as `BF16`.
    pub dtype: String,
    /// Device, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Whether the layout is contiguous.
    pub contiguous: bool,
    /// Whether a gradient is tracked.
    pub requires_grad: bool,
    /// The storage behind it; opaque.
    #[serde(default)]
    pub storage_id: Option<String>,
}

/// One call of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct OperationObservation {
    /// Unique in the document, over all collections.
    pub event_id: String,
    /// Name of the operation, such as `matmul`.
    pub op: String,
    /// The operation of the static model that this call realises.
    #[serde(default)]
    pub static_id: Option<String>,
    /// Where it was seen, for people.
    #[serde(default)]
    pub source: Option<String>,
    /// Ids of the tensors that went in.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Id of the tensor that came out.
    #[serde(default)]
    pub output: Option<String>,
    /// The step it was seen in.
    #[serde(default)]
    pub step: Option<u64>,
    /// Wall time of the call.
    #[serde(default)]
    pub duration_ns: Option<u64>,
}

/// What was found where a gradient was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientState {
    /// A finite gradient that is not zero.
    Present,
    /// No gradient was produced.
    Missing,
    /// A gradient whose norm is zero.
    Zero,
    /// A gradient, or a norm, with NaN or an infinity in it.
    NonFinite,
}

impl GradientState {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GradientState::Present => "present",
            GradientState::Missing => "missing",
            GradientState::Zero => "zero",
            GradientState::NonFinite => "non_finite",
        }
    }
}

impl fmt::Display for GradientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The gradient of one parameter, as it was seen once.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GradientFact {
    /// Unique in the document, over all collections.
    pub event_id: String,
    /// The variable builder the parameter hangs under.
    pub root: String,
    /// The parameter's key below `root`.
    pub key: String,
    /// What was found.
    pub state: GradientState,
    /// The step it was seen in.
    #[serde(default)]
    pub step: Option<u64>,
    /// Its norm; which norms go with which state is in the [module documentation](super).
    #[serde(default)]
    pub norm: Option<f64>,
}

/// The range of the values of one tensor. `min`, `max` and `abs_max` are over the finite elements.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ValueObservation {
    /// Unique in the document, over all collections.
    pub event_id: String,
    /// The tensor of the static model that was looked at.
    #[serde(default)]
    pub static_id: Option<String>,
    /// Where it was seen, for people.
    #[serde(default)]
    pub source: Option<String>,
    /// The step it was seen in.
    #[serde(default)]
    pub step: Option<u64>,
    /// Least finite value.
    pub min: f64,
    /// Greatest finite value.
    pub max: f64,
    /// Greatest magnitude.
    pub abs_max: f64,
    /// How many elements were NaN or infinite.
    #[serde(default)]
    pub nonfinite_count: u64,
    /// How many elements were at the end of their range.
    #[serde(default)]
    pub saturated_count: u64,
}

/// The time between two nodes of the static model, along one edge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct EdgeTimingObservation {
    /// Unique in the document, over all collections.
    pub event_id: String,
    /// Where the edge starts.
    pub from_static_id: String,
    /// Where it ends.
    pub to_static_id: String,
    /// How long it took.
    pub duration_ns: u64,
    /// The step it was seen in.
    #[serde(default)]
    pub step: Option<u64>,
}

/// The short name of [`EdgeTimingObservation`].
pub type EdgeTiming = EdgeTimingObservation;

/// Records that are missing from the recording, and why: our extension, which other readers skip.
/// In the document form it is the top-level array `gaps`, in JSONL the key `gaps` of the meta line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RuntimeGap {
    /// The name of a [`GapClass`](crate::GapClass).
    pub class: String,
    /// The name of a [`GapReason`](crate::GapReason).
    pub reason: String,
    /// The lane whose records are missing; `None` where it is not one lane's.
    #[serde(default)]
    pub lane: Option<u32>,
    /// Start of the time range, where it is known.
    #[serde(default)]
    pub first_ns: Option<u64>,
    /// End of the time range, where it is known.
    #[serde(default)]
    pub last_ns: Option<u64>,
    /// How many records are missing.
    #[serde(default)]
    pub records: u64,
    /// How many groups they made.
    #[serde(default)]
    pub groups: u64,
    /// The planes whose evidence is incomplete.
    #[serde(default)]
    pub planes: Vec<String>,
}

/// A whole trace: what a reader returns once every rule of the format holds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RuntimeDocument {
    /// One of [`SCHEMAS`](super::SCHEMAS).
    pub schema: String,
    /// What ran.
    pub run: RunMetadata,
    /// Tensors.
    #[serde(default)]
    pub tensors: Vec<TensorObservation>,
    /// Operations.
    #[serde(default)]
    pub operations: Vec<OperationObservation>,
    /// Gradients.
    #[serde(default)]
    pub gradients: Vec<GradientFact>,
    /// Value ranges.
    #[serde(default)]
    pub values: Vec<ValueObservation>,
    /// Edge timings.
    #[serde(default)]
    pub edge_timings: Vec<EdgeTimingObservation>,
    /// What the recording lacks.
    #[serde(default)]
    pub gaps: Vec<RuntimeGap>,
}

/// The neighbour's name for [`RuntimeDocument`].
pub type RuntimeTrace = RuntimeDocument;

impl RuntimeDocument {
    /// How many observations there are, over all collections.
    #[must_use]
    pub fn len(&self) -> usize {
        [
            self.tensors.len(),
            self.operations.len(),
            self.gradients.len(),
            self.values.len(),
            self.edge_timings.len(),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Whether nothing was observed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the collections into the order every importer gives them, so that two readings of the
    /// same facts compare equal: ids sort as *text*, so `op-10` comes before `op-2` unless the
    /// numbers are padded.
    pub fn normalize(&mut self) {
        for list in [&mut self.run.cargo_features, &mut self.run.cfg] {
            list.sort();
            list.dedup();
        }
        self.tensors.sort_by(|a, b| {
            (&a.event_id, &a.static_id, &a.source).cmp(&(&b.event_id, &b.static_id, &b.source))
        });
        self.operations.sort_by(|a, b| {
            (&a.event_id, &a.op, &a.static_id).cmp(&(&b.event_id, &b.op, &b.static_id))
        });
        self.gradients.sort_by(|a, b| {
            (&a.root, &a.key, a.step, &a.event_id).cmp(&(&b.root, &b.key, b.step, &b.event_id))
        });
        self.values.sort_by(|a, b| {
            (&a.event_id, a.step, &a.source).cmp(&(&b.event_id, b.step, &b.source))
        });
        self.edge_timings.sort_by(|a, b| {
            (&a.from_static_id, &a.to_static_id, a.step, &a.event_id).cmp(&(
                &b.from_static_id,
                &b.to_static_id,
                b.step,
                &b.event_id,
            ))
        });
    }
}
