//! The third pass: everything that depends on the order of the chunks.

use tmrun_formats::wire::{Chunk, ChunkKind, FileHeader, LaneV1, TotalsV1, Trailer};
use tmrun_formats::{DecodeError, GapReason, Planes, Ticks};

use super::check::Checked;
use super::clock::Calibrations;
use super::counts::Counts;
use super::damage::Damages;
use super::error::Finding;
use super::gaps::GapList;
use super::lanes::Lanes;
use super::levels::Levels;
use super::meta::{LaneFrames, Meta};
use super::recording::Recording;
use super::walk::{ChunkInfo, ChunkState, Walk, counted};

/// More gaps than this are added up by reason and lane.
const GAPS: usize = 1 << 16;

/// The third pass: in file order.
pub(super) struct Merge<'a> {
    chunks: Vec<ChunkInfo>,
    pub(super) counts: Counts,
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
    pub(super) fn of(walk: Walk<'a>) -> Self {
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

    pub(super) fn chunk(&mut self, bytes: &'a [u8], at: usize, checked: Checked) {
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

    pub(super) fn finish(
        mut self,
        bytes: &'a [u8],
        name: &str,
        header: FileHeader,
    ) -> Recording<'a> {
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
