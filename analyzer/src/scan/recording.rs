//! Opening a recording.

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use tmrun_formats::wire::{Chunk, ChunkKind, FileHeader, LaneV1, TotalsV1, Trailer};
use tmrun_formats::{DecodeError, GapClass, GapReason, Planes, Ticks};

use super::check::{Checked, check};
use super::clock::{Calibrations, Clock};
use super::counts::Counts;
use super::damage::Damages;
use super::error::{Finding, OpenError};
use super::gaps::{Gap, GapList};
use super::lanes::Lanes;
use super::levels::Levels;
use super::meta::{LaneFrames, Meta};
use super::names::Names;
use super::walk::{ChunkInfo, ChunkState, Walk, counted};

/// More gaps than this are added up by reason and lane.
const GAPS: usize = 1 << 16;
/// The most chunks that one core takes at once: enough to be worth handing over.
const BLOCK: usize = 64;

/// What is in a `.tmrun`, and what is missing from it.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    bytes: &'a [u8],
    name: String,
    header: FileHeader,
    chunks: Vec<ChunkInfo>,
    counts: Counts,
    lanes: Lanes<'a>,
    levels: Levels,
    meta: Meta<'a>,
    calibrations: Calibrations,
    gaps: Vec<Gap>,
    merged_gaps: u64,
    findings: Vec<Finding>,
    odd_levels: Vec<Finding>,
    trailer: Option<Trailer>,
    torn: bool,
    span: Option<(Ticks, Ticks)>,
}

/// How a file ends, and whether all of it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has its trailer, and every byte holds.
    Finished,
    /// Every byte holds, and it has no trailer: it is being written, or its writer was stopped.
    NotFinished,
    /// It ends within a chunk or the trailer; what comes before holds.
    Torn,
    /// Bytes do not hold, or positions are missing.
    Damaged,
}

impl Status {
    /// The status's name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::NotFinished => "not_finished",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
        }
    }
}

impl<'a> Recording<'a> {
    /// Reads a whole file; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// When the file header cannot be read. Everything else that is wrong is a
    /// [finding](Self::findings).
    pub fn open(bytes: &'a [u8], name: &str) -> Result<Self, OpenError> {
        Self::open_observed(bytes, name, &|_| ())
    }

    /// The same, and `progress` is told of bytes as they have been looked at, on any thread.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_observed(
        bytes: &'a [u8],
        name: &str,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, OpenError> {
        let header = FileHeader::decode(bytes)
            .map_err(|source| OpenError { file: name.to_owned(), source })?;
        let walk = Walk::over(bytes);
        let blocks = check_all(bytes, &walk.chunks, progress);
        let mut merge = Merge::of(walk);
        let mut at = 0_usize;
        for (checked, counts) in blocks {
            merge.counts.merge(&counts);
            for checked in checked {
                merge.chunk(bytes, at, checked);
                at = at.saturating_add(1);
            }
        }
        Ok(merge.finish(bytes, name, header))
    }
}

/// A block of checked chunks, and the counts of the records in those that hold.
type Block = (Vec<Checked>, Counts);

/// The second pass: every chunk by itself, on all cores. The result does not depend on how the
/// chunks are dealt out.
fn check_all(bytes: &[u8], chunks: &[ChunkInfo], progress: &(dyn Fn(u64) + Sync)) -> Vec<Block> {
    let shares = rayon::current_num_threads().saturating_mul(8).max(1);
    let block = chunks.len().checked_div(shares).unwrap_or(1).clamp(1, BLOCK);
    let check_block = |infos: &[ChunkInfo]| {
        let mut counts = Counts::default();
        let checked = infos.iter().map(|info| {
            progress(info.header.payload_len.into());
            check_one(bytes, info, &mut counts)
        });
        (checked.collect(), counts)
    };
    chunks.par_chunks(block).map(check_block).collect()
}

fn check_one(bytes: &[u8], info: &ChunkInfo, counts: &mut Counts) -> Checked {
    match info.chunk(bytes) {
        Some(chunk) if info.state == ChunkState::Intact => check(&chunk, counts),
        // Not read by this version, or not to be used: only its bytes are checked.
        Some(chunk) => Checked::only(chunk.check().err()),
        None => Checked::only(None),
    }
}

