//! The events behind the first line. Texts are borrowed from the input where it holds them as they
//! are.
//!
//! Times are nanoseconds on the host since the run began, but those of a [`DeviceInterval`].

use super::text;
use crate::runtime::GradientState;
use crate::words::words;
use serde::Deserialize;
use std::borrow::Cow;

words! {
    /// What a span stands for.
    SpanKind {
        /// A function or a region of code.
        Function "function",
        /// One operation.
        Op "op",
        /// A module of the model.
        Module "module",
    }
}

words! {
    /// The part of a training step that a span covers.
    TraceStep {
        /// Forward.
        Forward "forward",
        /// Backward.
        Backward "backward",
        /// The optimizer's.
        Optimizer "optimizer",
    }
}

words! {
    /// What a tensor or a storage is for.
    #[derive(Default)]
    MemoryCategory {
        /// A trained parameter.
        Parameter "parameter",
        /// An activation.
        Activation "activation",
        /// A gradient.
        Gradient "gradient",
        /// State of the optimizer.
        Optimizer "optimizer",
        /// Anything else.
        #[default]
        Other "other",
    }
}

words! {
    /// What happened to a storage.
    MemoryAction {
        /// It came.
        Alloc "alloc",
        /// It went.
        Free "free",
    }
}

words! {
    /// How a run ended.
    RunOutcome {
        /// As it should.
        Complete "complete",
        /// Early, for a reason.
        Failed "failed",
    }
}

/// A span begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SpanStart<'a> {
    /// No other span has it.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The span it lies in; none for the root.
    #[serde(borrow, default, deserialize_with = "text::optional")]
    pub parent_id: Option<Cow<'a, str>>,
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// When.
    pub start_ns: u64,
    /// What it stands for.
    #[serde(rename = "span_kind")]
    pub kind: SpanKind,
    /// Whether it is the region whose time is the run's.
    #[serde(default)]
    pub measured: bool,
    /// The part of a training step that it covers.
    #[serde(default)]
    pub step: Option<TraceStep>,
}

/// A span that began earlier in the file ends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SpanEnd<'a> {
    /// Which.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// How long it took.
    #[serde(default)]
    pub duration_ns: u64,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Op<'a> {
    /// The span it belongs to.
    #[serde(borrow)]
    pub span_id: Cow<'a, str>,
    /// Its name, such as `matmul`.
    #[serde(borrow)]
    pub op_name: Cow<'a, str>,
    /// Ids of the tensors that went in.
    #[serde(borrow, default, deserialize_with = "text::list")]
    pub inputs: Vec<Cow<'a, str>>,
    /// Id of the tensor that came out.
    #[serde(borrow, default, deserialize_with = "text::optional")]
    pub output: Option<Cow<'a, str>>,
    /// The output's dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// The output's element type.
    #[serde(borrow)]
    pub dtype: Cow<'a, str>,
    /// Where it ran.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// How long it took.
    pub duration_ns: u64,
    /// When it began.
    #[serde(default)]
    pub timestamp_ns: u64,
    /// The output's bytes without gaps; a reader computes them where they are left out.
    #[serde(default)]
    pub output_dense_bytes: Option<u64>,
    /// The inputs' bytes without gaps, together.
    pub input_dense_bytes: u64,
}

/// A tensor, as it was seen once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tensor<'a> {
    /// The span it was seen in.
    #[serde(borrow)]
    pub span_id: Cow<'a, str>,
    /// Which tensor.
    #[serde(borrow)]
    pub tensor_id: Cow<'a, str>,
    /// What the application calls the observation.
    #[serde(borrow, default, deserialize_with = "text::optional")]
    pub label: Option<Cow<'a, str>>,
    /// Dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// Element type.
    #[serde(borrow)]
    pub dtype: Cow<'a, str>,
    /// Where it lies.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// Whether a gradient is tracked.
    #[serde(default)]
    pub requires_grad: bool,
    /// Its bytes without gaps; a reader computes them where they are left out.
    #[serde(default)]
    pub dense_bytes: Option<u64>,
    /// What it is for.
    #[serde(default)]
    pub category: MemoryCategory,
}

