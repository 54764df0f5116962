//! A recording in blocks of chunks: what is kept of its chunks, so that they can be walked again
//! from any block on. Memory is a few words a block, whatever the size of its chunks.

use std::collections::BTreeSet;

use tmrun_formats::LaneId;
use tmrun_formats::wire::{Chunks, Walked};

use super::check::{Checked, check_one};
use super::track::{LaneAt, Track};
use super::walk::{ChunkInfo, ChunkState};

/// A block ends with the chunk that brings it to so many,
const CHUNKS: u32 = 512;

/// or with the one that brings its payloads to so many bytes: a block is what one core takes at
/// once, and what it makes of it has to fit in memory for every core.
const BYTES: u64 = 128 << 10;

/// Why the payloads of a block are read again when it is walked again, the least first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Again {
    /// For nothing: all chunks hold, and no lane comes again behind step marks of its own.
    #[default]
    Not,
    /// For the step marks before a lane's next chunk.
    Marks,
    /// For all that is checked: something in it does not hold.
    Checks,
}

/// Some chunks, one behind the other.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Where its first chunk starts.
    offset: u64,
    chunks: u32,
    /// Payloads of its intact chunks of records.
    bytes: u64,
    /// What its payloads have to be read for when it is walked again.
    again: Again,
    /// The lanes of its chunks as they are before the first of them, as far as they are known.
    lanes: Box<[(LaneId, LaneAt)]>,
}

impl Block {
    /// Bytes of the records that it has.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn walk<'a>(&self, file: &'a [u8]) -> BlockWalk<'a> {
        BlockWalk {
            chunks: Chunks::from(file, self.offset),
            left: self.chunks,
            track: Track::at(&self.lanes),
            again: self.again,
        }
    }
}

/// The chunks of a block, walked again. What held when the file was opened is not checked once more.
#[derive(Debug, Clone)]
pub(super) struct BlockWalk<'a> {
    chunks: Chunks<'a>,
    left: u32,
    track: Track,
    again: Again,
}

impl Iterator for BlockWalk<'_> {
    type Item = ChunkInfo;

    fn next(&mut self) -> Option<ChunkInfo> {
        self.left = self.left.checked_sub(1)?;
        // What lies between chunks moves no lane: it was told when the file was opened.
        let of_chunk = |walked| match walked {
            Walked::Chunk(chunk) => Some(chunk),
            _ => None,
        };
        let chunk = self.chunks.find_map(of_chunk)?;
        let (mut info, _) = self.track.chunk(&chunk);
        let checked = match self.again {
            Again::Not => Checked::only(None),
            Again::Marks => Checked::marks(&chunk, info.state),
            Again::Checks => check_one(&chunk, info.state, None),
        };
        self.track.settle(&mut info, &checked);
        Some(info)
    }
}

/// The blocks of a file, as they are made.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    done: Vec<Block>,
    open: Block,
    payload: u64,
    /// The lanes that have step marks in the open one.
    marked: BTreeSet<LaneId>,
}

impl Blocks {
    /// Before a chunk: ends the block if it is full.
    pub(super) fn before(&mut self, offset: u64, track: &mut Track) {
        if self.open.chunks >= CHUNKS || self.payload >= BYTES {
            self.end(track);
        }
        if self.open.chunks == 0 {
            self.open.offset = offset;
        }
    }

    /// Behind a chunk, of which it is known now what became of it.
    pub(super) fn add(&mut self, info: &ChunkInfo, checked: &Checked) {
        let payload = info.header.payload_len.into();
        self.open.chunks = self.open.chunks.saturating_add(1);
        self.payload = self.payload.saturating_add(payload);
        let again = match info.state {
            ChunkState::Damaged => Again::Checks,
            _ if self.marked.contains(&info.header.lane) => Again::Marks,
            _ => Again::Not,
        };
        self.open.again = self.open.again.max(again);
        if info.state == ChunkState::Intact && checked.has_marks() {
            self.marked.insert(info.header.lane);
        }
        if info.has_records() {
            self.open.bytes = self.open.bytes.saturating_add(payload);
        }
    }

    fn end(&mut self, track: &mut Track) {
        let lanes = track.take_begun();
        if self.open.chunks > 0 {
            self.done.push(Block { lanes, ..core::mem::take(&mut self.open) });
        }
        self.payload = 0;
        self.marked.clear();
    }

    pub(super) fn finish(mut self, track: &mut Track) -> Vec<Block> {
        self.end(track);
        self.done.shrink_to_fit();
        self.done
    }
}
