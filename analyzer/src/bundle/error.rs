//! Why a bundle was not published.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::problem::Problem;
use super::retry::Differing;
use crate::evidence::EvidenceError;

/// A bundle that was not published, and what is left of it.
#[derive(Debug, Error)]
#[error("{fault}{}", Left(trace.as_ref()))]
pub struct PublishError {
    /// Why.
    #[source]
    pub fault: PublishFault,
    /// The trace that was to be in it, beside the destination, where it was whole already.
    pub trace: Option<PathBuf>,
}

/// Why a bundle was not published.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishFault {
    /// A destination that no directory can have.
    #[error("{}: expected the name of a new directory", path.display())]
    NoName {
        /// The destination.
        path: PathBuf,
    },
    /// A destination in another bundle.
    #[error("{}: lies in the bundle {}, which nobody may write into", path.display(), bundle.display())]
    Inside {
        /// The destination.
        path: PathBuf,
        /// The bundle.
        bundle: PathBuf,
    },
    /// Another planned capture is published there.
    #[error("{}: another capture is published there: {}", path.display(), Differing::list(fields))]
    Conflict {
        /// The destination.
        path: PathBuf,
        /// In what they differ.
        fields: Vec<Differing>,
    },
    /// Something else is there.
    #[error("{}: is there already, and is no whole bundle: {why}; choose another name", path.display())]
    Occupied {
        /// The destination.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The reports of Nsight cannot be taken.
    #[error("{}: {why}", path.display())]
    Nsight {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// The part of the recording that was cut out does not hold.
    #[error("the region cannot be cut out of its recording: {why}")]
    Slice {
        /// Why not.
        why: String,
    },
    /// The trace says nothing.
    #[error("the region has no evidence: {0}")]
    Evidence(#[from] EvidenceError),
    /// What was written is not what is there.
    #[error("{}: what was written there does not hold: {problem}", path.display())]
    NotWhole {
        /// Where.
        path: PathBuf,
        /// The first of what is wrong.
        problem: Box<Problem>,
    },
    /// Something could not be read or written.
    #[error("{}: cannot be {what}: {source}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Who observed it ended it.
    #[error("stopped: {0}")]
    Stopped(io::Error),
}

impl PublishFault {
    pub(super) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

impl From<PublishFault> for PublishError {
    fn from(fault: PublishFault) -> Self {
        Self { fault, trace: None }
    }
}

struct Left<'p>(Option<&'p PathBuf>);

impl fmt::Display for Left<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, " (the trace is kept at {})", path.display()),
            None => Ok(()),
        }
    }
}