/// What the values of a tensor come to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TensorStats<'a> {
    /// The span it was seen in.
    #[serde(borrow)]
    pub span_id: Cow<'a, str>,
    /// What the application calls it, in this run and others.
    #[serde(borrow)]
    pub label: Cow<'a, str>,
    /// Dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// Element type.
    #[serde(borrow)]
    pub dtype: Cow<'a, str>,
    /// The product of the dimensions.
    pub elements: u64,
    /// How many of them are NaN or infinite.
    pub non_finite: u64,
    /// Root of the mean of the squares.
    pub rms: f64,
    /// Greatest magnitude.
    pub abs_max: f64,
    /// Mean.
    pub mean: f64,
}

/// A storage comes or goes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Memory<'a> {
    /// When.
    pub timestamp_ns: u64,
    /// Which storage.
    #[serde(borrow)]
    pub storage_id: Cow<'a, str>,
    /// The tensor that lies in it; several may.
    #[serde(borrow)]
    pub tensor_id: Cow<'a, str>,
    /// The span it happened in.
    #[serde(borrow)]
    pub span_id: Cow<'a, str>,
    /// The operation it happened in.
    #[serde(borrow, default, deserialize_with = "text::optional")]
    pub op_name: Option<Cow<'a, str>>,
    /// Where it lies.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// Its size.
    pub bytes: u64,
    /// Whether it came or went.
    pub action: MemoryAction,
    /// The tensor's dimensions.
    #[serde(default)]
    pub shape: Vec<u64>,
    /// The tensor's element type.
    #[serde(borrow)]
    pub dtype: Cow<'a, str>,
    /// What it is for.
    #[serde(default)]
    pub category: MemoryCategory,
}

/// The memory of a device, as it was seen once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DeviceMemory<'a> {
    /// When.
    pub timestamp_ns: u64,
    /// Which device.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// In use.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// Not in use.
    #[serde(default)]
    pub free_bytes: Option<u64>,
    /// Held by a caching allocator.
    #[serde(default)]
    pub reserved_bytes: Option<u64>,
    /// All there is, where that was asked for by itself.
    #[serde(default)]
    pub capacity_bytes: Option<u64>,
}

/// A time on a device's own clock, which is not the host's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DeviceInterval<'a> {
    /// The span it belongs to.
    #[serde(borrow)]
    pub span_id: Cow<'a, str>,
    /// Which device.
    #[serde(borrow)]
    pub device: Cow<'a, str>,
    /// Which of its streams.
    #[serde(borrow)]
    pub stream_id: Cow<'a, str>,
    /// The clock of both numbers.
    #[serde(borrow)]
    pub clock_id: Cow<'a, str>,
    /// What measured it.
    #[serde(borrow)]
    pub backend: Cow<'a, str>,
    /// When, on that clock.
    pub start_ns: u64,
    /// How long, on that clock.
    pub duration_ns: u64,
}

/// The gradient of one parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Gradient<'a> {
    /// No other gradient has it.
    #[serde(borrow)]
    pub event_id: Cow<'a, str>,
    /// The variable builder the parameter hangs under.
    #[serde(borrow)]
    pub root: Cow<'a, str>,
    /// The parameter's key below `root`.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// What was found.
    pub state: GradientState,
    /// Its norm.
    #[serde(default)]
    pub norm: Option<f64>,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "edge_kind", rename_all = "snake_case")]
pub enum Edge<'a> {
    /// Of two spans.
    #[serde(borrow)]
    Call(CallEdge<'a>),
    /// Of two tensors.
    #[serde(borrow)]
    Data(DataEdge<'a>),
}

/// One span lies in the other.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CallEdge<'a> {
    /// The outer span.
    #[serde(borrow)]
    pub from_span: Cow<'a, str>,
    /// The inner span.
    #[serde(borrow)]
    pub to_span: Cow<'a, str>,
    /// The inner span's duration.
    pub host_duration_ns: u64,
}

/// One tensor was made from the other.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DataEdge<'a> {
    /// The tensor that went in.
    #[serde(borrow)]
    pub from_tensor: Cow<'a, str>,
    /// The tensor that came out.
    #[serde(borrow)]
    pub to_tensor: Cow<'a, str>,
}

/// The end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Terminal<'a> {
    /// How it ended.
    pub outcome: RunOutcome,
    /// When; nothing on the host is later.
    pub timestamp_ns: u64,
    /// Why it failed.
    #[serde(borrow, default, deserialize_with = "text::optional")]
    pub reason: Option<Cow<'a, str>>,
}
