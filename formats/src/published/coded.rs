//! Words where any string may stand.

use crate::words::Word;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A word where any string may stand: those of later versions survive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Coded<'a, W> {
    /// A word of this version. What is read is never an [`Unknown`](Coded::Unknown) of such a word.
    Known(W),
    /// Any other string.
    Unknown(Cow<'a, str>),
}

impl<W: Word> Coded<'_, W> {
    /// The string in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Coded::Known(word) => word.name(),
            Coded::Unknown(text) => text,
        }
    }

    /// The word, if it is one of this version.
    #[must_use]
    pub fn known(&self) -> Option<W> {
        match self {
            Coded::Known(word) => Some(*word),
            Coded::Unknown(_) => None,
        }
    }
}

impl<W: Word> From<W> for Coded<'_, W> {
    fn from(word: W) -> Self {
        Coded::Known(word)
    }
}

impl<W: Word> fmt::Display for Coded<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<W: Word> Serialize for Coded<'_, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, W: Word> Deserialize<'de> for Coded<'_, W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(W::of(&text).map_or(Coded::Unknown(Cow::Owned(text)), Coded::Known))
    }
}
