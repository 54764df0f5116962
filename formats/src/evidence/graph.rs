//! `candle-graph/graph/5`: how a run went, as nodes and edges.

use crate::published::finite;
use crate::published::label::label;
use crate::runtime::GradientState;
use crate::trace::MemoryCategory;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

label! {
    /// The schema of a [`Graph`].
    GraphSchema = "candle-graph/graph/5"
}

/// The graph of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph<'a> {
    /// The label.
    pub schema: GraphSchema,
    /// Spans by id, then operations in the order of the trace, then tensors by id.
    pub spans: Vec<GraphNode<'a>>,
    /// By from, then to, then kind; each once.
    pub edges: Vec<GraphEdge<'a>>,
    /// The tensors of the trace, in its order.
    pub tensors: Vec<GraphTensor<'a>>,
    /// The gradients of the trace, in its order.
    pub gradients: Vec<GraphGradient<'a>>,
    /// What stands out.
    pub summary: GraphSummary<'a>,
}

/// One span, operation or tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode<'a> {
    /// The span's id, `<span>/op/<index>` or `tensor/<tensor>`.
    pub id: Cow<'a, str>,
    /// What it hangs under; none of the root, `null` in JSON.
    pub parent_id: Option<Cow<'a, str>>,
    /// The name.
    pub name: Cow<'a, str>,
    /// What it is.
    pub kind: GraphNodeKind,
    /// When it began.
    pub start_ns: u64,
    /// Its time less that of what hangs under it.
    pub host_self_time_ns: u64,
    /// Its time.
    pub host_total_time_ns: u64,
    /// Its time on devices, each clock by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_timings: Vec<GraphDeviceTiming<'a>>,
    /// Dimensions, of an operation or tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Cow<'a, [u64]>>,
    /// Element type, of an operation or tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Cow<'a, str>>,
    /// Device, of an operation or tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Cow<'a, str>>,
    /// Storage that was allocated in it, not counting what hangs under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// The greatest sum of storage that was live of it and what hangs under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_live_bytes: Option<u64>,
    /// What of that is live when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_bytes: Option<u64>,
    /// Elements by size of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dense_bytes: Option<u64>,
}

/// What a node is. A word of a later version reads as [`Other`](GraphNodeKind::Other).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphNodeKind {
    /// The span without parent.
    Root,
    /// A span of a function.
    Function,
    /// A span of a module.
    Module,
    /// An operation, or a span of one.
    Op,
    /// A tensor.
    Tensor,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// A node's time on one clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDeviceTiming<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// The clock.
    pub clock_id: Cow<'a, str>,
    /// How long the union of its intervals is.
    pub busy_ns: u64,
}

/// A line between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GraphEdge<'a> {
    /// From a span to what ran in it.
    Call {
        /// The node above.
        from_span: Cow<'a, str>,
        /// The node below.
        to_span: Cow<'a, str>,
        /// How long that took.
        host_duration_ns: u64,
        /// The operation's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<Cow<'a, str>>,
    },
    /// From what produced to what consumed.
    Data {
        /// Where the data comes from.
        from_tensor: Cow<'a, str>,
        /// Where it goes.
        to_tensor: Cow<'a, str>,
        /// `input` or `output`, of an operation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<Cow<'a, str>>,
    },
}

/// One tensor, as the trace has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphTensor<'a> {
    /// The span it was seen in.
    pub span_id: Cow<'a, str>,
    /// Its id.
    pub tensor_id: Cow<'a, str>,
    /// The caller's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'a, str>>,
    /// Dimensions.
    pub shape: Cow<'a, [u64]>,
    /// Element type.
    pub dtype: Cow<'a, str>,
    /// Device.
    pub device: Cow<'a, str>,
    /// Whether a gradient is tracked.
    pub requires_grad: bool,
    /// Elements by size of an element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense_bytes: Option<u64>,
    /// What it is for.
    pub category: MemoryCategory,
}

/// One gradient, as the trace has it, without its event id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphGradient<'a> {
    /// The variable builder the parameter hangs under.
    pub root: Cow<'a, str>,
    /// The parameter's key below `root`.
    pub key: Cow<'a, str>,
    /// What was found.
    pub state: GradientState,
    /// Its norm, where it has one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "finite::write_option"
    )]
    pub norm: Option<f64>,
}

/// What stands out of a graph. Each list has at most eight entries, the greatest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSummary<'a> {
    /// What ran.
    pub entrypoint: Cow<'a, str>,
    /// How long the measured region took.
    pub outer_wall_time_ns: u64,
    /// By host time of their own inside the measured region.
    pub slowest_host_spans: Vec<GraphHostCost<'a>>,
    /// By time on a device.
    pub slowest_device_spans: Vec<GraphDeviceCost<'a>>,
    /// By storage that was allocated in them.
    pub heaviest_spans: Vec<GraphHeavySpan<'a>>,
}

/// The host time of one span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphHostCost<'a> {
    /// The span.
    pub id: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// How it belongs to the measured region.
    pub scope: GraphScope,
    /// Its own time.
    pub host_self_time_ns: u64,
    /// What of that is inside the measured region.
    pub measured_overlap_self_time_ns: u64,
    /// Its time.
    pub full_duration_ns: u64,
    /// What of that is inside the measured region.
    pub measured_overlap_duration_ns: u64,
}

words! {
    /// How a span belongs to the measured region.
    GraphScope {
        /// It is the measured span or hangs under it.
        MeasuredSubtree "measured_subtree",
        /// It does not, but ran at the same time.
        ConcurrentOverlap "concurrent_overlap",
    }
}

/// The time of one span on one clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDeviceCost<'a> {
    /// The span.
    pub id: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// The device.
    pub device: Cow<'a, str>,
    /// The clock.
    pub clock_id: Cow<'a, str>,
    /// How long the union of its intervals is.
    pub device_busy_ns: u64,
}

/// The storage of one span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphHeavySpan<'a> {
    /// The span.
    pub id: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// What was allocated in it.
    pub allocated_bytes: u64,
    /// The greatest sum that was live; `null` where it is not known.
    pub peak_live_bytes: Option<u64>,
}
