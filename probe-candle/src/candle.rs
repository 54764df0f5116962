//! The names of `candle_graph::candle`, so that a program which was written for it moves over by its
//! imports. What differs: errors are typed, nothing here fails because of an element type, and a storage
//! whose lifetime is recorded has its epoch in its identity.
//!
//! Everything is owned text, and so costs allocations; see [`SessionExt`](crate::SessionExt) and
//! [`CandleRecorder`](crate::CandleRecorder) for what does not.
//!
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use tmrun_probe_candle::candle::{self, CandleCapture, CandleOpCapture};
//! use tmrun_probe_core::session::{ExecutionStep, ProfileRun, SpanKind, TraceSession};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("request-1.tmrun");
//! let session = TraceSession::open(path, ProfileRun::inference("serve::request", 1, "cpu"))?;
//! let (x, w) = (Tensor::ones((2, 3), DType::F32, &Device::Cpu)?, Tensor::ones((3, 4), DType::F32, &Device::Cpu)?);
//! {
//!     let span = session.begin_span("head", SpanKind::Op);
//!     let started = session.elapsed_ns();
//!     let y = x.matmul(&w)?;
//!     let took = session.elapsed_ns() - started;
//!     let inputs = vec![candle::tensor_id(&x), candle::tensor_id(&w)];
//!     let bytes = candle::inputs_dense_bytes(&[&x, &w]);
//!     let step = Some(ExecutionStep::Forward);
//!     let op = CandleOpCapture::new("matmul", inputs, &y, bytes, took, started, step);
//!     candle::record_op(&session, span.id(), &op)?; // and its output: it needs no record of its own
//!
//!     // The label is the application's; the identities are candle's, and only read.
//!     let weight = CandleCapture::from_tensor(&w, None).with_label("head/weight");
//!     assert_ne!(weight.storage_id(), op.output.storage_id());
//!     candle::record_tensor(&session, span.id(), &weight)?;
//! }
//! session.finish()?;
//! # Ok(())
//! # }
//! ```

use candle_core::{DType, Device, Tensor};
use tmrun_probe_core::session::{
    ExecutionStep, MemoryCategory, OpRecord, SessionError, SpanId, TensorRecord, TraceSession,
};

pub use crate::plan::GradientCapturePlan;
use crate::recorder::dense_bytes;
use crate::text;

/// A tensor's metadata as owned values, to be kept between calls. It keeps no tensor.
///
/// Identities are what candle had at the time and cannot be set; what the application calls the tensor is
/// its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandleCapture {
    storage_id: String,
    tensor_id: String,
    /// What the application calls the observation.
    pub label: Option<String>,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: String,
    /// Where it is.
    pub device: String,
    /// Bytes of its elements: a footprint, not an allocation.
    pub tensor_bytes: u64,
    /// Whether it is a variable.
    pub requires_grad: bool,
    /// What it is for.
    pub category: MemoryCategory,
}

/// An operation that has ended, with its output's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandleOpCapture {
    /// Its name, such as `matmul`.
    pub op_name: String,
    /// Identities of the tensors that went in.
    pub inputs: Vec<String>,
    /// What came out.
    pub output: CandleCapture,
    /// Bytes of the inputs' elements together.
    pub input_tensor_bytes: u64,
    /// How long it took; on an accelerator, how long its launch did.
    pub duration_ns: u64,
    /// When it began, in the session's time; 0: that it ends when it is recorded.
    pub timestamp_ns: u64,
}

/// A tensor's identity as a text: candle's own number, which is never used again within the process.
pub fn tensor_id(t: &Tensor) -> String {
    text::of_tensor(t).as_str().to_owned()
}

/// The identity of the storage behind a tensor as a text, see [`storage_id`](crate::storage_id).
pub fn storage_id(t: &Tensor) -> String {
    text::of_storage_of(t).as_str().to_owned()
}

/// A device as a text: `cpu`, `cuda:0`, `metal:0`.
pub fn device_label(device: &Device) -> String {
    text::of_device(device.location()).as_str().to_owned()
}

/// An element type as a text: `f32`, `bf16`.
pub fn dtype_label(dtype: DType) -> String {
    dtype.as_str().to_owned()
}

