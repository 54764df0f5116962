//! From a trace to what it says: `candle-graph/evidence/5`.
//!
//! What a reader of the code can rely on:
//!
//! - [`derive()`] says what `candle-graph` 0.10.1 says, value by value, but for what it says in words and
//!   for what `docs/COMPATIBILITY.md` lists.
//! - Every part is `of(&TraceDocument, &Index, …)`; ids are resolved once, in [`Index`], and no part
//!   hashes a span's id again.
//! - Time and memory grow with the trace, or with its logarithm where something is sorted; nothing
//!   recurses, so that depth costs no stack.
//! - Texts are borrowed from the trace.
//!
//! ```
//! use tmrun::evidence::{derive, read};
//! use tmrun_formats::evidence::HealthCode;
//!
//! let text = r#"
//! {"kind":"meta","schema":"candle-graph/trace/10","run_id":"r","correlation_id":"c","entrypoint":"e","phase":"infer","timestamp":"t","capture_step":1,"warmup_steps":0,"device":"cpu","timing_mode":"host","capture_contract":{"measurement_scope":"unknown","operations":"none","logical_memory":"none","physical_memory":"none","device_timing":"none"},"tags":{}}
//! {"kind":"span_start","id":"s1","name":"step","start_ns":0,"span_kind":"function","measured":true}
//! {"kind":"span_start","id":"s2","parent_id":"s1","name":"forward","start_ns":5,"span_kind":"module"}
//! {"kind":"span_end","id":"s2","duration_ns":90}
//! {"kind":"span_end","id":"s1","duration_ns":80}
//! {"kind":"terminal","outcome":"complete","timestamp_ns":95}
//! "#;
//! let trace = read(text.as_bytes())?;
//! let evidence = derive(&trace, None, None)?;
//! assert!(!evidence.health.structurally_valid, "the inner span ends behind the outer one");
//! assert_eq!(evidence.health.issues[0].code.known(), Some(HealthCode::ChildOutsideParent));
//! assert_eq!(evidence.graph, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod activations;
pub mod capabilities;
mod derive;
mod error;
pub mod facts;
pub mod findings;
pub mod gaps;
pub mod gpu;
pub mod graph;
pub mod health;
mod index;
mod intervals;
mod link;
pub mod memory;
mod ranks;
mod read;
pub mod timing;

pub use derive::{derive, graph_despite_gradients};
pub use error::EvidenceError;
pub use index::{Index, Storages, Tensors, Tree};
pub use link::{Groups, Link};
pub use read::read;
