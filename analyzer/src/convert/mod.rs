//! From a recording to `candle-graph/runtime/1`, `/2` or `/3`, as one document or as JSONL.
//!
//! | record | becomes |
//! | --- | --- |
//! | Tensor without flag `context` | `tensors[]` |
//! | Op with its Shape and OpInput | `operations[]` |
//! | Gradient | `gradients[]` |
//! | Range (alone or behind Stats), Scalar | `values[]` |
//! | Edge of kind `static` | `edge_timings[]` |
//! | anything else | counted in `not_represented` |
//!
//! What a reader of the output can rely on:
//!
//! - **Nothing vanishes silently.** What the schema has no place for is counted by kind in
//!   `not_represented`, what stands there otherwise than it was recorded in `notes`, and what the
//!   recording lacks in `gaps`: three extra top-level keys of the document, or of JSONL's meta line.
//!   Gap records are the `gaps`; a fact is counted once, whatever number of records it has.
//! - **Ids.** `event_id` is lane and position of the record that the observation was read from,
//!   zero-padded: unique over all collections, and within a lane text order is the order of events.
//! - **Steps.** An observation belongs to the step that is open on its own lane at its position,
//!   never to a step by time. Outside any step it has no `step`. Where step marks may have been lost
//!   since the last one that survives, the step is that one's and the observation is counted as
//!   `doubtful_step`.
//! - **What is not known.** A tensor whose contiguity was not recorded says `"contiguous":false`,
//!   because the schema demands an answer; a dtype or device without a name is `unknown`; a name
//!   that no intact frame defines is `unnamed` (with its id as `unnamed:17`, and for a gradient's key
//!   with its record as `unnamed@…`, so that two parameters are never taken for one), and counted.
//! - **Values.** A range is over the finite elements. Without any, or for a scalar that is not
//!   finite, it is zeros, and `nonfinite_count` is above 0.
//! - **Gradients.** State and norm never contradict each other: a norm that does not go with the
//!   state is left out and counted, the state stays.
//! - **As it was recorded.** A `static_id` that was seen with two shapes (a smaller last batch) has
//!   two tensors here, although the neighbour's audit calls that a conflict: to hide one would be to
//!   lose evidence. Who wants no conflict records a `static_id` for each shape, or none.
//!
//! Older schemas carry less: `/1` has no steps, values, durations, edge timings and no phase, `/2`
//! adds steps and values, `/3` the rest. With a selection (a step, a phase) all counts are of what
//! it covers. Records of the recorder's own lane belong to no step, and to the run's phase.
//!
//! A first pass over the mapped file takes the census ([`Plan::of`]); then each collection is a pass
//! of its own over the blocks of chunks that have anything for it. Blocks are encoded on all cores,
//! a batch at a time, and written in file order: memory is a few buffers a core, and a byte for a
//! block of some hundred chunks. The output does not depend on the number of cores.
//!
//! ```no_run
//! use tmrun::convert::{Options, Plan};
//! use tmrun::input::Input;
//! use tmrun::scan::Recording;
//!
//! let input = Input::open("run.tmrun".as_ref())?;
//! let recording = Recording::open(&input, input.name())?;
//! let plan = Plan::of(&recording, Options::default())?;
//! plan.write(&mut std::io::stdout().lock(), &|_| ())?;
//! assert_eq!(plan.lost().count(), 0, "nothing was lost");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod census;
mod cover;
mod cursor;
mod edge;
mod encode;
mod error;
mod event;
mod fact;
mod gradient;
mod operation;
mod options;
mod phase;
mod plan;
mod run;
mod source;
mod tally;
mod tensor;
mod text;
mod value;
mod write;

pub(crate) use event::EventId;
pub(crate) use operation::inputs;
pub(crate) use source::Id;
pub(crate) use tensor::dims_of;
pub(crate) use text::Text;

pub use error::ConvertError;
pub use options::{Form, Options, Schema};
pub use phase::PhaseSet;
pub use plan::Plan;
pub use tally::{Absent, Note, Tally};
