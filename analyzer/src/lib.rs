//! Reads `.tmrun` recordings, makes evidence of them, and answers questions.
//!
//! Guarantees:
//!
//! - **No input is trusted.** Any bytes end in a value or in an error that names file, offset, expected
//!   and found; nothing from outside sizes, indexes or is added up unchecked.
//! - **Loss is never silent.** What is missing from a recording is a [`Gap`](scan::Gap) with its reason,
//!   and goes with every result that is made of it, up to the exit code of the command.
//! - **A claim needs its records.** What was lost or never asked for inside a step refutes `complete`
//!   for what it touches ([`trace`]); the bundle says by which gap.
//! - **What is of the neighbour's formats is the neighbour's**: `candle-graph` 0.10.1 reads it, and codes,
//!   fields, levels, numbers and orders are its own. docs/COMPATIBILITY.md lists where it errs.
//! - **Files appear whole or not at all**, and no input is written to.
//! - **Memory does not grow with a recording's records**, unless a function says so.
//!
//! The path of a record: [`input`] maps the file, [`scan`] checks it and finds what is missing,
//! [`convert`] writes `candle-graph/runtime` JSON; [`slice`](mod@slice) cuts a step out, [`trace`] makes a
//! `trace/10` of it, [`evidence`] derives what that shows, [`query`] answers from it, [`bundle`] publishes
//! it, and [`comparison`] holds several against each other. [`severed`] names where gradients stop. What others
//! wrote is for [`audit`], [`nsight`]
//! and [`source`]; what was damaged is for [`salvage`].
//!
//! A step of a recorded run, as evidence:
//!
//! ```
//! use tmrun::evidence::derive;
//! use tmrun::scan::Recording;
//! use tmrun::slice::Region;
//! use tmrun::trace::Trace;
//! use tmrun_probe_core::{Level, ProfileRun, probe, span};
//!
//! probe!(static PROBE: lanes = 1, slots = 1 << 10);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! let run = ProfileRun::training("trainer::update", 1, "cpu").level(Level::TIMING);
//! let recorder = PROBE.record(&path, run)?;
//! for update in 1..=3 {
//!     let _step = PROBE.step(update);
//!     let _forward = span!(PROBE, "forward");
//! }
//! recorder.finish()?;
//!
//! let file = std::fs::read(&path)?;
//! let recording = Recording::open(&file, "run.tmrun")?;
//! assert_eq!(recording.lost().count(), 0);
//! let region = Region::of(&recording, Some(2))?;
//! let step = Trace::of(&recording, &region);
//! let trace = step.derive();
//! let evidence = derive(&trace.document, None, Some(&trace.told))?;
//! assert!(evidence.health.structurally_valid);
//! assert_eq!(evidence.provenance.capture_step, 2);
//! # Ok(())
//! # }
//! ```
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test that fails ends"
    )
)]

pub mod audit;
pub mod bundle;
#[cfg(feature = "capture")]
pub mod capture;
pub mod comparison;
pub mod convert;
pub mod devices;
pub mod diff;
pub mod escape;
pub mod evidence;
pub mod input;
pub mod nsight;
pub mod query;
pub mod readable;
mod rewrite;
pub mod salvage;
pub mod scan;
pub mod severed;
pub mod slice;
pub mod source;
pub mod trace;
