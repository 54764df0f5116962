//! Evidence as a directory: published whole or not at all, checked to the last byte, derived again at
//! will.
//!
//! Guarantees:
//!
//! - **Whole or absent.** A bundle is put together beside its place, in a hidden directory that every
//!   other program can tell from a bundle, synchronised and checked there, and then renamed without
//!   replacing anything. Whatever happens at whatever [`Moment`], nothing half done is at its place.
//! - **Idempotent.** Publishing the same planned capture again finds it there, checked anew. Anything
//!   else that is there stays as it is, and is said to be in the way.
//! - **`candle-graph` 0.10.1 takes it**: [`content`] holds a directory to the rules of its own check.
//! - **Derived again.** A bundle carries the part of the recording that its evidence is of, which is a
//!   recording itself: [`semantic()`] derives trace and evidence from it once more and compares every
//!   value. Bundling that part again gives the same bytes.
//! - **Nothing of the recording is forgotten**: what the neighbour's formats have no place for is in the
//!   [`Annex`], `tmrun.json`.
//!
//! ```no_run
//! use tmrun::bundle::{Request, publish, semantic, verify};
//! use tmrun::input::Input;
//! use tmrun::scan::Recording;
//! use tmrun::slice::Region;
//!
//! let input = Input::open("run.tmrun".as_ref())?;
//! let recording = Recording::open(&input, input.name())?;
//! let region = Region::of(&recording, Some(4711))?;
//! let destination = "profiles/step-4711".as_ref();
//! let request = Request { recording: &recording, region: &region, destination, nsight: None };
//! let published = publish(&request, &mut |_| Ok(()))?;
//! println!("{}", published.receipt.verification.manifest_sha256);
//!
//! assert!(verify(destination).problems.is_empty());
//! assert!(semantic(destination)?.mismatches.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annex;
mod bundled;
mod content;
mod contents;
mod difference;
mod error;
mod invalid;
mod moment;
mod nsight;
mod place;
mod plan;
mod problem;
mod publish;
mod report;
mod retry;
mod semantic;
mod staging;
mod verify;

pub use annex::{
    Annex, AnnexClock, AnnexGap, AnnexLane, AnnexLevel, AnnexMovedFacts, AnnexMovedSpan,
    AnnexNonFinite, AnnexRecorder, AnnexRefuted, AnnexRegion, AnnexSchema, AnnexUnknown,
};
pub use bundled::{Bundle, BundleError};
pub use content::{Content, content};
pub use difference::Mismatch;
pub use error::{PublishError, PublishFault};
pub use invalid::Invalid;
pub use moment::{Moment, Observer};
#[cfg(feature = "capture")]
pub(crate) use place::hold;
pub(crate) use place::is_staging;
pub use place::{around, leftovers};
pub use plan::{Planned, plan};
pub use problem::{Problem, ProblemKind};
pub use publish::{Publication, Request, publish};
pub use retry::Differing;
pub use semantic::{Semantic, SemanticError, SemanticSource, semantic};
pub use verify::verify;

/// The file name of the part of the recording that a bundle is of.
pub const RECORDING: &str = "recording.tmrun";
/// The file name of the [`Annex`].
pub const ANNEX: &str = "tmrun.json";
