//! The packet as a whole.

use super::{
    Activations, Capabilities, Fact, Finding, Gpu, Graph, Health, Memory, TensorStats, Timing,
};
use crate::published::label::label;
use crate::trace::TraceRun;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

label! {
    /// The schema of [`Evidence`].
    EvidenceSchema = "candle-graph/evidence/5"
}

/// Everything that is said of one trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence<'a> {
    /// The label.
    pub schema: EvidenceSchema,
    /// What the trace says of its run.
    pub provenance: TraceRun,
    /// Whether the trace can be believed.
    pub health: Health<'a>,
    /// What may be said on its strength.
    pub capabilities: Capabilities<'a>,
    /// What stands out.
    pub findings: Vec<Finding<'a>>,
    /// Single numbers.
    pub facts: Vec<Fact<'a>>,
    /// What is missing: sorted by bytes, each once.
    pub gaps: Vec<Cow<'a, str>>,
    /// How the run went; of a complete and valid capture only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph<'a>>,
    /// Summaries of tensors, in the order of the trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensor_stats: Vec<TensorStats<'a>>,
    /// Time on devices.
    pub timing: Timing<'a>,
    /// Memory, as the program and as the device saw it.
    pub memory: Memory<'a>,
    /// What the activations cost.
    pub activations: Activations<'a>,
    /// What Nsight saw.
    pub gpu: Gpu<'a>,
}
