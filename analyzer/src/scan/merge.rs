//! Everything that depends on the order of the chunks.

use tmrun_formats::wire::{Chunk, ChunkHeader, ChunkKind, FileHeader, LaneV1, TotalsV1};
use tmrun_formats::{DecodeError, GapReason, Planes, Ticks};

use super::blocks::Blocks;
use super::check::Checked;
use super::clock::Calibrations;
use super::counts::{ChunkCounts, Counts};
use super::damage::{Ends, chunk_len};
use super::error::Finding;
use super::gaps::{Gap, GapList};
use super::lanes::Lanes;
use super::levels::Levels;
use super::meta::{LaneFrames, Meta};
use super::recording::Recording;
use super::track::Track;
use super::walk::{ChunkInfo, ChunkState, Walk, counted};

/// More gaps than this are added up by reason and lane.
const GAPS: usize = 1 << 16;

/// What is in a file, put together in file order.
pub(super) struct Merge<'a> {
    walk: Walk<'a>,
    track: Track,
    blocks: Blocks,
    chunks: ChunkCounts,
    pub(super) counts: Counts,
    lanes: Lanes<'a>,
    levels: Levels,
    meta: Meta<'a>,
    recorded: GapList,
    /// Records in a form that only a newer version can read: they are there, and of no use here.
    unread: Vec<Gap>,
    odd: Vec<Finding>,
    span: Option<(Ticks, Ticks)>,
}

impl<'a> Merge<'a> {
    pub(super) fn of(walk: Walk<'a>) -> Self {
        Self {
            walk,
            track: Track::default(),
            blocks: Blocks::default(),
            chunks: ChunkCounts::default(),
            counts: Counts::default(),
            lanes: Lanes::default(),
            levels: Levels::default(),
            meta: Meta::default(),
            recorded: GapList::new(GAPS),
            unread: Vec::new(),
            odd: Vec::new(),
            span: None,
        }
    }

    /// The next chunks, by their headers.
    pub(super) fn walk(&mut self, chunks: &mut Vec<ChunkInfo>) {
        self.walk.window(chunks);
    }

    /// Those chunks, all of them settled.
    pub(super) fn place(&mut self, chunks: &[ChunkInfo]) {
        self.walk.damages.place(chunks);
    }

    pub(super) fn chunk(&mut self, bytes: &'a [u8], info: &mut ChunkInfo, checked: Checked) {
        let Some(chunk) = info.chunk(bytes) else { return };
        let walked = info.state;
        self.blocks.before(info.offset, &mut self.track);
        (*info, _) = self.track.chunk(&chunk);
        self.track.settle(info, &checked);
        self.blocks.add(info, &checked);
        self.chunks.add(info);
        let header = info.header;
        if let Some(error) = checked.error {
            self.walk.findings.push(Finding::in_chunk(error, header.lane, header.number));
            return self.without(info, walked);
        }
        match (info.state, header.kind) {
            (ChunkState::Intact, ChunkKind::RECORDS) => self.records(&header, checked),
            (ChunkState::Intact, ChunkKind::META) => self.frames(&chunk),
            (ChunkState::Unknown, ChunkKind::RECORDS) => {
                self.unread.push(counted(GapReason::CORRUPT, &header));
            }
            _ => {}
        }
    }

    /// A chunk whose payload does not hold.
    fn without(&mut self, info: &ChunkInfo, walked: ChunkState) {
        let (header, damages) = (&info.header, &mut self.walk.damages);
        let place = (info.offset, chunk_len(header));
        let (what, planes) = match header.kind {
            _ if walked == ChunkState::Displaced => return,
            ChunkKind::RECORDS => {
                let gap = counted(GapReason::CORRUPT, header);
                return damages.counted(gap, header, place);
            }
            ChunkKind::META => ("metadata", Planes::RECORDER),
            ChunkKind::INDEX => ("an index", Planes::NONE),
            ChunkKind::BLOB => ("tensor data", Planes::NONE),
            _ => ("a chunk of a newer version", Planes::NONE),
        };
        damages.without_records(place, what, planes);
    }

