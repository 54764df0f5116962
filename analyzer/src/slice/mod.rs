//! One invocation of a recorded run: which part of the recording it is, and a recording of that part
//! alone.
//!
//! Guarantees:
//!
//! - **A slice is a recording.** It passes `verify`, has its names, its clock and its claims, and holds
//!   all that evidence of the region needs: every group that speaks of a moment of it, on any lane; the
//!   marks and states of the steps around it; what allocated the storage that is live when it begins.
//! - **What was left out shows.** It is in Hole frames of reason `sliced`: not lost, and no evidence of the
//!   region. What the recording lacks of the region, the slice lacks for the same reason, of the same time.
//! - **No edge is invented.** A step whose begin or end mark is lost reaches as far as the mark may have
//!   been, and says that it was not seen. Another lane's marks do not take their place: not those of a lane
//!   that joins while the step is open on another one, from an earlier file on. (Where the step of a lane is
//!   in doubt they still can: `docs/CLI.md`, the known limits of `bundle`.)
//! - **What is in another file, or in none, shows.** A lane that is in the step where the file begins, or
//!   still where it ends, has a gap there.
//! - **A slice of a slice is the same slice.**
//!
//! ```no_run
//! use tmrun::input::Input;
//! use tmrun::scan::Recording;
//! use tmrun::slice::{Region, slice};
//!
//! let input = Input::open("run.tmrun".as_ref())?;
//! let recording = Recording::open(&input, input.name())?;
//! let region = Region::of(&recording, Some(4711))?;
//! let mut part = Vec::new();
//! slice(&recording, &region, &mut part)?;
//! let part = Recording::open(&part, "step 4711")?;
//! assert_eq!(Region::of(&part, Some(4711))?, region);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod around;
pub(crate) mod concern;
mod found;
pub(crate) mod kept;
pub(crate) mod left_out;
pub(crate) mod live;
mod outside;
mod region;
pub(crate) mod states;
pub(crate) mod stretches;
mod timeline;
mod write;

pub use outside::Outside;
pub(crate) use region::Invocation;
pub use region::{Measured, Region, RegionError};
pub use write::slice;
