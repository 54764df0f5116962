//! Which records of a recording a region keeps.

use std::collections::BTreeMap;

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{Kind, Record, StepState};
use tmrun_formats::{LaneId, SpanId, Ticks};

use super::concern::Concern;
use super::live::Live;
use super::region::Region;
use crate::scan::{RecordChunk, Recording};

/// Groups of one lane, one behind the other without a hole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'r> {
    /// Position of the first record.
    pub(crate) first: u64,
    /// The records of the chunk that it is a part of.
    chunk: &'r [Record],
    from: usize,
    to: usize,
    /// A recent span id of the lane, in full.
    pub(crate) span: SpanId,
    /// The step state before the first record.
    pub(crate) state: StepState,
}

impl<'r> Run<'r> {
    /// A run of records that are no chunk of the recording.
    pub(super) fn apart(first: u64, records: &'r [Record]) -> Self {
        let state = StepState::START.doubted();
        Self { first, chunk: records, from: 0, to: records.len(), span: SpanId::NONE, state }
    }

    pub(crate) fn records(&self) -> &'r [Record] {
        self.chunk.get(self.from..self.to).unwrap_or_default()
    }

    /// The position behind the last record.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.records().len() as u64)
    }

    /// Takes in the run behind it, if that is the next part of the same chunk.
    fn join(&mut self, next: &Self) -> bool {
        let follows = core::ptr::eq(self.chunk, next.chunk) && self.to == next.from;
        if follows {
            self.to = next.to;
        }
        follows
    }
}

/// The runs of each lane, by position.
pub(crate) type Kept<'r> = BTreeMap<LaneId, Vec<Run<'r>>>;

/// Whether a group is one of a region: it speaks of a moment of it, or was recorded in the step that it is,
/// whatever moment it speaks of, or was launched in it.
pub(crate) fn is_of(region: &Region, group: &[Record], before: StepState) -> bool {
    let (first, last) = edges(group);
    let Some(head) = group.first() else { return false };
    let kind = head.kind();
    let is_of_step = || {
        let open = before.open.filter(|_| before.sure).map(|open| open.number);
        open.is_some() && open == region.step() && kind.is_some_and(is_event)
    };
    let is_launched_in = || kind == Some(Kind::DeviceInterval) && region.has(head.header().ticks);
    region.overlaps(first, last) || is_of_step() || is_launched_in()
}

/// Whether records of this kind say something that is an event of a trace. (Spans are rows, gaps and
/// levels are told beside it, and a step is the region.)
pub(crate) const fn is_event(kind: Kind) -> bool {
    !matches!(kind, Kind::Span | Kind::Step | Kind::Level | Kind::Gap)
}

/// Every group that is [one of the region](is_of); of each lane also the group before and the
/// group behind, so that what is left out lies before the one and behind the other, and the step marks
/// before and behind, which say what the lane's step cannot have reached; what allocated the storage
/// that is live when it begins; what tells of a loss of it; and every change of the level.
pub(crate) fn of<'r>(recording: &'r Recording<'_>, region: &Region) -> Kept<'r> {
    let concern = Concern::of(recording, region);
    let part = recording
        .par_record_chunks()
        .fold(Part::default, |mut part, chunk| {
            part.chunk(&chunk, region, &concern);
            part
        })
        .reduce(Part::default, Part::merge);
    let mut wanted = part.live.allocations();
    let mut kept = part.runs;
    // An edge that allocates what was freed before the region is kept with what freed it.
    let heads = part.before.values().filter_map(|run| run.records().first());
    let freed = heads.filter(|head| head.kind() == Some(Kind::Alloc));
    wanted.extend(freed.filter_map(|head| Some((part.live.freed(head)?, head.header().ticks))));
    if !wanted.is_empty() {
        for chunk in recording.record_chunks() {
            memory(&chunk, &wanted, &mut kept);
        }
    }
    let before = nearest(part.before, |one, other| one > other);
    let behind = nearest(part.behind, |one, other| one < other);
    for ((lane, _), run) in before.into_iter().chain(behind) {
        kept.entry(lane).or_default().push(run);
    }
    for runs in kept.values_mut() {
        sort(runs);
    }
    kept
}

