//! What is wrong with a file: as a whole, and place by place.

use core::fmt;

use tmrun_formats::{DecodeError, LaneId};

/// A file that cannot be read at all: its header is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {source}{}", mend(source))]
pub struct OpenError {
    /// What the file is called.
    pub file: String,
    /// What its header is instead.
    pub source: DecodeError,
}

/// What to do about a header that cannot be read.
fn mend(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Truncated { found: 0, .. } => {
            "; the file is empty: its recorder was stopped before it wrote anything"
        }
        DecodeError::Truncated { .. } => "; copy the file again, it was cut",
        DecodeError::Malformed { what: "file magic", .. } => "; is this a .tmrun recording?",
        DecodeError::Malformed { .. } => {
            "; copy the file again from where it was recorded, its first 64 bytes are damaged"
        }
        _ => "",
    }
}

/// One place in the file that breaks the format, and what it belongs to as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong: the rule, the offset, what was expected and what was found.
    pub error: DecodeError,
    /// The lane whose records are affected.
    pub lane: Option<LaneId>,
    /// The number of the chunk that it lies in.
    pub chunk: Option<u64>,
}

impl Finding {
    pub(crate) const fn new(error: DecodeError) -> Self {
        Self { error, lane: None, chunk: None }
    }

    pub(crate) const fn in_chunk(error: DecodeError, lane: LaneId, chunk: u64) -> Self {
        Self { error, lane: Some(lane), chunk: Some(chunk) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        match (self.chunk, self.lane) {
            (Some(chunk), Some(lane)) => write!(f, " (chunk {chunk}, lane {})", lane.0),
            (Some(chunk), None) => write!(f, " (chunk {chunk})"),
            (None, Some(lane)) => write!(f, " (lane {})", lane.0),
            (None, None) => Ok(()),
        }
    }
}
