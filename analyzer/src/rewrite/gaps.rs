//! Gap records of what is missing and has no position.

use tmrun_formats::wire::{self, Place, Record, RecordHeader, TotalsV1};
use tmrun_formats::{LaneId, Level, SpanId};

use crate::scan::{Gap, Missing, Recording};

/// Records a chunk: a reader lists so many gaps of one chunk, and adds up the rest.
const A_CHUNK: usize = 64;

/// The records that the new file has and the old one has not.
pub(crate) struct Gaps {
    missing: Vec<Gap>,
    /// Where they go: the recorder's lane, or the last one that has room for them.
    lane: LaneId,
    sequence: u64,
}

impl Gaps {
    /// Those of a recording that are wanted, and more that it does not tell of.
    pub(crate) fn of(
        recording: &Recording<'_>,
        wanted: impl Fn(&Missing) -> bool,
        more: impl IntoIterator<Item = Gap>,
    ) -> Self {
        let missing = recording.missing().iter().filter(|missing| missing.position.is_none());
        let missing = missing.filter(|missing| wanted(missing)).map(|missing| missing.gap);
        let missing: Vec<_> = missing.chain(more).collect();
        let end = |lane| recording.lanes().get(lane).map_or(0, |lane| lane.end);
        let has_room = |lane: &LaneId| end(*lane).checked_add(missing.len() as u64).is_some();
        let lanes = (0..=LaneId::RECORDER.0).rev().map(LaneId);
        let lane = lanes.into_iter().find(has_room).unwrap_or(LaneId::RECORDER);
        Self { missing, lane, sequence: end(lane) }
    }

    /// The records, chunk by chunk, behind all else of their lane.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Place, Vec<Record>)> + '_ {
        let positions = (self.sequence..).step_by(A_CHUNK);
        self.missing.chunks(A_CHUNK).zip(positions).map(|(missing, sequence)| {
            let records = missing.iter().zip(sequence..);
            let records = records.map(|(gap, at)| record(gap, at)).collect();
            (Place { lane: self.lane, sequence, span: SpanId::NONE }, records)
        })
    }

    /// The counters of a lane, with what was added to it.
    pub(crate) fn counted(&self, totals: TotalsV1) -> TotalsV1 {
        if totals.lane != self.lane || self.missing.is_empty() {
            return totals;
        }
        let records = self.sequence.saturating_add(self.missing.len() as u64);
        TotalsV1 { records, ..totals }
    }
}

/// What is missing, told at a position of a lane.
pub(crate) fn record(gap: &Gap, position: u64) -> Record {
    let payload = wire::Gap {
        first: gap.first,
        last: gap.last,
        records: gap.records,
        groups: gap.groups,
        planes: gap.planes,
        lane: gap.lane.unwrap_or(LaneId::RECORDER),
        reason: gap.reason,
    };
    let header = RecordHeader::of::<wire::Gap>(Level::PULSE);
    Record::new(RecordHeader { ticks: gap.first, seq: position as u32, ..header }, &payload)
}
