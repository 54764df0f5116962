//! From damaged bytes and missing positions to gaps.
//!
//! A hole in a lane's sequence says how many records are missing, damaged bytes say where. Bytes
//! that lie where the records of a hole must have been, and cannot have held anything else, are that
//! hole, and counted once (`explain.rs`). Damaged bytes without a hole, or of more than it takes, are
//! a gap too, of no known count.

use tmrun_formats::wire::{ChunkHeader, HoleV1};
use tmrun_formats::{DecodeError, GapReason, LaneId, Planes, Ticks};

use super::error::Finding;
use super::explain::{Filling, Place, explained};
use super::gaps::{Gap, every_plane};
use super::lanes::Hole;
use super::walk::ChunkInfo;

/// Evidence that the file should have and has not: what its bytes lack, apart from what its Gap
/// records tell. Each is one of the gaps, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// What it was, as far as that is known.
    pub what: &'static str,
    /// The gap; its `first_ns` and `last_ns` are not filled in.
    pub gap: Gap,
    /// The position of the first missing record on the gap's lane; `None` where nobody knows which
    /// records they are, or that they are records.
    pub position: Option<u64>,
    /// Where in the file it was or should be.
    pub offset: u64,
    /// In how many bytes.
    pub len: u64,
    /// A Hole frame says so: the file is whole without it.
    pub declared: bool,
}

/// What is wrong with a file, before it is known what is missing.
#[derive(Debug, Default)]
pub(super) struct Damages {
    holes: Vec<Hole>,
    counted: Vec<Missing>,
    suspects: Vec<Suspect>,
    /// How many suspects, by offset, have the records behind them.
    placed: usize,
    /// The greatest tick of the last chunk of records so far.
    greatest: Option<Ticks>,
}

/// Damaged bytes of which nobody knows what they held.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    what: &'static str,
    offset: u64,
    len: u64,
    reason: GapReason,
    lane: Option<LaneId>,
    range: Option<(Ticks, Ticks)>,
    planes: Planes,
    /// It is known to have held no positions that are missing, so no hole in a lane's sequence is its
    /// doing.
    apart: bool,
    /// How many chunks were there, by the numbers of those around it.
    chunks: Option<u64>,
    /// The greatest tick of the chunk of records before it in the file, and the least of the one
    /// behind it.
    before: Option<Ticks>,
    behind: Option<Ticks>,
}

impl Suspect {
    fn at((offset, len): (u64, u64), what: &'static str, reason: GapReason) -> Self {
        Self {
            what,
            offset,
            len,
            reason,
            lane: None,
            range: None,
            planes: every_plane(),
            apart: false,
            chunks: None,
            before: None,
            behind: None,
        }
    }

    /// Where it lies in a list of places: what has no length lies before its offset.
    const fn place(&self) -> Place {
        let at = if self.len > 0 { self.offset } else { self.offset.saturating_sub(1) };
        Place { at, len: self.len, chunks: self.chunks }
    }

    fn missing(&self, span: (Ticks, Ticks), ends: &Ends) -> Missing {
        let between = (self.before.unwrap_or(span.0), self.behind.unwrap_or(span.1));
        let between = (between.0.min(between.1), between.0.max(between.1));
        let lost = ends.lost_from(self.offset, span).filter(|_| !self.apart);
        let between = lost.map_or(between, |lost| (between.0.min(lost.0), between.1.max(lost.1)));
        // Metadata is of the whole run, wherever it stands.
        let between = if self.planes == Planes::RECORDER { span } else { between };
        // As a record tells it: what nobody counted of the recorder's own lane is of no lane.
        let lane = self.lane.filter(|&lane| lane != LaneId::RECORDER);
        let gap = Gap::lost(self.reason, lane, self.range.unwrap_or(between), 0);
        let gap = Gap { planes: self.planes, ..gap };
        Missing {
            what: self.what,
            gap,
            position: None,
            offset: self.offset,
            len: self.len,
            declared: false,
        }
    }
}

impl Damages {
    pub(super) fn hole(&mut self, hole: Hole) {
        self.holes.push(hole);
    }

    /// Records of which the header is there, in so many bytes from `offset` on. Where it counts none
    /// nothing is missing; or nobody knows what, when a newer version wrote something.
    pub(super) fn counted(&mut self, gap: Gap, header: &ChunkHeader, (offset, len): (u64, u64)) {
        if header.records == 0 {
            if header.payload_len > 0 {
                let (lane, range) = (gap.lane, Some((gap.first, gap.last)));
                let suspect = Suspect::at((offset, len), "records", gap.reason);
                self.suspects.push(Suspect { lane, range, apart: true, ..suspect });
            }
            return;
        }
        let position = Some(header.first_sequence);
        self.counted.push(Missing { what: "records", gap, position, offset, len, declared: false });
    }

    /// Bytes that are no chunk.
    pub(super) fn uncounted(&mut self, place: (u64, u64), reason: GapReason) {
        self.suspects.push(Suspect::at(place, "bytes that are no chunk", reason));
    }

