//! How many records of each kind, and how many chunks.

use tmrun_formats::wire::{ChunkKind, Kind};

use super::walk::{ChunkInfo, ChunkState};

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

/// Chunks that have a valid header, by kind; those that are not used apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkCounts {
    /// All of them.
    pub all: u64,
    /// Intact chunks of records.
    pub records: u64,
    /// Intact chunks of metadata.
    pub meta: u64,
    /// Intact indexes.
    pub index: u64,
    /// Intact blobs.
    pub blob: u64,
    /// Chunks that a newer version wrote.
    pub unknown: u64,
    /// Chunks that do not hold, or are not in their place.
    pub damaged: u64,
    /// Records that the headers of chunks of records say that they have.
    pub(super) records_said: u64,
    /// Where the last index starts, intact or not; 0 if there is none.
    pub(super) last_index: u64,
}

impl ChunkCounts {
    pub(super) fn add(&mut self, info: &ChunkInfo) {
        let count = match (info.state, info.header.kind) {
            (ChunkState::Damaged | ChunkState::Displaced, _) => &mut self.damaged,
            (ChunkState::Unknown, _) => &mut self.unknown,
            (_, ChunkKind::RECORDS) => &mut self.records,
            (_, ChunkKind::META) => &mut self.meta,
            (_, ChunkKind::INDEX) => &mut self.index,
            (_, ChunkKind::BLOB) => &mut self.blob,
            _ => &mut self.unknown,
        };
        *count = count.saturating_add(1);
        self.all = self.all.saturating_add(1);
        match info.header.kind {
            ChunkKind::RECORDS => {
                let said = info.header.records.into();
                self.records_said = self.records_said.saturating_add(said);
            }
            ChunkKind::INDEX => self.last_index = info.offset,
            _ => {}
        }
    }
}