/// The third pass: in file order.
struct Merge<'a> {
    chunks: Vec<ChunkInfo>,
    counts: Counts,
    lanes: Lanes<'a>,
    levels: Levels,
    meta: Meta<'a>,
    recorded: GapList,
    damages: Damages,
    findings: Vec<Finding>,
    odd_levels: Vec<Finding>,
    trailer: Option<Trailer>,
    torn: bool,
    span: Option<(Ticks, Ticks)>,
}

impl<'a> Merge<'a> {
    fn of(walk: Walk<'a>) -> Self {
        Self {
            chunks: walk.chunks,
            counts: Counts::default(),
            lanes: walk.lanes,
            levels: Levels::default(),
            meta: Meta::default(),
            recorded: GapList::new(GAPS),
            damages: walk.damages,
            findings: walk.findings,
            odd_levels: Vec::new(),
            trailer: walk.trailer,
            torn: walk.torn,
            span: None,
        }
    }

    fn chunk(&mut self, bytes: &'a [u8], at: usize, checked: Checked) {
        let Some(info) = self.chunks.get_mut(at) else { return };
        let header = info.header;
        if let Some(error) = checked.error {
            self.findings.push(Finding::in_chunk(error, header.lane, header.number));
            if info.state != ChunkState::Intact {
                return;
            }
            info.state = ChunkState::Damaged;
            match header.kind {
                ChunkKind::RECORDS => {
                    self.damages.counted(counted(GapReason::CORRUPT, &header));
                    let lane = self.lanes.entry(header.lane);
                    lane.state = lane.state.doubted();
                }
                ChunkKind::META => self.damages.without_records(info.offset, Planes::RECORDER),
                _ => self.damages.without_records(info.offset, Planes::NONE),
            }
            return;
        }
        if info.state != ChunkState::Intact {
            return;
        }
        match header.kind {
            ChunkKind::RECORDS => self.records(at, checked),
            ChunkKind::META => {
                let chunk = info.chunk(bytes);
                chunk.iter().for_each(|chunk| self.frames(chunk));
            }
            _ => {}
        }
    }

    fn records(&mut self, at: usize, checked: Checked) {
        let Some(info) = self.chunks.get_mut(at) else { return };
        let header = info.header;
        let lane = self.lanes.entry(header.lane);
        if info.behind_hole {
            lane.state = lane.state.doubted();
        }
        info.step = lane.state;
        lane.state = checked.steps.apply(lane.state);
        lane.steps.extend(&checked.steps);
        lane.records = lane.records.saturating_add(header.records.into());
        lane.chunks = lane.chunks.saturating_add(1);
        lane.spans = lane.spans.saturating_add(checked.spans);
        self.recorded.append(checked.gaps);
        checked.levels.into_iter().for_each(|change| self.levels.push(change));
        let odd = |error| Finding::in_chunk(error, header.lane, header.number);
        self.odd_levels.extend(checked.odd_level.map(odd));
        if header.records > 0 {
            let (least, greatest) = self.span.unwrap_or((header.least, header.greatest));
            self.span = Some((least.min(header.least), greatest.max(header.greatest)));
        }
    }

    fn frames(&mut self, chunk: &Chunk<'a>) {
        let (damages, findings) = (&mut self.damages, &mut self.findings);
        let mut wrong = false;
        self.meta.read(chunk, &mut self.lanes, |error| {
            findings.push(Finding::in_chunk(error, chunk.header.lane, chunk.header.number));
            wrong = true;
        });
        if wrong {
            damages.without_records(chunk.offset, Planes::RECORDER);
        }
    }