/// What some chunks have of the region.
#[derive(Default)]
struct Part<'r> {
    runs: Kept<'r>,
    live: Live,
    /// Of each lane the last group of each sort before the region, and the first behind it.
    before: Edges<'r>,
    behind: Edges<'r>,
}

/// What a group says of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// That a step begins or ends.
    Mark,
    /// That something is missing; not that the lane was ever used.
    Gap,
    Other,
}

impl Sort {
    fn of(head: &Record) -> Self {
        match head.kind() {
            Some(Kind::Step) => Self::Mark,
            Some(Kind::Gap) => Self::Gap,
            _ => Self::Other,
        }
    }
}

impl<'r> Part<'r> {
    fn chunk(&mut self, chunk: &RecordChunk<'r>, region: &Region, concern: &Concern<'_>) {
        let lane = chunk.lane();
        let header = chunk.info().header;
        // Storage that is allocated before matters, whatever else the chunk has.
        let is_before = header.least < region.extent.0;
        for run in Walk::over(chunk) {
            let Some(head) = run.records().first() else { continue };
            let (first, last) = edges(run.records());
            let is_of_region = is_of(region, run.records(), run.state);
            if is_before && first < region.extent.0 && is_memory(head) {
                self.live.record(lane, run.first, head);
            }
            let is_everyones = match head.kind() {
                Some(Kind::Level) => true,
                Some(Kind::Gap) => concern.is_told_by(head),
                _ => false,
            };
            if is_everyones || is_of_region {
                self.keep(lane, run);
            } else if last <= region.extent.0 {
                newest(&mut self.before, (lane, Sort::of(head)), run);
            } else {
                oldest(&mut self.behind, (lane, Sort::of(head)), run);
            }
        }
    }

    /// Adds a group: to the run before it where it follows.
    fn keep(&mut self, lane: LaneId, run: Run<'r>) {
        add(self.runs.entry(lane).or_default(), run);
    }

    fn merge(mut self, other: Self) -> Self {
        for (lane, mut runs) in other.runs {
            self.runs.entry(lane).or_default().append(&mut runs);
        }
        self.live = self.live.merge(other.live);
        for (of, run) in other.before {
            newest(&mut self.before, of, run);
        }
        for (of, run) in other.behind {
            oldest(&mut self.behind, of, run);
        }
        self
    }
}

type Edges<'r> = BTreeMap<(LaneId, Sort), Run<'r>>;

/// Without the gaps that are farther away than something else: they are of another time.
fn nearest<'r>(mut edges: Edges<'r>, is_nearer: fn(u64, u64) -> bool) -> Edges<'r> {
    let others: Vec<(LaneId, u64)> = edges
        .iter()
        .filter(|((_, sort), _)| *sort != Sort::Gap)
        .map(|((lane, _), run)| (*lane, run.first))
        .collect();
    edges.retain(|(lane, sort), run| {
        let mut of_lane = others.iter().filter(|(of, _)| of == lane);
        *sort != Sort::Gap || !of_lane.any(|&(_, other)| is_nearer(other, run.first))
    });
    edges
}

fn newest<'r>(edges: &mut Edges<'r>, of: (LaneId, Sort), run: Run<'r>) {
    let newest = edges.entry(of).or_insert(run);
    if newest.first < run.first {
        *newest = run;
    }
}

fn oldest<'r>(edges: &mut Edges<'r>, of: (LaneId, Sort), run: Run<'r>) {
    let oldest = edges.entry(of).or_insert(run);
    if run.first < oldest.first {
        *oldest = run;
    }
}

/// The groups of a chunk, each as a run of its own.
struct Walk<'r> {
    records: &'r [Record],
    next: usize,
    position: u64,
    span: SpanId,
    state: StepState,
    lane: LaneId,
}

