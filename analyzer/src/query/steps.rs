//! How long the steps of a recording took.

use std::collections::{BTreeSet, HashMap};

use rayon::iter::ParallelIterator;
use serde::Serialize;
use tmrun_formats::wire::{Step, flags};
use tmrun_formats::{LaneId, Phase, Ticks};

use super::page::{Page, Paged};
use crate::scan::{RecordChunk, Recording};

/// A step on the lane that it began on first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// Its number.
    pub number: u64,
    /// The lane.
    pub lane: LaneId,
    /// What it does; 0 stands for the run's phase.
    pub phase: Phase,
    /// When it began; `None` where that was not seen.
    pub first: Option<Ticks>,
    /// When it ended; `None` where that was not seen.
    pub last: Option<Ticks>,
    /// From when to when it can have been: from the mark before its own on its lane, where its beginning
    /// was not seen, to the next step's beginning, where its end was not.
    pub within: (Ticks, Ticks),
    /// How many lanes it was on.
    pub lanes: usize,
}

/// Steps by how long they took, and what is usual.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRows {
    /// The steps, the slowest first; those of which an end was not seen are the last.
    #[serde(flatten)]
    pub steps: Paged<StepRow>,
    /// How many steps have both ends.
    pub timed: usize,
    /// The fastest.
    pub least_ns: Option<u64>,
    /// The middle one, or between the two in the middle.
    pub median_ns: Option<u64>,
    /// 95 of 100 take no longer.
    pub p95_ns: Option<u64>,
    /// The slowest.
    pub greatest_ns: Option<u64>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRow {
    /// Its number.
    pub step: u64,
    /// The lane that it began on first.
    pub lane: u16,
    /// What it does, where somebody says.
    pub phase: Option<&'static str>,
    /// When it began, in nanoseconds since the first calibration.
    pub start_ns: Option<u64>,
    /// How long it took.
    pub duration_ns: Option<u64>,
    /// How many lanes it was on.
    pub lanes: usize,
    /// Stretches of lost evidence that overlap it.
    pub lost_gaps: usize,
}

/// The steps of a recording, the slowest first.
pub fn slow(page: Page, recording: &Recording<'_>) -> StepRows {
    let clock = recording.clock();
    let run_phase = recording.meta().run.map_or(Phase::default(), |run| run.phase);
    let mut rows: Vec<(Option<u64>, StepTime)> = of(recording)
        .into_iter()
        .map(|step| {
            let between = |first, last| clock.ns(last).saturating_sub(clock.ns(first));
            (step.first.zip(step.last).map(|(first, last)| between(first, last)), step)
        })
        .collect();
    rows.sort_by_key(|(duration, step)| (std::cmp::Reverse(*duration), step.number, step.first));
    let timed = rows.partition_point(|(duration, _)| duration.is_some());
    let at = |place: usize| rows.get(place).and_then(|(duration, _)| *duration);
    // The slowest is at 0.
    let median = at(timed / 2).zip(at(timed.saturating_sub(1) / 2));
    let (least_ns, greatest_ns) = (at(timed.saturating_sub(1)), at(0));
    let lost = Lost::of(recording);
    let total = rows.len();
    let p95_ns = at(timed / 20);
    let Paged { matched, displayed, offset, next_offset, truncated, rows, .. } =
        page.cut(total, rows);
    let row = |(duration_ns, step): (Option<u64>, StepTime)| {
        let phase = if step.phase == Phase::default() { run_phase } else { step.phase };
        StepRow {
            step: step.number,
            lane: step.lane.0,
            phase: phase.name(),
            start_ns: step.first.map(|first| clock.ns(first)),
            duration_ns,
            lanes: step.lanes,
            lost_gaps: lost.overlapping(step.within.0, step.within.1),
        }
    };
    let rows = rows.into_iter().map(row).collect();
    StepRows {
        steps: Paged { total, matched, displayed, offset, next_offset, truncated, rows },
        timed,
        least_ns,
        median_ns: median.map(|(low, high)| low.midpoint(high)),
        p95_ns,
        greatest_ns,
    }
}

