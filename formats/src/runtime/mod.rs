//! `candle-graph/runtime/1`, `/2` and `/3`: tensors, operations, gradients, value ranges and edge
//! timings of one run, as one JSON document or as JSONL.
//!
//! Guarantees:
//!
//! - What [`read`] accepts, `candle-graph` 0.3.0 accepts, and the other way round, with two
//!   exceptions: a known key given twice in one object is refused here in either form, and a JSONL
//!   record must be an object, not an array of its fields.
//! - Any bytes end in a [`RuntimeDocument`] or a [`ReadError`] with line, offset or record, what was
//!   expected and what was found. Nothing panics, and memory stays in proportion to the input.
//! - What the [writer](RuntimeTraceWriter) takes, every reader accepts. What a reader would refuse,
//!   the writer refuses before it writes a byte of it.
//! - No NaN, no infinity, no `-0.0`, no byte order mark; all 64 bits of an integer.
//! - Unknown fields are skipped. `gaps` is ours: other readers skip it.
//!
//! The rules: the label is one of [`SCHEMAS`]; every `event_id` is non-empty and unique over all
//! collections; and a gradient's norm goes with its state:
//!
//! | state | norm |
//! | --- | --- |
//! | `present` | none, or finite and not zero |
//! | `zero` | none, or 0.0 |
//! | `missing` | none |
//! | `non_finite` | none (in memory also NaN or an infinity, which are not written) |
//!
//! ```
//! use tmrun_formats::runtime::{
//!     GradientFact, GradientState, RunMetadata, RuntimeTraceWriter, SCHEMA_V3, read,
//! };
//!
//! let run = RunMetadata {
//!     entrypoint: "model::train_step".into(),
//!     profile: "release".into(),
//!     phase: Some("train".into()),
//!     ..Default::default()
//! };
//! let mut trace = RuntimeTraceWriter::new_with_schema(Vec::new(), SCHEMA_V3, run)?;
//! let mut fact = GradientFact {
//!     event_id: "grad-000001".into(),
//!     root: "vb".into(),
//!     key: "head.weight".into(),
//!     state: GradientState::Present,
//!     step: Some(1),
//!     norm: Some(0.0),
//! };
//! assert!(trace.gradient(&fact).is_err(), "a present gradient has no zero norm");
//! fact.norm = Some(0.125);
//! trace.gradient(&fact)?;
//! let text = trace.finish()?;
//!
//! assert_eq!(read(&text).unwrap().gradients, [fact]);
//! # Ok::<(), tmrun_formats::runtime::WriteError>(())
//! ```

mod document;
pub mod encode;
mod error;
mod outline;
mod read;
mod schema;
mod validate;
mod view;
mod whole;
mod write;

pub use document::{
    EdgeTiming, EdgeTimingObservation, GradientFact, GradientState, OperationObservation,
    RunMetadata, RuntimeDocument, RuntimeGap, RuntimeTrace, TensorObservation, ValueObservation,
};
pub use encode::Record;
pub use error::{JsonFault, Place, ReadError, Refusal, WriteError};
pub use read::{parse, parse_json, parse_jsonl, read};
pub use schema::{SCHEMA, SCHEMA_V1, SCHEMA_V2, SCHEMA_V3, SCHEMAS, Section, is_known_schema};
pub use view::{Dim, EdgeTimingRef, GradientRef, OperationRef, TensorRef, ValueRef};
pub use whole::DocumentEncoder;
pub use write::RuntimeTraceWriter;
