//! Intact chunks of records, one at a time or on all cores.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tmrun_formats::wire::{Groups, Record, groups};
use tmrun_formats::{LaneId, SpanId};

use super::recording::Recording;
use super::steps::StepState;
use super::walk::ChunkInfo;

/// An intact chunk of one lane's records.
#[derive(Debug, Clone, Copy)]
pub struct RecordChunk<'a> {
    info: &'a ChunkInfo,
    records: &'a [Record],
}

impl<'a> RecordChunk<'a> {
    /// Its place, its header, and the step state before its first record.
    pub const fn info(&self) -> &'a ChunkInfo {
        self.info
    }

    /// The lane.
    pub const fn lane(&self) -> LaneId {
        self.info.header.lane
    }

    /// Position of the first record in its lane's stream; the others follow without a hole.
    pub const fn first_sequence(&self) -> u64 {
        self.info.header.first_sequence
    }

    /// The step state of the lane before the first record.
    pub const fn step(&self) -> StepState {
        self.info.step
    }

    /// The records, where they lie in the file.
    pub const fn records(&self) -> &'a [Record] {
        self.records
    }

    /// The records by group. No group is cut: chunks end between groups.
    pub fn groups(&self) -> Groups<'a> {
        groups(self.records)
    }

    /// The full id of the span that a record's header names.
    pub const fn span_of(&self, low: u32) -> SpanId {
        self.info.header.span_of(low)
    }
}

impl<'a> Recording<'a> {
    /// The records that are intact, chunk by chunk in file order.
    pub fn record_chunks(&self) -> impl Iterator<Item = RecordChunk<'_>> + Clone {
        self.chunks().iter().filter_map(|info| self.records_of(info))
    }

    /// The records that are intact, chunk by chunk on all cores; collecting keeps file order.
    pub fn par_record_chunks(&self) -> impl ParallelIterator<Item = RecordChunk<'_>> {
        self.chunks().par_iter().filter_map(|info| self.records_of(info))
    }

    /// The records of this chunk; `None` when it has none or they are not intact.
    pub fn records_of<'r>(&'r self, info: &'r ChunkInfo) -> Option<RecordChunk<'r>> {
        let chunk = info.has_records().then(|| info.chunk(self.bytes()))??;
        Some(RecordChunk { info, records: chunk.records() })
    }
}
