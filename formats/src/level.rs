//! How much is captured.

/// How much is captured, 0 to 3. A code from a file may be higher; it stays what it is.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[repr(transparent)]
pub struct Level(pub u8);

impl Level {
    /// Run, measured region, step marks, scalars, level changes, gaps.
    pub const PULSE: Self = Self(0);
    /// Adds spans, operations, device intervals and edges.
    pub const TIMING: Self = Self(1);
    /// Adds tensors, gradients, logical and physical memory.
    pub const METADATA: Self = Self(2);
    /// Adds tensor statistics and values.
    pub const NUMERICS: Self = Self(3);
    /// The most that can be asked for.
    pub const MAX: Self = Self::NUMERICS;

    /// The level's name, or `None` above 3.
    pub const fn name(self) -> Option<&'static str> {
        match self.0 {
            0 => Some("pulse"),
            1 => Some("timing"),
            2 => Some("metadata"),
            3 => Some("numerics"),
            _ => None,
        }
    }
}

impl core::str::FromStr for Level {
    type Err = ParseLevelError;

    /// `0` to `3`, or the level's name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        (0..=Self::MAX.0)
            .map(Self)
            .find(|level| {
                level.name() == Some(text) || text.as_bytes() == [b'0'.wrapping_add(level.0)]
            })
            .ok_or(ParseLevelError)
    }
}

/// A text that is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a probe level: expected 0, 1, 2, 3, pulse, timing, metadata or numerics")]
pub struct ParseLevelError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_by_number_and_by_name_and_nothing_else_is_one() {
        for number in 0..=3 {
            let name = Level(number).name().expect("four levels have names");
            assert_eq!(name.parse(), Ok(Level(number)));
            assert_eq!(number.to_string().parse(), Ok(Level(number)));
        }
        for text in ["", "4", "03", "+1", " 1", "Pulse", "full"] {
            assert_eq!(text.parse::<Level>(), Err(ParseLevelError), "{text:?}");
        }
        assert_eq!(Level(4).name(), None);
    }
}
