//! Small sums by name: an object in JSON, one allocation in memory.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Bytes by name. A timeline has one of these a point, each of a few names.
///
/// ```
/// use tmrun_formats::evidence::Totals;
///
/// let totals: Totals<'_> = [("cuda:0", 3), ("cpu", 2), ("cuda:0", 5)].into_iter().collect();
/// assert_eq!(totals.get("cuda:0"), Some(5), "the last one of a name stays");
/// assert_eq!(serde_json::to_string(&totals).unwrap(), r#"{"cpu":2,"cuda:0":5}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals<'a>(Vec<(Cow<'a, str>, u64)>);

impl<'a> Totals<'a> {
    /// The bytes of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let at = self.0.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        self.0.get(at).map(|(_, bytes)| *bytes)
    }

    /// All of them, by name.
    #[must_use]
    pub fn as_slice(&self) -> &[(Cow<'a, str>, u64)] {
        &self.0
    }
}

impl<'a, N: Into<Cow<'a, str>>> FromIterator<(N, u64)> for Totals<'a> {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(totals: I) -> Self {
        let mut totals: Vec<_> =
            totals.into_iter().map(|(name, bytes)| (name.into(), bytes)).collect();
        // Later ones come to stand first among equals, where `dedup` keeps them.
        totals.reverse();
        totals.sort_by(|(left, _), (right, _)| Cow::cmp(left, right));
        totals.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Self(totals)
    }
}

impl Serialize for Totals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, bytes)| (name, bytes)))
    }
}

impl<'de> Deserialize<'de> for Totals<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Vec<(String, u64)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of byte counts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }

        deserializer.deserialize_map(Entries).map(|entries| entries.into_iter().collect())
    }
}
