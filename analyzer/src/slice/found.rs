//! What a recording has of its steps, lane by lane, and which spans say that they are the measured region.

use std::collections::BTreeMap;

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{Kind, Record, Span, Step, flags};
use tmrun_formats::{LaneId, Phase, SpanId, Ticks};

use super::outside::is_in;
use super::region::{Measured, Region, covered};
use super::stretches::Stretch;
use crate::scan::{RecordChunk, Recording};

/// Which steps are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// None: the measured spans are, and where steps begin.
    Spans,
    /// One.
    Step(u64),
    /// All.
    Every,
}

impl Wanted {
    fn has(self, number: u64) -> bool {
        match self {
            Self::Spans => false,
            Self::Step(step) => step == number,
            Self::Every => true,
        }
    }
}

/// What there is to choose from.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Of the steps that are wanted, by lane.
    pub(super) steps: BTreeMap<u64, BTreeMap<LaneId, Seen>>,
    /// The measured spans.
    pub(super) regions: Vec<MeasuredSpan>,
    /// The least and the greatest step.
    pub(super) range: Option<(u64, u64)>,
    /// The time that the recording is of.
    pub(super) covered: Option<Stretch>,
    /// Where steps begin and which; empty where steps are wanted.
    begins: Vec<(Ticks, u64)>,
}

/// A measured span.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredSpan {
    lane: LaneId,
    id: SpanId,
    first: Ticks,
    last: Ticks,
    ended: bool,
    phase: Phase,
}

impl MeasuredSpan {
    /// As a region, of an invocation that has at least this extent.
    fn region(&self, invocation: Option<Stretch>, steps: Option<(u64, u64)>) -> Region {
        let (first, last) = invocation.unwrap_or((self.first, self.last));
        Region {
            measured: Measured::Span(self.lane, self.id),
            lane: self.lane,
            first: self.first,
            last: self.last,
            begun: true,
            ended: self.ended,
            edge_lost: false,
            phase: self.phase,
            steps,
            extent: (first.min(self.first), last.max(self.last)),
            outside: Vec::new(),
        }
    }
}

/// What a lane has of the step for certain: no record behind a place where its end may be lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) begin: Option<Ticks>,
    pub(super) begins: u64,
    /// The last beginning: a lane may join, leave and join again.
    pub(super) last_begin: Option<Ticks>,
    pub(super) end: Option<Ticks>,
    pub(super) ends: u64,
    /// The first and the last moment of it.
    pub(super) first: Ticks,
    pub(super) last: Ticks,
    pub(super) phase: Phase,
}

impl Seen {
    /// No mark, between two moments of it.
    const fn between((first, last): (Ticks, Ticks), phase: Phase) -> Self {
        Self { begin: None, begins: 0, last_begin: None, end: None, ends: 0, first, last, phase }
    }

    /// How often the step is there, as far as its marks tell: each has one beginning and one end, in this
    /// order.
    pub(super) fn times(&self) -> u64 {
        let ends_first = self.begin.zip(self.end).is_some_and(|(begin, end)| end < begin);
        self.begins.max(self.ends).saturating_add(ends_first.into())
    }

    /// When it left the step for good: it did not join once more. (What goes on behind a step that it was
    /// interrupted by is another one, whatever its number.)
    pub(super) fn left(&self) -> Option<Ticks> {
        self.end.filter(|end| self.last_begin.is_none_or(|begin| begin <= *end))
    }

    fn merge(&mut self, other: &Self) {
        self.begin = self.begin.into_iter().chain(other.begin).min();
        self.begins = self.begins.saturating_add(other.begins);
        self.last_begin = self.last_begin.max(other.last_begin);
        self.end = self.end.max(other.end);
        self.ends = self.ends.saturating_add(other.ends);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        if self.phase == Phase::default() {
            self.phase = other.phase;
        }
    }
}

impl Found {
    pub(super) fn in_all(recording: &Recording<'_>, wanted: Wanted) -> Self {
        let mut found = recording
            .par_record_chunks()
            .fold(Self::default, |mut found, chunk| {
                found.chunk(&chunk, wanted);
                found
            })
            .reduce(Self::default, Self::merge);
        found.regions.sort_by_key(|region| (region.lane, region.id));
        found.covered = covered(recording);
        found.taken_up(recording, wanted);
        found
    }

