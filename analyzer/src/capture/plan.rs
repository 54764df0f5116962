//! What there is of a capture before it begins.

use std::path::{Path, PathBuf};

use tmrun_probe_core::session::{ProfileRun, SessionBuilder, TraceSession};

use super::{CaptureBegin, CaptureError, CaptureFault, CaptureRun};
use crate::bundle::{Differing, Planned, hold, leftovers, plan};

/// A capture that is planned, with what there is at its place already and beside it: for those who want
/// to tell somebody. [`CaptureRun::begin`] is the same without a look.
///
/// ```
/// use tmrun::capture::{CaptureBegin, CapturePlan, ProfileRun};
///
/// # let dir = tempfile::tempdir()?;
/// # let destination = dir.path().join("update-7");
/// let plan = CapturePlan::of(&destination, ProfileRun::training("trainer::update", 7, "cpu"))?;
/// for left in plan.leftovers() {
///     eprintln!("{}: left by an earlier capture; `tmrun salvage` mends it", left.display());
/// }
/// for field in plan.differing() {
///     eprintln!("published with another {}: {}", field.field, field.published);
/// }
/// let begun = plan.begin()?;
/// # assert!(matches!(begun, CaptureBegin::Active(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "it is not begun yet"]
pub struct CapturePlan {
    destination: PathBuf,
    run: ProfileRun,
    planned: Planned,
    leftovers: Vec<PathBuf>,
}

impl CapturePlan {
    /// Looks at the place of a capture.
    ///
    /// # Errors
    ///
    /// When something else is at the destination, or it lies in a bundle.
    pub fn of(destination: impl Into<PathBuf>, run: ProfileRun) -> Result<Self, CaptureError> {
        let destination = destination.into();
        let planned = plan(&destination, &run.planned()).map_err(|error| nothing(error.into()))?;
        let leftovers = leftovers(&destination);
        Ok(Self { destination, run, planned, leftovers })
    }

    /// Where it is to be published.
    pub fn destination(&self) -> &Path {
        &self.destination
    }

    /// What earlier captures that did not end left beside it: recordings (`.NAME.capture-….tmrun`),
    /// traces that were kept, and bundles that were not finished. Nobody works on them any more.
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.leftovers
    }

    /// In what a capture that is published already differs from this one, and is the same planned
    /// capture all the same: its contract, its identity, its tags.
    pub fn differing(&self) -> &[Differing] {
        match &self.planned {
            Planned::Published(found) => &found.differing,
            Planned::Free { .. } => &[],
        }
    }

    /// Begins it with a session of the usual size, unless it is published.
    ///
    /// # Errors
    ///
    /// When the session does not open.
    pub fn begin(self) -> Result<CaptureBegin, CaptureError> {
        self.begin_with(TraceSession::builder())
    }

    /// The same with a session of another size.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_with(self, session: SessionBuilder) -> Result<CaptureBegin, CaptureError> {
        let Self { destination, run, planned, .. } = self;
        match planned {
            Planned::Published(found) => {
                Ok(CaptureBegin::AlreadyPublished(Box::new(found.receipt)))
            }
            Planned::Free { recording } => {
                let session = session.open(recording, run);
                let session = session.map_err(|error| nothing(error.into()))?;
                // Only to be told from what is left over.
                let held = hold(session.path()).ok();
                Ok(CaptureBegin::Active(CaptureRun { session, destination, nsight: None, held }))
            }
        }
    }
}

/// Nothing was recorded.
const fn nothing(fault: CaptureFault) -> CaptureError {
    CaptureError { fault, recording: None }
}
