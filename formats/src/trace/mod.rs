//! `candle-graph/trace/10`, and `/9`: spans, operations, tensors, memory and gradients of one captured
//! step of one run, as JSONL.
//!
//! Guarantees:
//!
//! - What [`TraceDocument::read`] accepts, `candle-graph` 0.10.1 accepts with the same content, and
//!   the other way round.
//! - Any bytes end in a [`TraceDocument`] or a [`ReadError`] with line, what was expected and what was
//!   found. Nothing panics, and memory stays in proportion to the input.
//! - A document borrows its texts from the input, but for those that JSON escapes.
//! - A trace can be cut between lines and its [parts](TracePart) read on several threads.
//! - What the [writer](TraceWriter) takes, every reader accepts. What a reader would refuse, the
//!   writer refuses before it writes a byte of it.
//! - A float is the shortest decimal that reads back to the same bits, the sign of zero included; an
//!   integer keeps all 64 bits.
//!
//! The rules: the first line is the only one of kind meta, the last the only terminal; a span begins
//! once, and may end once, on a later line; [statistics](TensorStats) agree with themselves and exist
//! from `/10` on; a run that [failed](RunOutcome) has a reason, another has none; and it ends no
//! earlier than the last of its spans, operations and memory events. That a trace is read does not
//! make it sound: whether parents exist or times lie in their spans is for an analysis to say.
//!
//! ```
//! use tmrun_formats::trace::{
//!     ReadError, RunOutcome, SpanEnd, SpanKind, SpanStart, Terminal, TraceDocument, TraceRun,
//!     TraceWriter, WriteError,
//! };
//!
//! let run: TraceRun = serde_json::from_str(
//!     r#"{"run_id": "run-1", "correlation_id": "step/1", "entrypoint": "model::step",
//!         "phase": "train", "timestamp": "2026-08-04T18:00:00.000Z", "capture_step": 1,
//!         "warmup_steps": 0, "device": "cpu", "timing_mode": "host", "tags": {},
//!         "capture_contract": {"measurement_scope": "unknown", "operations": "none",
//!           "logical_memory": "none", "physical_memory": "none", "device_timing": "none"}}"#,
//! )?;
//! run.check()?;
//!
//! let mut trace = TraceWriter::new(Vec::new(), &run)?;
//! trace.span_start(&SpanStart {
//!     id: "s1".into(),
//!     parent_id: None,
//!     name: "model::step".into(),
//!     start_ns: 0,
//!     kind: SpanKind::Function,
//!     measured: true,
//!     step: None,
//! })?;
//! let end = SpanEnd { id: "s1".into(), duration_ns: 1_500 };
//! trace.span_end(&end)?;
//! assert!(matches!(trace.span_end(&end), Err(WriteError::EndTwice { .. })));
//! trace.terminal(&Terminal {
//!     outcome: RunOutcome::Complete,
//!     timestamp_ns: 1_500,
//!     reason: None,
//! })?;
//! let text = trace.finish()?;
//!
//! let document = TraceDocument::read(&text)?;
//! assert_eq!(document.run, run);
//! assert_eq!(document.span("s1").unwrap().duration_ns, Some(1_500));
//! let cut = text.len() - 10;
//! assert!(matches!(TraceDocument::read(&text[..cut]), Err(ReadError::Json { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dense;
mod document;
pub mod encode;
mod error;
mod event;
mod known;
mod line;
mod meta;
mod part;
mod rules;
mod schema;
mod span;
mod text;
mod write;

pub use crate::runtime::{GradientState, JsonFault, Place};
pub use dense::{dense_bytes, dtype_bytes};
pub use document::TraceDocument;
pub use error::{ReadError, Refusal, WriteError};
pub use event::{
    CallEdge, DataEdge, DeviceInterval, DeviceMemory, Edge, Gradient, Memory, MemoryAction,
    MemoryCategory, Op, RunOutcome, SpanEnd, SpanKind, SpanStart, Tensor, TensorStats, Terminal,
    TraceStep,
};
pub use line::TraceLine;
pub use meta::{
    CaptureContract, ComparisonIdentity, ContractError, CoverageLevel, ExpectedGradient,
    GRADIENT_MANIFEST_SCHEMA, GradientContract, GradientContractError, GradientFamilyContract,
    GradientFamilyExpectation, IdentityError, LabelFault, MeasurementScope, RunError, TimingMode,
    TracePhase, TraceRun,
};
pub use part::TracePart;
pub use schema::{SCHEMA, TraceSchema};
pub use span::Span;
pub use write::TraceWriter;
