//! Why a recording did not start, or did not end well.

use std::io;
use std::path::PathBuf;

use tmrun_formats::trace::RunError;

use crate::drain::{Summary, Unavailable};
use crate::levels::FocusError;

/// Why a recording did not start, or did not end well.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// The probe is being recorded already, or compiled out.
    Unavailable(Unavailable),
    /// The file could not be created.
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be written for a while, or to its end, or the next file of the recording
    /// not be made. What is in it is whole, and what was lost is counted.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What the recording came to.
        summary: Summary,
    },
    /// The run promises what cannot be kept, or does not say where it comes from.
    Run(RunError),
    /// TMRUN_LEVEL is set to something that is no level.
    Level {
        /// What it is set to.
        found: String,
    },
    /// The file of the mapped rings could not be made, its blocks not reserved, or it could not be
    /// mapped; nothing is recorded.
    Rings {
        /// The file, or the folder that it was to be in.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// This process was forked from the one that records: nothing of it is in the file. It may
    /// record into a file of its own.
    Forked {
        /// The parent's file.
        path: PathBuf,
    },
    /// TMRUN_FOCUS is set to something that is no list of foci.
    FocusList {
        /// What it is set to.
        found: String,
    },
    /// The recording cannot start with this focus.
    Focus(FocusError),
    /// The recorder's thread could not be started, or did not come to its end.
    Thread {
        /// Why.
        source: io::Error,
    },
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable(error) => error.fmt(f),
            Self::Create { path, source } if source.kind() == io::ErrorKind::AlreadyExists => {
                write!(
                    f,
                    "{} exists already and is not written over: choose another name, or allow it \
                     with ProfileRun::replace",
                    path.display()
                )
            }
            Self::Create { path, source } => {
                write!(f, "{} could not be created: {source}", path.display())
            }
            Self::Write { path, source, summary } => write!(
                f,
                "{} could not be written: {source}; what is in it is whole, {} records are lost",
                path.display(),
                summary.sink_failed
            ),
            Self::Run(error) => write!(f, "the run cannot be recorded as declared: {error}"),
            Self::Level { found } => write!(
                f,
                "TMRUN_LEVEL is {found:?}: expected 0, 1, 2, 3, pulse, timing, metadata or numerics"
            ),
            Self::Rings { path, source } => write!(
                f,
                "the mapped rings cannot lie at {}: {source}; choose another folder with \
                 ProfileRun::rings_in, or record without the flight recorder",
                path.display()
            ),
            Self::Forked { path } => write!(
                f,
                "{} is recorded by the parent of this process: nothing that the child did since \
                 the fork is in it; record the child into a file of its own",
                path.display()
            ),
            Self::FocusList { found } => write!(
                f,
                "TMRUN_FOCUS is {found:?}: expected PATTERN=LEVEL, and more of them behind commas"
            ),
            Self::Focus(error) => write!(f, "the recording cannot start with its foci: {error}"),
            Self::Thread { source } => write!(f, "the recorder's thread failed: {source}"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable(error) => Some(error),
            Self::Create { source, .. }
            | Self::Write { source, .. }
            | Self::Rings { source, .. }
            | Self::Thread { source } => Some(source),
            Self::Focus(error) => Some(error),
            Self::Run(error) => Some(error),
            Self::Level { .. } | Self::FocusList { .. } | Self::Forked { .. } => None,
        }
    }
}