impl<'r> Walk<'r> {
    fn over(chunk: &RecordChunk<'r>) -> Self {
        Self {
            records: chunk.records(),
            next: 0,
            position: chunk.first_sequence(),
            span: SpanId(chunk.info().header.first_span),
            state: chunk.step(),
            lane: chunk.lane(),
        }
    }
}

impl<'r> Iterator for Walk<'r> {
    type Item = Run<'r>;

    fn next(&mut self) -> Option<Run<'r>> {
        let group = tmrun_formats::wire::groups(self.records.get(self.next..)?).next()?;
        let (from, to) = (self.next, self.next.saturating_add(group.len()));
        let (first, span, state) = (self.position, self.span, self.state);
        let run = Run { first, chunk: self.records, from, to, span, state };
        self.next = to;
        self.position = run.end();
        self.state = group.iter().fold(self.state, |state, record| state.behind(record, self.lane));
        Some(run)
    }
}

/// Keeps the groups at these places.
fn memory<'r>(
    chunk: &RecordChunk<'r>,
    wanted: &BTreeMap<(LaneId, u64), Ticks>,
    kept: &mut Kept<'r>,
) {
    let lane = chunk.lane();
    let first = chunk.first_sequence();
    let end = first.saturating_add(chunk.records().len() as u64);
    if wanted.range((lane, first)..(lane, end)).next().is_none() {
        return;
    }
    for run in Walk::over(chunk).filter(|run| wanted.contains_key(&(lane, run.first))) {
        kept.entry(lane).or_default().push(run);
    }
}

/// The runs of a lane around positions that none of them has, if what was published between the two was
/// published in the region.
pub(crate) fn between<'k, 'r>(
    region: &Region,
    runs: &'k [Run<'r>],
    position: u64,
    records: u64,
) -> Option<(&'k Run<'r>, &'k Run<'r>)> {
    let end = position.saturating_add(records);
    let (before, behind) = runs.split_at(runs.partition_point(|run| run.first < end));
    let around = before.last()?;
    let beyond = behind.first()?;
    // A record is published when the last moment that it speaks of has come.
    let (_, before) = edges(around.records());
    let (_, behind) = edges(beyond.records().get(..1).unwrap_or_default());
    (before < region.extent.1 && behind > region.extent.0).then_some((around, beyond))
}

/// Adds runs of records that stand where something is lost, or behind all that there is.
pub(super) fn add_apart<'r>(kept: &mut Kept<'r>, runs: impl Iterator<Item = (LaneId, Run<'r>)>) {
    for (lane, run) in runs {
        kept.entry(lane).or_default().push(run);
    }
    kept.values_mut().for_each(sort);
}

/// Puts a run behind the others of its lane.
fn add<'r>(runs: &mut Vec<Run<'r>>, run: Run<'r>) {
    if !runs.last_mut().is_some_and(|last| last.join(&run)) {
        runs.push(run);
    }
}

/// Sorts runs, and joins those that follow one another. None overlaps another: a group is kept, or an
/// edge of what is kept, or before all of that.
fn sort(runs: &mut Vec<Run<'_>>) {
    runs.sort_by_key(|run| run.first);
    let mut sorted = Vec::with_capacity(runs.len());
    for run in runs.drain(..) {
        if sorted.last().is_none_or(|last: &Run<'_>| last.end() <= run.first) {
            add(&mut sorted, run);
        }
    }
    *runs = sorted;
}

/// The first and the last moment that a group speaks of.
pub(crate) fn edges(group: &[Record]) -> (Ticks, Ticks) {
    group.iter().fold((Ticks(u64::MAX), Ticks(0)), |(least, greatest), record| {
        // Continuations have no moment of their own.
        if record.continues() {
            return (least, greatest);
        }
        let (first, last) = record.edges();
        (least.min(first), greatest.max(last))
    })
}

fn is_memory(record: &Record) -> bool {
    matches!(record.kind(), Some(Kind::Alloc | Kind::Free))
}
