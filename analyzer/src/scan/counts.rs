//! How many records of each kind.

use tmrun_formats::wire::Kind;

/// Counts by kind code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    by_code: [u64; 256],
}

impl Default for Counts {
    fn default() -> Self {
        Self { by_code: [0; 256] }
    }
}

impl Counts {
    pub(super) fn add(&mut self, other: &[u32; 256]) {
        for (sum, &more) in self.by_code.iter_mut().zip(other) {
            *sum = sum.saturating_add(more.into());
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, &more) in self.by_code.iter_mut().zip(&other.by_code) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Records of this kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.by_code.get(usize::from(kind as u8)).copied().unwrap_or_default()
    }

    /// Records of kinds that this version does not know.
    pub fn unknown(&self) -> u64 {
        let unknown = |&(code, _): &(u8, &u64)| Kind::from_code(code).is_none();
        (0..=u8::MAX)
            .zip(&self.by_code)
            .filter(unknown)
            .fold(0, |sum, (_, &n)| sum.saturating_add(n))
    }

    /// All records.
    pub fn total(&self) -> u64 {
        self.by_code.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// The kinds that occur, by code, and `unknown` last.
    pub fn occurring(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let known = Kind::ALL.iter().map(|&kind| (kind.name(), self.of(kind)));
        known.chain([("unknown", self.unknown())]).filter(|&(_, n)| n > 0)
    }
}
