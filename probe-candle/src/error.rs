//! Why something of a tensor was not recorded.

use std::fmt;

use tmrun_probe_core::session::SessionError;

/// Why a tensor or a gradient was not recorded in a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum CandleError {
    /// The session refused it.
    Session(SessionError),
    /// candle could not look at it.
    Candle {
        /// The label of the statistics, or the key of the parameter.
        label: String,
        /// What candle says.
        source: candle_core::Error,
    },
}

impl fmt::Display for CandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::Candle { label, source } => {
                write!(f, "`{label}` could not be looked at, and has no record: {source}")
            }
        }
    }
}

impl std::error::Error for CandleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Session(error) => error.source(),
            Self::Candle { source, .. } => Some(source),
        }
    }
}

impl From<SessionError> for CandleError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}
