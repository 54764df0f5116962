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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_and_where_and_both_numbers() {
        let (what, offset) = ("payload", 128);
        let texts = [
            DecodeError::Truncated { what, offset, expected: 192, found: 64 },
            DecodeError::Malformed { what, offset, expected: 0xAB, found: 0xCD },
            DecodeError::Unsupported { what, offset, expected: 1, found: 2 },
        ]
        .map(|error| error.to_string());
        let starts = [
            "payload at offset 128 is truncated: expected 192 bytes, found 64",
            "payload at offset 128 is malformed: expected 0xab, found 0xcd",
            "payload at offset 128 is unsupported: this reader knows up to 1, found 2",
        ];
        for (text, start) in texts.iter().zip(starts) {
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn moving_an_error_changes_its_offset_alone() {
        let error = |offset| DecodeError::Truncated { what: "x", offset, expected: 2, found: 1 };
        assert_eq!(error(3).at(64), error(67));
        assert_eq!(error(3).at(u64::MAX).offset(), u64::MAX, "the end of the scale holds");
    }
}