    fn finish(mut self, bytes: &'a [u8], name: &str, header: FileHeader) -> Recording<'a> {
        self.levels.finish();
        let ends = self.meta.terminal.map(|terminal| terminal.ticks);
        let least = self.span.map(|span| span.0).or(ends).unwrap_or_default();
        let greatest = self.span.map(|span| span.1).max(ends).unwrap_or_default();
        let samples = core::mem::take(&mut self.meta.calibrations);
        let calibrations = Calibrations::new(samples, header.ticks_per_second, least);
        self.totals();
        let mut gaps = self.recorded;
        self.levels.not_requested(greatest, &mut gaps);
        let span = (least, greatest);
        self.damages.finish(&self.chunks, span, &mut gaps, &mut self.findings);
        let (gaps, merged_gaps) = gaps.finish(&calibrations.clock());
        self.findings.sort_by_key(|finding| finding.error.offset());
        Recording {
            bytes,
            name: name.to_owned(),
            header,
            chunks: self.chunks,
            counts: self.counts,
            lanes: self.lanes,
            levels: self.levels,
            meta: self.meta,
            calibrations,
            gaps,
            merged_gaps,
            findings: self.findings,
            odd_levels: self.odd_levels,
            trailer: self.trailer,
            torn: self.torn,
            span: self.span,
        }
    }

    /// Holds the totals of the lanes against the positions that the chunks reached.
    fn totals(&mut self) {
        let holes: Vec<_> = self.lanes.holes_at_the_end().collect();
        holes.into_iter().for_each(|hole| self.damages.hole(hole));
        for (id, lane) in self.lanes.iter() {
            let Some(totals) = lane.totals else { continue };
            if totals.records < lane.next && lane.totals_offset > lane.last_offset {
                let error = DecodeError::Malformed {
                    what: "records that the totals count on a lane",
                    offset: lane.totals_offset,
                    expected: lane.next,
                    found: totals.records,
                };
                self.findings.push(Finding { error, lane: Some(id), chunk: None });
            }
        }
    }
}

impl<'a> LaneFrames<'a> for Lanes<'a> {
    fn claim(&mut self, claim: LaneV1<'a>) {
        let lane = self.entry(claim.lane);
        lane.claim = Some(claim);
        lane.claims = lane.claims.saturating_add(1);
    }

    fn totals(&mut self, totals: TotalsV1, offset: u64) {
        let lane = self.entry(totals.lane);
        lane.totals = Some(totals);
        lane.totals_offset = offset;
    }
}

impl<'a> Recording<'a> {
    /// The bytes that it was opened from.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file header.
    pub const fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The trailer; `None` in a file that was not finished.
    pub const fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// Every chunk that has a valid header, in file order.
    pub fn chunks(&self) -> &[ChunkInfo] {
        &self.chunks
    }

    /// Records in intact chunks, by kind.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The lanes.
    pub const fn lanes(&self) -> &Lanes<'a> {
        &self.lanes
    }

    /// The level over time.
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The metadata.
    pub const fn meta(&self) -> &Meta<'a> {
        &self.meta
    }

    /// The name table.
    pub const fn names(&self) -> &Names<'a> {
        &self.meta.names
    }

    /// The map from ticks to nanoseconds. Keep it for as many ticks as there are to map.
    pub fn clock(&self) -> Clock<'_> {
        self.calibrations.clock()
    }

    /// The samples behind the clock.
    pub const fn calibrations(&self) -> &Calibrations {
        &self.calibrations
    }

    /// The earliest and latest ticks of intact records; `None` when there are none.
    pub const fn span(&self) -> Option<(Ticks, Ticks)> {
        self.span
    }

    /// Everything that is missing, in order of time.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The gaps that are lost evidence.
    pub fn lost(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|gap| gap.class == GapClass::Lost)
    }

    /// How many gaps were too many to list and were added to another one of their reason and lane.
    pub const fn merged_gaps(&self) -> u64 {
        self.merged_gaps
    }

    /// Every place that breaks the format, by offset.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The first record of each chunk whose level is none that this version knows.
    pub(super) fn odd_levels(&self) -> &[Finding] {
        &self.odd_levels
    }

    /// How the file ends, and whether all of it holds.
    pub fn status(&self) -> Status {
        match (self.findings.len(), self.trailer) {
            (0, Some(_)) => Status::Finished,
            (0, None) => Status::NotFinished,
            (1, _) if self.torn => Status::Torn,
            _ => Status::Damaged,
        }
    }
}
