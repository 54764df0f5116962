//! Why a capture was not published.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;
use tmrun_probe_core::session::SessionError;

use crate::bundle::PublishError;
use crate::input::InputError;
use crate::scan::OpenError;
use crate::slice::RegionError;

/// A capture that was not published, and what is left of it.
#[derive(Debug, Error)]
#[error("{fault}{}", Left(recording.as_ref()))]
pub struct CaptureError {
    /// Why.
    #[source]
    pub fault: CaptureFault,
    /// What was recorded, beside the destination. `tmrun bundle` publishes it where it can be
    /// published, `tmrun salvage` mends it where it broke off.
    pub recording: Option<PathBuf>,
}

/// Why a capture was not published.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureFault {
    /// It could not be recorded.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What was recorded could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// What was recorded is no recording.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no measured region, or several.
    #[error("{0}")]
    Region(#[from] RegionError),
    /// It could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

struct Left<'p>(Option<&'p PathBuf>);

impl fmt::Display for Left<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |path| write!(f, "; what was recorded is kept in {}", path.display()))
    }
}
