//! Why there is nothing to ask.

use std::path::PathBuf;

use tmrun_formats::trace::ReadError;

use crate::bundle::BundleError;
use crate::input::InputError;
use crate::scan::OpenError;
use crate::slice::RegionError;

/// Why a source cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It begins like a recording and is none.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is no trace.
    #[error("{name}: {error}")]
    Read {
        /// The input.
        name: String,
        /// Why.
        error: ReadError,
    },
    /// The recording does not have the invocation.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The trace is of another step.
    #[error("{name}: is of step {found} alone; leave out --step {step}, or ask the recording")]
    OtherStep {
        /// The input.
        name: String,
        /// The step that was asked for.
        step: u64,
        /// The trace's.
        found: u64,
    },
    /// A directory with neither manifest nor trace.
    #[error(
        "{}: expected a bundle (a directory with bundle.json) or a directory with trace.jsonl",
        path.display()
    )]
    NoBundle {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with published evidence that no manifest binds.
    #[error(
        "{}: there is {found} beside the trace and no bundle.json that binds it: name the trace of \
         another directory, or make a bundle of it",
        path.display()
    )]
    Unbound {
        /// The directory.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The bundle is not what its manifest says, or was not published.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// What Nsight saw cannot be read from the published evidence.
    #[error("{}: what Nsight saw cannot be read: {error}", path.display())]
    Evidence {
        /// The evidence.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
}

impl SourceError {
    /// Whether another command line would do.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Region(error) => error.is_usage(),
            Self::OtherStep { .. } => true,
            _ => false,
        }
    }
}
