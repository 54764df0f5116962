//! From a planned capture to a published bundle, within the application (feature `capture`).
//!
//! A [`CaptureRun`] owns what lies between: a session's recording beside the bundle's place, its
//! evidence, and the publication. Names and arguments are those of `candle-graph`, so that an
//! application moves over by its imports; all that its sessions need is here too. What differs is what
//! differs for [sessions](tmrun_probe_core::session), and that errors are a [`CaptureError`].
//!
//! - **One capture, one bundle.** A capture that is published already is found, and nothing is recorded.
//!   Anything else at its place is in the way, before a step is spent on it.
//! - **What was recorded is not lost.** Until the bundle is at its place the recording is beside it, and
//!   a capture that cannot be published says where. What a killed process left is a `.tmrun` like any
//!   other, for `tmrun salvage` and `tmrun bundle`; a [`CapturePlan`] tells of it.
//!
//! ```
//! use tmrun::capture::{CaptureBegin, CaptureRun, ExecutionStep, ProfileRun, SpanKind};
//!
//! # let dir = tempfile::tempdir()?;
//! # let destination = dir.path().join("profiles/update-7");
//! let run = ProfileRun::training("trainer::update", 7, "cpu");
//! let capture = match CaptureRun::begin(&destination, run)? {
//!     CaptureBegin::Active(capture) => capture,
//!     CaptureBegin::AlreadyPublished(_) => unreachable!("it is the first time"),
//! };
//! {
//!     let session = capture.session();
//!     let measured = session.begin_measurement("update/7");
//!     let forward =
//!         session.begin_step_span("update/7/forward", ExecutionStep::Forward, SpanKind::Function);
//!     drop(forward);
//!     session.record_scalar(measured.id(), "loss/total", 0.25)?;
//! }
//! let receipt = capture.publish()?;
//! assert!(destination.join("bundle.json").is_file());
//!
//! // The process died, was started again, and comes to the same update.
//! let run = ProfileRun::training("trainer::update", 7, "cpu");
//! let CaptureBegin::AlreadyPublished(again) = CaptureRun::begin(&destination, run)? else {
//!     unreachable!("it is published");
//! };
//! assert_eq!(again.verification, receipt.verification);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A step that failed is evidence too:
//!
//! ```
//! # use tmrun::capture::{CaptureBegin, CaptureRun, ProfileRun, TraceSession};
//! # fn update(_: &TraceSession) -> Result<(), &'static str> { Err("the loss is NaN") }
//! # let dir = tempfile::tempdir()?;
//! # let destination = dir.path().join("update-8");
//! # let run = ProfileRun::training("trainer::update", 8, "cpu");
//! # let CaptureBegin::Active(capture) = CaptureRun::begin(&destination, run)? else { unreachable!() };
//! let receipt = match update(capture.session()) {
//!     Ok(()) => capture.publish()?,
//!     Err(reason) => capture.publish_failed(reason)?,
//! };
//! # let _ = receipt;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod plan;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::bundle::{Request, publish};
use crate::input::Input;
use crate::scan::Recording;
use crate::slice::Region;

pub use crate::bundle::{Differing, Publication, PublishError, PublishFault};
pub use error::{CaptureError, CaptureFault};
pub use plan::CapturePlan;
pub use tmrun_formats::bundle::{BundleReceipt, PublicationReceipt, PublicationStatus};
pub use tmrun_probe_core::session::*;

/// What a planned capture begins with.
#[derive(Debug)]
#[must_use]
#[allow(
    clippy::large_enum_variant,
    reason = "the variants are candle-graph's; there is one of it, and it is matched at once"
)]
pub enum CaptureBegin {
    /// It is published already, and was verified anew.
    AlreadyPublished(Box<PublicationReceipt>),
    /// It is recorded from now on.
    Active(CaptureRun),
}

/// A capture that is being recorded. One that is dropped leaves its recording beside the destination.
#[derive(Debug)]
#[must_use = "what is not published is no evidence"]
pub struct CaptureRun {
    session: TraceSession,
    destination: PathBuf,
    nsight: Option<PathBuf>,
    /// The recording, held for as long as this is.
    held: Option<File>,
}

impl CaptureRun {
    /// Begins the capture that is to be published at `destination`, which is not there yet, with a
    /// session of the usual size.
    ///
    /// # Errors
    ///
    /// When something else is at the destination, it lies in a bundle, or the session does not open.
    pub fn begin(
        destination: impl Into<PathBuf>,
        run: ProfileRun,
    ) -> Result<CaptureBegin, CaptureError> {
        Self::begin_with(destination, run, TraceSession::builder())
    }

    /// The same with a session of another size.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_with(
        destination: impl Into<PathBuf>,
        run: ProfileRun,
        session: SessionBuilder,
    ) -> Result<CaptureBegin, CaptureError> {
        CapturePlan::of(destination, run)?.begin_with(session)
    }

    /// The session, for all that there is to record.
    pub const fn session(&self) -> &TraceSession {
        &self.session
    }

    /// Keeps a flat directory of what Nsight left in the bundle, and makes use of it.
    pub fn with_nsight_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.nsight = Some(folder.into());
        self
    }

    /// Where it is to be published.
    pub fn destination(&self) -> &Path {
        &self.destination
    }

    /// The recording, which is there until the capture is published.
    pub fn recording(&self) -> &Path {
        self.session.path()
    }

    /// Ends the capture of a step that did what it was to do, and publishes it.
    ///
    /// # Errors
    ///
    /// When it could not be recorded to its end, has not exactly one measured region, or cannot be
    /// published: then what was recorded is kept.
    pub fn publish(self) -> Result<PublicationReceipt, CaptureError> {
        Ok(self.finish()?.receipt)
    }

    /// The same, with what was lost of it: the bundle says so too.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub fn finish(self) -> Result<Publication, CaptureError> {
        self.end(TraceSession::finish)
    }

    /// Ends the capture of a step that failed, and publishes it as that.
    ///
    /// # Errors
    ///
    /// When the reason is blank, and as [`publish`](Self::publish).
    pub fn publish_failed(
        self,
        reason: impl AsRef<str>,
    ) -> Result<PublicationReceipt, CaptureError> {
        Ok(self.finish_failed(reason)?.receipt)
    }

    /// The same, with what was lost of it.
    ///
    /// # Errors
    ///
    /// As [`publish_failed`](Self::publish_failed).
    pub fn finish_failed(self, reason: impl AsRef<str>) -> Result<Publication, CaptureError> {
        self.end(|session| session.finish_failed(reason))
    }

    fn end(
        self,
        finish: impl FnOnce(TraceSession) -> Result<PathBuf, SessionError>,
    ) -> Result<Publication, CaptureError> {
        let Self { session, destination, nsight, held: _held } = self;
        let recording = session.path().to_owned();
        let published = finish(session)
            .map_err(CaptureFault::from)
            .and_then(|path| published(&path, &destination, nsight.as_deref()));
        match published {
            Ok(publication) => {
                // Where it cannot go, it is there twice.
                let _ = fs::remove_file(&recording);
                Ok(publication)
            }
            Err(fault) => {
                Err(CaptureError { fault, recording: recording.exists().then_some(recording) })
            }
        }
    }
}

fn published(
    path: &Path,
    destination: &Path,
    nsight: Option<&Path>,
) -> Result<Publication, CaptureFault> {
    let input = Input::open(path)?;
    let recording = Recording::open(&input, input.name())?;
    let region = Region::of(&recording, None)?;
    let request = Request { recording: &recording, region: &region, destination, nsight };
    Ok(publish(&request, &mut |_| Ok(()))?)
}
