//! Intact chunks of records, one at a time or on all cores.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tmrun_formats::wire::{Groups, Record, groups};
use tmrun_formats::{LaneId, SpanId};

use super::ahead::ahead;
use super::blocks::{Block, BlockWalk};
use super::recording::Recording;
use super::steps::StepState;
use super::walk::ChunkInfo;

/// An intact chunk of one lane's records.
#[derive(Debug, Clone, Copy)]
pub struct RecordChunk<'a> {
    info: ChunkInfo,
    records: &'a [Record],
}

impl<'a> RecordChunk<'a> {
    /// Its place, its header, and the step state before its first record.
    pub const fn info(&self) -> &ChunkInfo {
        &self.info
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

    /// The same, one at a time: the way for a pass over all of them, which memory is asked for in time.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = &'a Record> + use<'a> {
        ahead(self.records)
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
    /// Every chunk that has a valid header, in file order. Chunks are not kept: each is walked
    /// again.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkInfo> + Clone + '_ {
        self.blocks.iter().flat_map(|block| block.walk(self.bytes))
    }

    /// The records that are intact, chunk by chunk in file order.
    pub fn record_chunks(&self) -> impl Iterator<Item = RecordChunk<'a>> + Clone + '_ {
        self.blocks.iter().flat_map(|block| self.records_in(block))
    }

    /// The records that are intact, chunk by chunk on all cores; collecting keeps file order.
    pub fn par_record_chunks(&self) -> impl ParallelIterator<Item = RecordChunk<'a>> + '_ {
        self.blocks.par_iter().flat_map_iter(|block| self.records_in(block))
    }

    /// The file in blocks of chunks, each of which can be read by itself.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The records of a block that are intact, chunk by chunk.
    pub fn records_in(&self, block: &Block) -> BlockRecords<'a> {
        BlockRecords { bytes: self.bytes, walk: block.walk(self.bytes) }
    }
}

/// The records of a block that are intact, chunk by chunk.
#[derive(Debug, Clone)]
pub struct BlockRecords<'a> {
    bytes: &'a [u8],
    walk: BlockWalk<'a>,
}

impl<'a> Iterator for BlockRecords<'a> {
    type Item = RecordChunk<'a>;

    fn next(&mut self) -> Option<RecordChunk<'a>> {
        let info = self.walk.find(ChunkInfo::has_records)?;
        Some(RecordChunk { info, records: info.chunk(self.bytes)?.records() })
    }
}
