//! The first pass: chunk headers, in file order. It reads 64 bytes a chunk.

use tmrun_formats::wire::{Chunk, ChunkHeader, ChunkKind, Chunks, Damage, Frame, Trailer, Walked};
use tmrun_formats::{DecodeError, GapReason};

use super::damage::Damages;
use super::error::Finding;
use super::gaps::Gap;
use super::lanes::{Follows, Lanes};
use super::steps::StepState;

/// A chunk of a file, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Where its header starts in the file.
    pub offset: u64,
    /// Its header.
    pub header: ChunkHeader,
    /// Whether it is used.
    pub state: ChunkState,
    /// For records: the step state of its lane before its first record.
    pub step: StepState,
    /// Records are missing between it and the chunk before it on its lane.
    pub(super) behind_hole: bool,
}

/// Whether a chunk is used, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// Everything about it holds.
    Intact,
    /// Its payload does not hold: a gap says what it would have been.
    Damaged,
    /// Its records have positions that its lane has gone past: it is there twice, or its header
    /// lies.
    Displaced,
    /// A newer version wrote it in a way that this one cannot read.
    Unknown,
}

impl ChunkInfo {
    /// The chunk in the file that it was found in.
    pub fn chunk<'a>(&self, file: &'a [u8]) -> Option<Chunk<'a>> {
        let from = usize::try_from(self.offset).ok()?.checked_add(ChunkHeader::SIZE)?;
        let len = usize::try_from(self.header.payload_len).ok()?;
        let payload = file.get(from..)?.get(..len)?;
        Some(Chunk { offset: self.offset, header: self.header, payload })
    }

    /// Whether it holds records that are used.
    pub fn has_records(&self) -> bool {
        self.state == ChunkState::Intact && self.header.kind == ChunkKind::RECORDS
    }
}

/// What the first pass finds.
#[derive(Debug, Default)]
pub(super) struct Walk<'a> {
    pub(super) chunks: Vec<ChunkInfo>,
    pub(super) lanes: Lanes<'a>,
    pub(super) damages: Damages,
    pub(super) findings: Vec<Finding>,
    pub(super) trailer: Option<Trailer>,
    /// The file ends within something.
    pub(super) torn: bool,
    /// The number that the next chunk has to have; unknown behind damage.
    number: Option<u64>,
}

impl<'a> Walk<'a> {
    pub(super) fn over(file: &'a [u8]) -> Self {
        let mut walk = Self { number: Some(0), ..Self::default() };
        for walked in Chunks::new(file) {
            match walked {
                Walked::Chunk(chunk) => walk.chunk(&chunk),
                Walked::Damage(damage) => walk.damage(&damage, file.len() as u64),
                Walked::Trailer(trailer) => walk.trailer = Some(trailer),
            }
        }
        walk
    }

    fn chunk(&mut self, chunk: &Chunk<'a>) {
        let &Chunk { offset, header, .. } = chunk;
        self.check_number(&header, offset);
        let step = StepState::START;
        let (state, behind_hole) = match header.kind {
            ChunkKind::RECORDS => self.records(&header, offset),
            ChunkKind::META if header.is_known() => {
                self.claims(chunk);
                (ChunkState::Intact, false)
            }
            _ if header.is_known() => (ChunkState::Intact, false),
            _ => (ChunkState::Unknown, false),
        };
        self.chunks.push(ChunkInfo { offset, header, state, step, behind_hole });
    }

    /// The first claim of a lane says at which position the file takes it up: a probe that was
    /// recorded before does not begin at 0.
    fn claims(&mut self, chunk: &Chunk<'a>) {
        if chunk.check().is_err() {
            return;
        }
        for raw in chunk.frames().map_while(Result::ok) {
            if let Ok(Frame::Lane(claim)) = raw.decode() {
                self.lanes.begin_at(claim.lane, claim.sequence);
            }
        }
    }

    fn check_number(&mut self, header: &ChunkHeader, offset: u64) {
        if let Some(expected) = self.number.filter(|&expected| expected != header.number) {
            let (what, found) = ("number of the chunk", header.number);
            let offset = offset.saturating_add(8);
            let error = DecodeError::Malformed { what, offset, expected, found };
            self.findings.push(Finding::in_chunk(error, header.lane, found));
        }
        self.number = header.number.checked_add(1);
    }

    /// The state of a chunk of records by its header alone, and whether it lies behind a hole.
    fn records(&mut self, header: &ChunkHeader, offset: u64) -> (ChunkState, bool) {
        let behind_hole = match self.lanes.follow(header, offset) {
            Follows::Directly => false,
            Follows::Behind(hole) => {
                self.damages.hole(hole);
                true
            }
            Follows::Not { expected } => {
                let (what, found) = ("position of the chunk's first record", header.first_sequence);
                let error = DecodeError::Malformed {
                    what,
                    offset: offset.saturating_add(24),
                    expected,
                    found,
                };
                self.findings.push(Finding::in_chunk(error, header.lane, header.number));
                self.damages.displaced(header, offset);
                return (ChunkState::Displaced, false);
            }
        };
        if header.is_known() {
            return (ChunkState::Intact, behind_hole);
        }
        let error = DecodeError::Unsupported {
            what: "flags of a chunk of records",
            offset: offset.saturating_add(5),
            expected: 0,
            found: header.flags.into(),
        };
        self.findings.push(Finding::in_chunk(error, header.lane, header.number));
        self.damages.counted(counted(GapReason::CORRUPT, header));
        (ChunkState::Unknown, behind_hole)
    }

    fn damage(&mut self, damage: &Damage, file_len: u64) {
        let at_the_end = damage.offset.saturating_add(damage.len) >= file_len;
        let cut = at_the_end && matches!(damage.error, DecodeError::Truncated { .. });
        self.torn |= cut;
        // A header whose payload other chunks follow in is not believed: its length was not kept.
        let header = damage.header.filter(|header| cut && header.kind == ChunkKind::RECORDS);
        self.findings.push(match damage.header {
            Some(header) => Finding::in_chunk(damage.error, header.lane, header.number),
            None => Finding::new(damage.error),
        });
        self.number = None;
        let reason = if cut { GapReason::TORN } else { GapReason::CORRUPT };
        if let Some(header) = header {
            match self.lanes.follow(&header, damage.offset) {
                Follows::Directly => return self.damages.counted(counted(reason, &header)),
                Follows::Behind(hole) => {
                    self.damages.hole(hole);
                    return self.damages.counted(counted(reason, &header));
                }
                Follows::Not { .. } => {}
            }
        }
        self.damages.uncounted(damage.offset, reason);
    }
}

/// The gap of a chunk of records of which only the header can be used.
pub(super) fn counted(reason: GapReason, header: &ChunkHeader) -> Gap {
    let range = (header.least.min(header.greatest), header.greatest.max(header.least));
    Gap::lost(reason, Some(header.lane), range, header.records.into())
}
