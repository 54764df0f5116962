//! Chunk headers, in file order. It reads 64 bytes a chunk.

use tmrun_formats::wire::{
    Chunk, ChunkHeader, ChunkKind, Chunks, Damage, FileHeader, Trailer, Walked,
};
use tmrun_formats::{DecodeError, GapReason, Ticks};

use super::damage::Damages;
use super::error::Finding;
use super::gaps::Gap;
use super::lanes::{Follows, Hole};
use super::steps::StepState;
use super::track::Track;

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

/// So many chunks are walked at once, before they are checked on all cores.
const WINDOW: usize = 4096;

/// And so many bytes: what a check keeps can be as large as the payloads.
const WINDOW_BYTES: u64 = 32 << 20;

/// The walk, and what it finds.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    walked: Chunks<'a>,
    file_len: u64,
    track: Track,
    pub(super) damages: Damages,
    pub(super) findings: Vec<Finding>,
    pub(super) trailer: Option<Trailer>,
    /// The file ends within something.
    pub(super) torn: bool,
    /// The number that the next chunk has to have; unknown behind damage.
    number: Option<u64>,
    /// Where damage begins, and the number that a chunk there would have.
    damaged: Option<(u64, u64)>,
    /// Records that headers of chunks tell of.
    pub(super) records: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn over(file: &'a [u8]) -> Self {
        Self {
            walked: Chunks::new(file),
            file_len: file.len() as u64,
            track: Track::default(),
            damages: Damages::default(),
            findings: Vec::new(),
            trailer: None,
            torn: false,
            number: Some(0),
            damaged: None,
            records: 0,
        }
    }

    /// A walk over a file whose header cannot be read. There may be less of it than there should.
    pub(super) fn without_header(file: &'a [u8], error: DecodeError) -> Self {
        let mut walk = Self::over(file);
        let len = match Chunks::from(file, 0).next() {
            Some(Walked::Damage(damage)) => damage.len.min(FileHeader::SIZE as u64),
            _ => 0,
        };
        walk.walked = Chunks::from(file, len);
        walk.torn = matches!(error, DecodeError::Truncated { .. });
        let reason = if walk.torn { GapReason::TORN } else { GapReason::CORRUPT };
        walk.damages.header(len, reason);
        walk.findings.push(Finding::new(error));
        walk
    }

    /// Replaces the chunks by the next ones; there are none at the end. How many come at once does
    /// not depend on the number of cores, and so nothing that is made of them does.
    pub(super) fn window(&mut self, chunks: &mut Vec<ChunkInfo>) {
        chunks.clear();
        let mut bytes = 0_u64;
        while chunks.len() < WINDOW && bytes < WINDOW_BYTES {
            match self.walked.next() {
                Some(Walked::Chunk(chunk)) => {
                    bytes = bytes.saturating_add(chunk.header.payload_len.into());
                    chunks.push(self.chunk(&chunk));
                }
                Some(Walked::Damage(damage)) => self.damage(&damage),
                Some(Walked::Trailer(trailer)) => {
                    self.end_damage(trailer.chunks);
                    self.trailer = Some(trailer);
                }
                None => return,
            }
        }
    }

    /// How far the lanes came.
    pub(super) const fn track(&self) -> &Track {
        &self.track
    }

    fn chunk(&mut self, chunk: &Chunk<'a>) -> ChunkInfo {
        let &Chunk { offset, header, .. } = chunk;
        self.check_number(&header, offset);
        let (info, follows) = self.track.chunk(chunk);
        match follows {
            Some(Follows::Behind(hole)) => {
                let before = Some(published(chunk));
                self.records(&header, offset, Follows::Behind(Hole { before, ..hole }));
            }
            Some(follows) => self.records(&header, offset, follows),
            None => {}
        }
        info
    }

    /// Damage ends where a chunk of this number is next.
    fn end_damage(&mut self, number: u64) {
        let Some((offset, expected)) = self.damaged.take() else { return };
        if let Some(chunks) = number.checked_sub(expected) {
            self.damages.numbered(offset, chunks);
        }
    }

    fn check_number(&mut self, header: &ChunkHeader, offset: u64) {
        self.end_damage(header.number);
        if let Some(expected) = self.number.filter(|&expected| expected != header.number) {
            let (what, found) = ("number of the chunk", header.number);
            if let Some(missing) = found.checked_sub(expected) {
                self.damages.left_out(offset, missing);
            }
            let offset = offset.saturating_add(8);
            let error = DecodeError::Malformed { what, offset, expected, found };
            self.findings.push(Finding::in_chunk(error, header.lane, found));
        }
        self.number = header.number.checked_add(1);
    }

    /// What the header of a chunk of records tells.
    fn records(&mut self, header: &ChunkHeader, offset: u64, follows: Follows) {
        self.records = self.records.saturating_add(header.records.into());
        match follows {
            Follows::Directly => {}
            Follows::Behind(hole) => self.damages.hole(hole),
            Follows::Not { expected } => {
                let (what, found) = ("position of the chunk's first record", header.first_sequence);
                let error = DecodeError::Malformed {
                    what,
                    offset: offset.saturating_add(24),
                    expected,
                    found,
                };
                self.findings.push(Finding::in_chunk(error, header.lane, header.number));
                return self.damages.displaced(header, offset);
            }
        }
        if header.is_known() {
            return;
        }
        let error = DecodeError::Unsupported {
            what: "flags of a chunk of records",
            offset: offset.saturating_add(5),
            expected: 0,
            found: header.flags.into(),
        };
        self.findings.push(Finding::in_chunk(error, header.lane, header.number));
    }

    fn damage(&mut self, damage: &Damage) {
        let at_the_end = damage.offset.saturating_add(damage.len) >= self.file_len;
        let cut = at_the_end && matches!(damage.error, DecodeError::Truncated { .. });
        self.torn |= cut;
        // A header whose payload other chunks follow in is not believed: its length was not kept.
        let header = damage.header.filter(|header| cut && header.kind == ChunkKind::RECORDS);
        self.findings.push(match damage.header {
            Some(header) => Finding::in_chunk(damage.error, header.lane, header.number),
            None => Finding::new(damage.error),
        });
        self.damaged = self.number.take().map(|number| (damage.offset, number));
        let reason = if cut { GapReason::TORN } else { GapReason::CORRUPT };
        let place = (damage.offset, damage.len);
        if let Some(header) = header {
            let follows = self.track.follow(&header, damage.offset);
            if let Follows::Behind(hole) = follows {
                self.damages.hole(hole);
            }
            if !matches!(follows, Follows::Not { .. }) {
                self.damaged = None;
                return self.damages.counted(counted(reason, &header), &header, place);
            }
        }
        self.damages.uncounted(place, reason);
    }
}

/// The latest moment at which its first record was published: what its lane had before is older. The
/// record is not checked yet, and the header has to allow what it says.
fn published(chunk: &Chunk<'_>) -> Ticks {
    let (least, greatest) = (chunk.header.least, chunk.header.greatest);
    let first = chunk.records().first().filter(|_| chunk.header.is_known());
    let last = first.map_or(greatest, |record| record.edges().1);
    last.max(least).min(greatest)
}

/// The gap of a chunk of records of which only the header can be used.
pub(super) fn counted(reason: GapReason, header: &ChunkHeader) -> Gap {
    let range = (header.least.min(header.greatest), header.greatest.max(header.least));
    Gap::lost(reason, Some(header.lane), range, header.records.into())
}