    fn records(&mut self, header: &ChunkHeader, checked: Checked) {
        let lane = self.lanes.entry(header.lane);
        lane.steps.extend(&checked.steps);
        lane.records = lane.records.saturating_add(header.records.into());
        lane.chunks = lane.chunks.saturating_add(1);
        lane.spans = lane.spans.saturating_add(checked.spans);
        self.recorded.append(checked.gaps);
        checked.levels.into_iter().for_each(|(focus, change)| self.levels.push(focus, change));
        let odd = |error| Finding::in_chunk(error, header.lane, header.number);
        self.odd.extend(checked.odd.map(odd));
        if header.records > 0 {
            let (least, greatest) = self.span.unwrap_or((header.least, header.greatest));
            self.span = Some((least.min(header.least), greatest.max(header.greatest)));
        }
    }

    fn frames(&mut self, chunk: &Chunk<'a>) {
        let Walk { damages, findings, .. } = &mut self.walk;
        let mut wrong = false;
        self.meta.read(chunk, &mut self.lanes, |error| {
            findings.push(Finding::in_chunk(error, chunk.header.lane, chunk.header.number));
            wrong = true;
        });
        if wrong {
            let place = (chunk.offset, chunk_len(&chunk.header));
            damages.without_records(place, "some of the metadata", Planes::RECORDER);
        }
    }

    pub(super) fn finish(
        mut self,
        bytes: &'a [u8],
        name: &str,
        header: FileHeader,
    ) -> Recording<'a> {
        self.levels.finish();
        self.lanes.ended(self.walk.track(), &self.track, &self.meta.starts);
        let ends = self.meta.terminal.map(|terminal| terminal.ticks);
        let least = self.span.map(|span| span.0).or(ends).unwrap_or_default();
        let greatest = self.span.map(|span| span.1).max(ends).unwrap_or_default();
        self.totals(bytes.len() as u64);
        let ends = self.ends();
        let mut gaps = self.recorded;
        self.levels.not_requested(greatest, &mut gaps);
        for removed in self.meta.removed.values() {
            let range = (removed.from.min(removed.to), removed.to.max(removed.from));
            let gap = Gap::lost(GapReason::LEFT_OUT, None, range, removed.records);
            gaps.push(Gap { class: GapReason::LEFT_OUT.class(), ..gap });
        }
        let span = (least, greatest);
        let Walk { damages, mut findings, trailer, torn, .. } = self.walk;
        let missing = damages.finish(span, &self.meta.holes, &ends, &mut findings);
        missing.iter().for_each(|missing| gaps.push(missing.gap));
        self.unread.into_iter().for_each(|gap| gaps.push(gap));
        let samples = core::mem::take(&mut self.meta.calibrations);
        let rate = header.ticks_per_second;
        let calibrations = Calibrations::new(samples, rate, span, gaps.lacks_metadata());
        let (gaps, merged_gaps) = gaps.finish(&calibrations.clock());
        findings.sort_by_key(|finding| finding.error.offset());
        Recording {
            bytes,
            name: name.to_owned(),
            header,
            blocks: self.blocks.finish(&mut self.track),
            chunks: self.chunks,
            counts: self.counts,
            lanes: self.lanes,
            levels: self.levels,
            meta: self.meta,
            calibrations,
            gaps,
            merged_gaps,
            missing,
            header_error: None,
            findings,
            odd: self.odd,
            trailer,
            torn,
            span: self.span,
        }
    }

    /// How the lanes end, as far as the file tells.
    fn ends(&self) -> Ends {
        let Some(trailer) = &self.walk.trailer else { return Ends::default() };
        let open = self.lanes.iter().filter(|(_, lane)| lane.counters().is_none());
        Ends {
            untold: Some(trailer.records.saturating_sub(self.walk.records)),
            open: open.map(|(_, lane)| (lane.last_offset, lane.greatest)).collect(),
        }
    }

    /// Holds the totals of the lanes, and the holes that are declared, against the positions that the
    /// chunks reached.
    fn totals(&mut self, file_len: u64) {
        self.lanes.reach(&self.meta.holes);
        let holes: Vec<_> = self.lanes.holes_at_the_end(file_len).collect();
        holes.into_iter().for_each(|hole| self.walk.damages.hole(hole));
        for (id, lane) in self.lanes.iter() {
            let Some(totals) = lane.totals else { continue };
            if totals.records < lane.next {
                let error = DecodeError::Malformed {
                    what: "records that the totals count on a lane",
                    offset: lane.totals_offset,
                    expected: lane.next,
                    found: totals.records,
                };
                self.walk.findings.push(Finding { error, lane: Some(id), chunk: None });
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