    /// So many chunks are missing before this place, and not a byte is damaged.
    pub(super) fn left_out(&mut self, offset: u64, chunks: u64) {
        let suspect = Suspect::at((offset, 0), "chunks that are not there", GapReason::CORRUPT);
        self.suspects.push(Suspect { chunks: Some(chunks), ..suspect });
    }

    /// So many chunks were where bytes from this offset on are none.
    pub(super) fn numbered(&mut self, offset: u64, chunks: u64) {
        let mut latest = self.suspects.iter_mut().rev();
        if let Some(suspect) = latest.find(|suspect| suspect.offset == offset && !suspect.apart) {
            suspect.chunks = Some(chunks);
        }
    }

    /// A chunk of records at a position that its lane has gone past: no hole is its doing, for its
    /// header says which records it has.
    pub(super) fn displaced(&mut self, header: &ChunkHeader, offset: u64) {
        let range = (header.least.min(header.greatest), header.greatest.max(header.least));
        let what = "records at a position that their lane has gone past";
        self.suspects.push(Suspect {
            lane: Some(header.lane),
            range: Some(range),
            apart: true,
            ..Suspect::at((offset, chunk_len(header)), what, GapReason::CORRUPT)
        });
    }

    /// A chunk, or a frame in one, that holds no records and cannot be used.
    pub(super) fn without_records(
        &mut self,
        place: (u64, u64),
        what: &'static str,
        planes: Planes,
    ) {
        let suspect = Suspect::at(place, what, GapReason::CORRUPT);
        self.suspects.push(Suspect { planes, apart: true, ..suspect });
    }

    /// The file header, of which so many bytes are left.
    pub(super) fn header(&mut self, len: u64, reason: GapReason) {
        let suspect = Suspect::at((0, len), "the file header", reason);
        self.suspects.push(Suspect { planes: Planes::RECORDER, apart: true, ..suspect });
    }

    /// The next chunks of the file, all suspects up to their end being known: the time of a suspect
    /// is between the records before it in the file and those behind it.
    pub(super) fn place(&mut self, chunks: &[ChunkInfo]) {
        let waiting = self.suspects.get_mut(self.placed..).unwrap_or_default();
        waiting.sort_by_key(|suspect| suspect.offset);
        for chunk in chunks.iter().filter(|chunk| chunk.has_records()) {
            self.place_before(chunk.offset, Some(chunk.header.least));
            self.greatest = Some(chunk.header.greatest);
        }
    }

    fn place_before(&mut self, offset: u64, least: Option<Ticks>) {
        let waiting = self.suspects.get_mut(self.placed..).unwrap_or_default();
        for suspect in waiting.iter_mut().take_while(|suspect| suspect.offset < offset) {
            (suspect.before, suspect.behind) = (self.greatest, least);
            self.placed = self.placed.saturating_add(1);
        }
    }

    /// What is missing, by offset. `span` is the time that the file covers. A hole that the file
    /// declares has the reason that it says, and is no loss if that was not requested; another one
    /// without any damaged bytes is a finding: the writer left it.
    pub(super) fn finish(
        mut self,
        span: (Ticks, Ticks),
        declared: &[HoleV1],
        ends: &Ends,
        findings: &mut Vec<Finding>,
    ) -> Vec<Missing> {
        self.place(&[]);
        self.place_before(u64::MAX, None);
        let declared = disjoint(declared);
        let near: Vec<Suspect> = self.suspects.iter().filter(|s| !s.apart).copied().collect();
        let places: Vec<Place> = near.iter().map(Suspect::place).collect();
        let (mut missing, mut fillings) = (Vec::new(), Vec::new());
        for hole in &self.holes {
            let bytes = damaged_within(&near, hole.bytes);
            let pieces = pieces(hole, &declared);
            let lost = pieces.iter().filter(|piece| !piece.declared).map(|piece| piece.records);
            let lost = lost.fold(0, u64::saturating_add);
            if lost > 0 {
                fillings.push(Filling { bytes: hole.bytes, records: lost });
                findings.extend(bytes.is_none().then(|| left_out(hole)));
            }
            missing.extend(pieces.into_iter().map(|piece| piece.missing(hole, bytes, span)));
        }
        let lost = fillings.iter().fold(0_u64, |all, filling| all.saturating_add(filling.records));
        let ends = ends.but_for(lost);
        let explained = explained(&places, &fillings);
        let unexplained = near.iter().zip(explained).filter(|(_, explained)| !explained);
        let apart = self.suspects.iter().filter(|suspect| suspect.apart);
        for suspect in unexplained.map(|(suspect, _)| suspect).chain(apart) {
            let mut of_suspect = suspect.missing(span, &ends);
            // Where all records are accounted for, chunks that are not there held metadata.
            if suspect.len == 0 && ends.are_all_there() {
                of_suspect.gap.planes = Planes::RECORDER;
                (of_suspect.gap.first, of_suspect.gap.last) = span;
            }
            missing.push(of_suspect);
        }
        missing.append(&mut self.counted);
        missing.sort_by_key(|missing| (missing.offset, missing.gap.lane, missing.position));
        missing
    }
}

