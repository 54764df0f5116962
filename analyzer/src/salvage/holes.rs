//! Missing positions, each declared once.

use std::collections::BTreeMap;

use tmrun_formats::LaneId;
use tmrun_formats::wire::{ChunkHeader, ChunkKind, Frame, HoleV1};

use crate::scan::{Missing, Recording};

/// The holes that the new file has not declared yet.
pub(super) struct Holes(BTreeMap<(LaneId, u64), HoleV1>);

impl Holes {
    pub(super) fn of(recording: &Recording<'_>) -> Self {
        let hole = |missing: &Missing| {
            let (lane, sequence) = (missing.gap.lane?, missing.position?);
            let (records, reason) = (missing.gap.records, missing.gap.reason);
            Some(((lane, sequence), HoleV1 { lane, sequence, records, reason }))
        };
        Self(recording.missing().iter().filter_map(hole).collect())
    }

    /// Those of the chunk's lane that lie before it. Only records have any.
    pub(super) fn before_chunk(&mut self, chunk: &ChunkHeader) -> Vec<Frame<'static>> {
        match chunk.kind {
            ChunkKind::RECORDS => self.before(chunk.lane, chunk.first_sequence),
            _ => Vec::new(),
        }
    }

    /// Those of a lane that lie before a position.
    pub(super) fn before(&mut self, lane: LaneId, position: u64) -> Vec<Frame<'static>> {
        let (first, behind) = ((lane, 0), (lane, position));
        let mut taken = Vec::new();
        while let Some((&at, &hole)) = self.0.range(first..behind).next() {
            self.0.remove(&at);
            taken.push(Frame::Hole(hole));
        }
        taken
    }

    /// The others, which lie behind the last chunks of their lanes.
    pub(super) fn rest(self) -> impl Iterator<Item = Frame<'static>> {
        self.0.into_values().map(Frame::Hole)
    }
}