/// Bytes of a tensor's elements, see [`dense_bytes`].
pub fn tensor_dense_bytes(t: &Tensor) -> u64 {
    dense_bytes(t)
}

/// Bytes of the elements of all of them.
pub fn inputs_dense_bytes(tensors: &[&Tensor]) -> u64 {
    tensors.iter().fold(0, |sum, tensor| dense_bytes(tensor).saturating_add(sum))
}

impl CandleCapture {
    /// Takes a tensor's metadata. A variable is a parameter; of others the part of the training step that
    /// they are made in says what they are for (without one: an activation).
    ///
    /// It waits for the storage's read lock, see [`storage_id`](crate::storage_id).
    pub fn from_tensor(t: &Tensor, step: Option<ExecutionStep>) -> Self {
        let requires_grad = t.is_variable();
        let category = match step {
            _ if requires_grad => MemoryCategory::Parameter,
            Some(ExecutionStep::Backward) => MemoryCategory::Gradient,
            Some(ExecutionStep::Optimizer) => MemoryCategory::Optimizer,
            Some(ExecutionStep::Forward) | None => MemoryCategory::Activation,
        };
        Self {
            storage_id: storage_id(t),
            tensor_id: tensor_id(t),
            label: None,
            shape: t.dims().to_vec(),
            dtype: dtype_label(t.dtype()),
            device: device_label(t.device()),
            tensor_bytes: dense_bytes(t),
            requires_grad,
            category,
        }
    }

    /// The same under a label of the application's.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// The storage's identity.
    pub fn storage_id(&self) -> &str {
        &self.storage_id
    }

    /// The tensor's identity.
    pub fn tensor_id(&self) -> &str {
        &self.tensor_id
    }
}

impl CandleOpCapture {
    /// An operation that gave `output`.
    pub fn new(
        op_name: impl Into<String>,
        inputs: Vec<String>,
        output: &Tensor,
        input_bytes: u64,
        duration_ns: u64,
        timestamp_ns: u64,
        step: Option<ExecutionStep>,
    ) -> Self {
        Self {
            op_name: op_name.into(),
            inputs,
            output: CandleCapture::from_tensor(output, step),
            input_tensor_bytes: input_bytes,
            duration_ns,
            timestamp_ns,
        }
    }
}

/// Records a capture of a tensor (level 2). It allocates nothing.
///
/// # Errors
///
/// When the span is none of this session's.
pub fn record_tensor(
    session: &TraceSession,
    span_id: SpanId,
    cap: &CandleCapture,
) -> Result<(), SessionError> {
    session.record_tensor(
        span_id,
        TensorRecord {
            tensor_id: cap.tensor_id(),
            label: cap.label.as_deref(),
            shape: &cap.shape,
            dtype: &cap.dtype,
            device: &cap.device,
            requires_grad: cap.requires_grad,
            dense_bytes: Some(cap.tensor_bytes),
            category: cap.category,
        },
    )
}

/// Records a tensor under a label (level 2).
///
/// # Errors
///
/// When the span is none of this session's.
pub fn record_tensor_with_label(
    session: &TraceSession,
    span_id: SpanId,
    label: impl Into<String>,
    tensor: &Tensor,
    step: Option<ExecutionStep>,
) -> Result<(), SessionError> {
    let cap = CandleCapture::from_tensor(tensor, step).with_label(label);
    record_tensor(session, span_id, &cap)
}

/// Records an operation (level 1) and, once, the tensor that came out (level 2): no call of
/// [`record_tensor`] is to be made of it.
///
/// # Errors
///
/// When the span is none of this session's.
pub fn record_op(
    session: &TraceSession,
    span_id: SpanId,
    cap: &CandleOpCapture,
) -> Result<(), SessionError> {
    session.record_op(
        span_id,
        OpRecord {
            op_name: &cap.op_name,
            inputs: &cap.inputs,
            output: Some(cap.output.tensor_id()),
            shape: &cap.output.shape,
            dtype: &cap.output.dtype,
            device: &cap.output.device,
            duration_ns: cap.duration_ns,
            timestamp_ns: cap.timestamp_ns,
            output_dense_bytes: Some(cap.output.tensor_bytes),
            input_dense_bytes: cap.input_tensor_bytes,
        },
    )?;
    record_tensor(session, span_id, &cap.output)
}