/// The steps of a recording, by number. One that begins again on its lane is another one.
pub fn of(recording: &Recording<'_>) -> Vec<StepTime> {
    let marks: Vec<Mark> = recording.par_record_chunks().flat_map_iter(marks).collect();
    let mut steps = Pairs::default();
    marks.into_iter().for_each(|mark| steps.take(mark));
    let mut steps = steps.steps;
    // A lane whose beginning of it is lost may have been the first.
    let lost = Lost::of(recording);
    let first = |step: &StepTime| match (step.first, step.within) {
        (None, (from, to)) if lost.overlapping(from, to) == 0 => step.last,
        (first, (from, _)) => first.or(Some(from)),
    };
    steps.sort_by_key(|step| (step.number, first(step), step.lane));
    let mut all = Vec::new();
    for of_number in steps.chunk_by(|left, right| left.number == right.number) {
        let Some(&StepTime { lane, .. }) = of_number.first() else { continue };
        let lanes: BTreeSet<_> = of_number.iter().map(|step| step.lane).collect();
        let on_lane = of_number.iter().filter(|step| step.lane == lane);
        all.extend(on_lane.map(|step| StepTime { lanes: lanes.len(), ..*step }));
    }
    all
}

/// The begin or end of a step, or of a part of one.
#[derive(Debug, Clone, Copy)]
struct Mark {
    lane: LaneId,
    at: Ticks,
    number: u64,
    phase: Phase,
    ends: bool,
    is_micro_batch: bool,
}

fn marks<'a>(chunk: RecordChunk<'a>) -> impl Iterator<Item = Mark> + use<'a> {
    let lane = chunk.lane();
    chunk.records().iter().filter_map(move |record| {
        let (step, header) = (record.payload::<Step>()?, record.header());
        let has = |flag: u16| header.flags & flag != 0;
        (!has(flags::STEP_RESUMED)).then_some(Mark {
            lane,
            at: header.ticks,
            number: step.number,
            phase: step.phase,
            ends: has(flags::STEP_END),
            is_micro_batch: has(flags::STEP_MICRO_BATCH),
        })
    })
}

/// Begins and ends, put together as they come.
#[derive(Debug, Default)]
struct Pairs {
    steps: Vec<StepTime>,
    /// The open ones.
    open: HashMap<(LaneId, u64), usize>,
    /// Those that are nothing but their micro-batches.
    parts: HashMap<(LaneId, u64), usize>,
    /// Of each lane the last mark, and the open step that began last.
    before: HashMap<LaneId, Ticks>,
    newest: HashMap<LaneId, usize>,
}

impl Pairs {
    fn take(&mut self, mark: Mark) {
        let key = (mark.lane, mark.number);
        let before = self.before.insert(mark.lane, mark.at).unwrap_or_default();
        let place = match (mark.is_micro_batch, mark.ends) {
            (false, false) => {
                self.open.insert(key, self.steps.len());
                None
            }
            (false, true) => self.open.remove(&key),
            (true, _) if self.open.contains_key(&key) => return,
            (true, _) => Some(*self.parts.entry(key).or_insert(self.steps.len())),
        };
        let there = place.and_then(|place| self.steps.get_mut(place));
        match there {
            Some(step) if mark.ends => (step.last, step.within.1) = (Some(mark.at), mark.at),
            Some(_) => {}
            None => {
                let within = if mark.ends { (before, mark.at) } else { (mark.at, Ticks(u64::MAX)) };
                self.open_until(&mark);
                self.steps.push(StepTime {
                    number: mark.number,
                    lane: mark.lane,
                    phase: mark.phase,
                    first: (!mark.ends).then_some(mark.at),
                    last: mark.ends.then_some(mark.at),
                    within,
                    lanes: 1,
                });
            }
        }
    }

    /// What began before on the lane of a mark that begins a step has ended by then, as far as nobody
    /// says otherwise.
    fn open_until(&mut self, mark: &Mark) {
        if mark.ends {
            return;
        }
        let newest = self.newest.insert(mark.lane, self.steps.len());
        let newest = newest.and_then(|place| self.steps.get_mut(place));
        if let Some(step) = newest.filter(|step| step.last.is_none()) {
            step.within.1 = mark.at;
        }
    }
}

/// Lost stretches, to be counted.
struct Lost {
    firsts: Vec<Ticks>,
    lasts: Vec<Ticks>,
}

impl Lost {
    fn of(recording: &Recording<'_>) -> Self {
        let mut firsts: Vec<_> = recording.lost().map(|gap| gap.first).collect();
        let mut lasts: Vec<_> = recording.lost().map(|gap| gap.last).collect();
        firsts.sort_unstable();
        lasts.sort_unstable();
        Self { firsts, lasts }
    }

    /// Those that have begun by the end, less those that had ended before the beginning.
    fn overlapping(&self, first: Ticks, last: Ticks) -> usize {
        let begun = self.firsts.partition_point(|&begin| begin <= last);
        begun.saturating_sub(self.lasts.partition_point(|&end| end < first))
    }
}
