//! Gap records of what is missing and has no position.

use std::io;

use tmrun_formats::wire::{Gap, Place, Record, RecordHeader, TotalsV1};
use tmrun_formats::{LaneId, Level, SpanId};

use super::file::File;
use super::holes::Holes;
use crate::scan::{Missing, Recording};

/// Records a chunk: a reader lists so many gaps of one chunk, and adds up the rest.
const A_CHUNK: usize = 64;

/// The records that the new file has and the old one has not.
pub(super) struct Gaps<'r> {
    missing: Vec<&'r Missing>,
    /// Where they go: the recorder's lane, or the last one that has room for them.
    lane: LaneId,
    sequence: u64,
}

impl<'r> Gaps<'r> {
    pub(super) fn of(recording: &'r Recording<'_>) -> Self {
        let missing = recording.missing().iter().filter(|missing| missing.position.is_none());
        let missing: Vec<_> = missing.collect();
        let end = |lane| recording.lanes().get(lane).map_or(0, |lane| lane.end);
        let has_room = |lane: &LaneId| end(*lane).checked_add(missing.len() as u64).is_some();
        let lanes = (0..=LaneId::RECORDER.0).rev().map(LaneId);
        let lane = lanes.into_iter().find(has_room).unwrap_or(LaneId::RECORDER);
        Self { missing, lane, sequence: end(lane) }
    }

    /// Writes them, behind all else of their lane.
    pub(super) fn write(&self, holes: &mut Holes, file: &mut File<'_>) -> io::Result<()> {
        let (lane, mut sequence) = (self.lane, self.sequence);
        for missing in self.missing.chunks(A_CHUNK) {
            let records: Vec<Record> =
                missing.iter().zip(sequence..).map(|(missing, at)| record(missing, at)).collect();
            file.frames(holes.before(lane, sequence))?;
            file.records(Place { lane, sequence, span: SpanId::NONE }, &records)?;
            sequence = sequence.saturating_add(records.len() as u64);
        }
        Ok(())
    }

    /// The counters of a lane, with what was added to it.
    pub(super) fn counted(&self, totals: TotalsV1) -> TotalsV1 {
        if totals.lane != self.lane || self.missing.is_empty() {
            return totals;
        }
        let records = self.sequence.saturating_add(self.missing.len() as u64);
        TotalsV1 { records, ..totals }
    }
}

fn record(missing: &Missing, position: u64) -> Record {
    let gap = &missing.gap;
    let payload = Gap {
        first: gap.first,
        last: gap.last,
        records: gap.records,
        groups: gap.groups,
        planes: gap.planes,
        lane: gap.lane.unwrap_or(LaneId::RECORDER),
        reason: gap.reason,
    };
    let header = RecordHeader::of::<Gap>(Level::PULSE);
    Record::new(RecordHeader { ticks: gap.first, seq: position as u32, ..header }, &payload)
}
