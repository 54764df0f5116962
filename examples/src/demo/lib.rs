//! The demo: trains a small transformer on a CPU, in seconds, and records it.
//!
//! `cargo demo` leaves three files in its directory: `losses.csv`, the recording `run.tmrun`, and
//! `run.runtime.json`, which is made of the recording. What it prints at the end is read from the
//! recording and from nothing else.
//!
//! With `--plant-nan`, one element of one layer's output becomes NaN halfway through. The loss of
//! that update is NaN and, because the optimizer carries the damage into the weights, so is every
//! later one: finding the layer where it began takes more than the loss curve.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `model.rs`, `block.rs`, `text.rs` | the model and what it learns; nothing of the probe |
//! | `layer.rs` | the one place every layer's call goes through: spans, operations, tensors |
//! | `train.rs` | the loop: steps, phases, loss, gradients |
//! | `record.rs` | the probe, and what a run is |
//! | `evidence.rs`, `report/` | what a recording says, read back and printed |

mod args;
mod block;
mod evidence;
mod layer;
mod model;
mod record;
mod report;
mod run;
mod table;
mod text;
mod train;

pub use args::Args;
pub use evidence::{Evidence, GradientCounts, LayerTime, NonFinite, PartTime, StepTime};
pub use layer::{Fault, Heads, Kind, Layer, Pass};
pub use record::{PROBE, contract_of, run_of};
pub use report::write_report;
pub use run::{BROKEN_LAYER, RECORDING, RUNTIME, run};
pub use train::Trainer;