/// How the lanes of a file end, as far as it tells.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    /// Records that the trailer counts and no header tells of; `None` without a trailer.
    pub(super) untold: Option<u64>,
    /// Of each lane of which nobody knows how far it came: where its last chunk begins (0: it has none),
    /// and the greatest tick until there.
    pub(super) open: Vec<(u64, Option<Ticks>)>,
}

impl Ends {
    /// The same, but for so many records that are known to be lost.
    fn but_for(&self, lost: u64) -> Self {
        let untold = self.untold.map(|untold| untold.saturating_sub(lost));
        Self { untold, open: self.open.clone() }
    }

    fn are_all_there(&self) -> bool {
        self.untold == Some(0)
    }

    /// The time of records that nobody tells of, if they were here: behind what is there of a lane whose
    /// end is not known, until the end of the file.
    fn lost_from(&self, offset: u64, span: (Ticks, Ticks)) -> Option<(Ticks, Ticks)> {
        self.untold.filter(|&untold| untold > 0)?;
        let ended = self.open.iter().filter(|&&(last, _)| last <= offset);
        let from = ended.map(|&(_, greatest)| greatest.unwrap_or(span.0)).min();
        Some((from.unwrap_or(span.0), span.1))
    }
}

/// A chunk with its header.
pub(super) fn chunk_len(header: &ChunkHeader) -> u64 {
    (ChunkHeader::SIZE as u64).saturating_add(header.payload_len.into())
}

/// From the first to the last of the damaged bytes within these; as offset and length.
fn damaged_within(suspects: &[Suspect], bytes: (u64, u64)) -> Option<(u64, u64)> {
    let behind = suspects.get(suspects.partition_point(|s| s.offset <= bytes.0)..)?;
    let within = behind.get(..behind.partition_point(|s| s.offset < bytes.1))?;
    let has_bytes = |suspect: &&Suspect| suspect.len > 0;
    let (first, last) = (within.iter().find(has_bytes)?, within.iter().rfind(has_bytes)?);
    let end = last.offset.saturating_add(last.len);
    Some((first.offset, end.saturating_sub(first.offset)))
}

/// A part of a hole.
struct Piece {
    position: u64,
    records: u64,
    reason: GapReason,
    declared: bool,
}

impl Piece {
    fn missing(self, hole: &Hole, bytes: Option<(u64, u64)>, span: (Ticks, Ticks)) -> Missing {
        let (first, last) = (hole.after.unwrap_or(span.0), hole.before.unwrap_or(span.1));
        let range = (first.min(last), last.max(first));
        let gap = Gap::lost(self.reason, Some(hole.lane), range, self.records);
        let gap = Gap { class: self.reason.class(), ..gap };
        let between = (hole.bytes.0, hole.bytes.1.saturating_sub(hole.bytes.0));
        let (offset, len) = bytes.unwrap_or(between);
        let (what, position, declared) = ("records", Some(self.position), self.declared);
        Missing { what, gap, position, offset, len, declared }
    }
}

/// What the file declares, by lane and position: no position twice, however often it is declared.
fn disjoint(declared: &[HoleV1]) -> Vec<HoleV1> {
    let mut declared = declared.to_vec();
    declared.sort_by_key(|hole| (hole.lane, hole.sequence));
    let mut reached = (LaneId(0), 0);
    declared.retain_mut(|hole| {
        let end = hole.end();
        if reached.0 == hole.lane {
            hole.sequence = hole.sequence.max(reached.1);
        }
        hole.records = end.saturating_sub(hole.sequence);
        if hole.records > 0 {
            reached = (hole.lane, end);
        }
        hole.records > 0
    });
    declared
}

/// A hole by what is declared of it, and what is left.
fn pieces(hole: &Hole, declared: &[HoleV1]) -> Vec<Piece> {
    let (mut at, end) = (hole.position, hole.position.saturating_add(hole.records));
    let mut pieces = Vec::new();
    let mut push = |from: u64, to: u64, reason, declared| {
        if let Some(records) = to.checked_sub(from).filter(|&records| records > 0) {
            pieces.push(Piece { position: from, records, reason, declared });
        }
    };
    let first = declared.partition_point(|d| (d.lane, d.end()) <= (hole.lane, at));
    let of_lane = declared.get(first..).unwrap_or_default().iter();
    for frame in of_lane.take_while(|d| d.lane == hole.lane && d.sequence < end) {
        let (from, to) = (frame.sequence.max(at), frame.end().min(end));
        push(at, from, GapReason::CORRUPT, false);
        push(from, to, frame.reason, true);
        at = to;
    }
    push(at, end, GapReason::CORRUPT, false);
    pieces
}

/// Positions of a lane that are simply not there.
fn left_out(hole: &Hole) -> Finding {
    let error = DecodeError::Malformed {
        what: "position of the next record of a lane",
        offset: hole.bytes.1,
        expected: hole.position,
        found: hole.position.saturating_add(hole.records),
    };
    Finding { error, lane: Some(hole.lane), chunk: None }
}