    /// The lanes that are in a step where the file takes them up: whatever they record of it, they are in it
    /// from the first moment of the file on.
    fn taken_up(&mut self, recording: &Recording<'_>, wanted: Wanted) {
        let first = self.covered.map_or(Ticks(0), |(first, _)| first);
        for (lane, known) in recording.lanes().iter() {
            let open = known.start.open.filter(|open| is_in(known.start, open.number));
            if let Some(open) = open.filter(|open| wanted.has(open.number)) {
                self.see(open.number, lane, Seen::between((first, first), open.phase));
            }
        }
    }

    /// A measured span as the region of an invocation that has at least this extent.
    pub(super) fn region(&self, span: &MeasuredSpan, extent: Option<Stretch>) -> Region {
        let within = self.begins.iter().filter(|(at, _)| (span.first..=span.last).contains(at));
        let steps = within.map(|&(_, number)| (number, number)).reduce(hull);
        span.region(extent, steps)
    }

    fn chunk(&mut self, chunk: &RecordChunk<'_>, wanted: Wanted) {
        let lane = chunk.lane();
        let mut state = chunk.step();
        // What was seen of the step that the lane is in, until it is in another one.
        let mut within: Option<(u64, Seen)> = None;
        for record in chunk.iter() {
            let header = record.header();
            match Kind::from_code(header.kind) {
                Some(Kind::Step) => {
                    if let Some(mark) = record.payload::<Step>() {
                        self.mark(lane, record, &mark, wanted);
                    }
                    state = state.behind(record, lane);
                }
                Some(Kind::Gap) => state = state.behind(record, lane),
                Some(Kind::Span) if header.flags & flags::SPAN_MEASURED != 0 => {
                    if let Some(span) = record.payload::<Span>() {
                        let id = span.id(header.span);
                        let phase = state.open.map_or(Phase::default(), |open| open.phase);
                        let ended = header.flags & flags::SPAN_OPEN == 0;
                        let (first, last) = (header.ticks, span.end);
                        self.regions.push(MeasuredSpan { lane, id, first, last, ended, phase });
                    }
                }
                _ => {}
            }
            let of_step = state.open.filter(|open| state.sure && wanted.has(open.number));
            if let Some(open) = of_step.filter(|_| header.kind != Kind::Gap as u8) {
                let (first, last) = record.edges();
                let seen = Seen::between((first.max(header.ticks), last), open.phase);
                match &mut within {
                    Some((number, known)) if *number == open.number => known.merge(&seen),
                    _ => {
                        let before = within.replace((open.number, seen));
                        before.into_iter().for_each(|(number, seen)| self.see(number, lane, seen));
                    }
                }
            }
        }
        within.into_iter().for_each(|(number, seen)| self.see(number, lane, seen));
    }

    /// A step mark.
    fn mark(&mut self, lane: LaneId, record: &Record, mark: &Step, wanted: Wanted) {
        let (number, phase) = (mark.number, mark.phase);
        self.range = self.range.into_iter().chain([(number, number)]).reduce(hull);
        let header = record.header();
        if wanted == Wanted::Spans && header.flags & flags::STEP_END == 0 {
            self.begins.push((header.ticks, number));
        }
        if !wanted.has(number) || header.flags & flags::STEP_MICRO_BATCH != 0 {
            return;
        }
        let at = header.ticks;
        let ends = header.flags & flags::STEP_END != 0;
        let begins = !ends && header.flags & flags::STEP_RESUMED == 0;
        let seen = Seen {
            begin: begins.then_some(at),
            begins: begins.into(),
            last_begin: begins.then_some(at),
            end: ends.then_some(at),
            ends: ends.into(),
            first: at,
            last: at,
            phase,
        };
        self.see(number, lane, seen);
    }

    fn see(&mut self, number: u64, lane: LaneId, seen: Seen) {
        let lanes = self.steps.entry(number).or_default();
        lanes.entry(lane).and_modify(|known| known.merge(&seen)).or_insert(seen);
    }

    fn merge(mut self, other: Self) -> Self {
        for (number, lanes) in other.steps {
            for (lane, seen) in lanes {
                self.see(number, lane, seen);
            }
        }
        self.regions.extend(other.regions);
        self.begins.extend(other.begins);
        self.range = self.range.into_iter().chain(other.range).reduce(hull);
        self
    }
}

/// The least and the greatest of both.
fn hull((a, b): (u64, u64), (c, d): (u64, u64)) -> (u64, u64) {
    (a.min(c), b.max(d))
}
