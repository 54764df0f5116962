//! From bytes to chunks, lanes, metadata and gaps.
//!
//! [`Recording::open`] walks the chunk headers of a `.tmrun`, checks the chunks in parallel, some
//! thousand at a time, and puts together in file order what is in it and what is missing. It keeps
//! the name table, a few words for every [`Block`] of some hundred chunks, nothing a chunk and
//! nothing a record: who reads records walks the chunks of a block again. No length or id of the
//! file sizes or indexes anything.
//!
//! What is used of a file is its **intact** chunks: the header and payload pass their CRCs, every
//! record has the sequence number of its place, groups are whole, and the ticks are those that the
//! header says. Everything else is a [`Finding`] and, where evidence is missing, a [`Gap`].
//!
//! ```no_run
//! use rayon::iter::ParallelIterator;
//! use tmrun::input::Input;
//! use tmrun::scan::Recording;
//!
//! let input = Input::open("run.tmrun".as_ref())?;
//! let recording = Recording::open(&input, input.name())?;
//! let clock = recording.clock();
//! // In file order; each lane's records are in sequence.
//! for chunk in recording.record_chunks() {
//!     for group in chunk.groups() {
//!         let head = group[0].header();
//!         println!("{} ns: {:?}", clock.ns(head.ticks), recording.names().text(head.name));
//!     }
//! }
//! // On all cores, collected in file order.
//! let counts: Vec<usize> =
//!     recording.par_record_chunks().map(|chunk| chunk.records().len()).collect();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod blocks;
mod check;
mod clock;
mod cost;
mod counts;
mod damage;
mod error;
mod explain;
mod gaps;
mod index;
mod lanes;
mod levels;
mod merge;
mod meta;
mod names;
mod recording;
mod records;
mod rings;
mod rules;
mod steps;
mod sums;
mod track;
mod verify;
mod walk;

pub use blocks::Block;
pub use clock::{Calibrations, Clock, ClockFault};
pub use cost::RecordCost;
pub use counts::{ChunkCounts, Counts};
pub use damage::Missing;
pub use error::{Finding, OpenError};
pub use gaps::Gap;
pub(crate) use gaps::every_plane;
pub use lanes::{Lane, Lanes};
pub use levels::{FocusChange, Levels};
pub use meta::Meta;
pub use names::Names;
pub use recording::{Recording, Status};
pub use records::{BlockRecords, RecordChunk};
pub use steps::{LaneSteps, StepCounts, StepMark, StepState};
pub use walk::{ChunkInfo, ChunkState};
