//! Why bytes could not be read.

/// Why bytes could not be read. The three kinds drive three behaviours: wait for more or keep what
/// came before (truncated), resynchronise or give up (malformed), upgrade the reader (unsupported).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the thing does.
    #[error("{what} at offset {offset} is truncated: expected {expected} bytes, found {found}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts in the file.
        offset: u64,
        /// How many bytes it needs.
        expected: u64,
        /// How many bytes are there.
        found: u64,
    },
    /// The bytes contradict the format.
    #[error("{what} at offset {offset} is malformed: expected {expected:#x}, found {found:#x}")]
    Malformed {
        /// Which rule they break.
        what: &'static str,
        /// Where in the file.
        offset: u64,
        /// What the rule asks for.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// The bytes follow a version or size that this reader does not know.
    #[error(
        "{what} at offset {offset} is unsupported: this reader knows up to {expected}, found \
         {found}; a newer writer made it: upgrade the tmrun that reads it, not the one that wrote it"
    )]
    Unsupported {
        /// Which property.
        what: &'static str,
        /// Where in the file.
        offset: u64,
        /// The newest value known here.
        expected: u64,
        /// What is there.
        found: u64,
    },
}

impl DecodeError {
    /// Where in the file the trouble starts.
    pub const fn offset(&self) -> u64 {
        match *self {
            Self::Truncated { offset, .. }
            | Self::Malformed { offset, .. }
            | Self::Unsupported { offset, .. } => offset,
        }
    }

    /// The same error, `base` bytes further on: for readers of a part of a file.
    pub const fn at(self, base: u64) -> Self {
        match self {
            Self::Truncated { what, offset, expected, found } => {
                Self::Truncated { what, offset: offset.saturating_add(base), expected, found }
            }
            Self::Malformed { what, offset, expected, found } => {
                Self::Malformed { what, offset: offset.saturating_add(base), expected, found }
            }
            Self::Unsupported { what, offset, expected, found } => {
                Self::Unsupported { what, offset: offset.saturating_add(base), expected, found }
            }
        }
    }
}
