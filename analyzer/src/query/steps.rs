//! How long the steps of a recording took.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::iter::ParallelIterator;
use serde::Serialize;
use tmrun_formats::wire::{Step, flags};
use tmrun_formats::{LaneId, Phase, Ticks};

use super::page::{Page, Paged};
use crate::scan::{RecordChunk, Recording};
use crate::slice::stretches::Tally;
use crate::slice::{Invocation, Region};

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
    let lost: Tally = recording.lost().map(|gap| (gap.first, gap.last)).collect();
    let mut steps = of(recording, &lost);
    steps.sort_by_key(|step| (Reverse(step.duration_ns), step.number, step.first));
    let timed = steps.partition_point(|step| step.duration_ns.is_some());
    let at = |place: usize| steps.get(place).and_then(|step| step.duration_ns);
    // The slowest is at 0.
    let median = at(timed / 2).zip(at(timed.saturating_sub(1) / 2));
    let (least_ns, greatest_ns) = (at(timed.saturating_sub(1)), at(0));
    let total = steps.len();
    let p95_ns = at(timed / 20);
    let Paged { matched, displayed, offset, next_offset, truncated, rows, .. } =
        page.cut(total, steps);
    let row = |step: StepTime| {
        let phase = if step.phase == Phase::default() { run_phase } else { step.phase };
        StepRow {
            step: step.number,
            lane: step.lane.0,
            phase: phase.name(),
            start_ns: step.first.map(|first| clock.ns(first)),
            duration_ns: step.duration_ns,
            lanes: step.lanes,
            lost_gaps: lost.overlapping(step.within),
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

/// A step on the lane that it began on first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepTime {
    number: u64,
    lane: LaneId,
    /// What it does; 0 stands for the run's phase.
    phase: Phase,
    /// When it began; `None` where that was not seen.
    first: Option<Ticks>,
    duration_ns: Option<u64>,
    /// From when to when it can have been.
    within: (Ticks, Ticks),
    lanes: usize,
}

/// The steps of a recording. One that is there once is the region that evidence of it would be of; of another
/// one each pair of its marks is a step.
fn of(recording: &Recording<'_>, lost: &Tally) -> Vec<StepTime> {
    let clock = recording.clock();
    let invocations = Region::every(recording);
    let is_once = |number| invocations.get(&number).is_some_and(|step| step.times == 1);
    let once = invocations.iter().filter(|(_, step)| step.times == 1);
    let mut all: Vec<StepTime> = once
        .map(|(&number, Invocation { region, lanes, .. })| StepTime {
            number,
            lane: region.lane,
            phase: region.phase,
            first: region.begun.then_some(region.first),
            duration_ns: region.wall_ns(&clock),
            within: region.extent,
            lanes: *lanes,
        })
        .collect();
    for pairs in Pairs::of(recording, |number| !is_once(number)) {
        let lanes: BTreeSet<_> = pairs.iter().map(|pair| pair.lane).collect();
        all.extend(apart(&pairs).map(|pair| {
            // A mark between the two may be lost: then they are no pair.
            let seen = pair.first.zip(pair.last).filter(|&seen| lost.overlapping(seen) == 0);
            let told = seen.filter(|&(first, last)| clock.tells(first, last));
            StepTime {
                number: pair.number,
                lane: pair.lane,
                phase: pair.phase,
                first: pair.first,
                duration_ns: told.map(|(f, l)| clock.host_ns(l).since(clock.host_ns(f))),
                within: pair.within,
                lanes: lanes.len(),
            }
        }));
    }
    all
}

/// Of the pairs of one number those that are steps: on the lane that begins it first, and on another one
/// those that did not join one of these.
fn apart(pairs: &[Pair]) -> impl Iterator<Item = &Pair> {
    let main = pairs.iter().min_by_key(|pair| (pair.begin(), pair.lane)).map(|pair| pair.lane);
    let of_main: Vec<_> = pairs.iter().filter(|pair| Some(pair.lane) == main).collect();
    pairs.iter().filter(move |pair| {
        let behind = of_main.partition_point(|of_main| of_main.begin() <= pair.begin());
        let open = behind.checked_sub(1).and_then(|place| of_main.get(place));
        let joins = |of_main: &&Pair| {
            let says_the_same = pair.phase == Phase::default() || pair.phase == of_main.phase;
            pair.begin() <= of_main.within.1 && says_the_same
        };
        Some(pair.lane) == main || !open.is_some_and(joins)
    })
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
    chunk.iter().filter_map(move |record| {
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

/// A beginning and the end that belongs to it, where they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    number: u64,
    lane: LaneId,
    phase: Phase,
    first: Option<Ticks>,
    last: Option<Ticks>,
    /// From the mark before its own on its lane, where its beginning is not there, to the next step's
    /// beginning, where its end is not.
    within: (Ticks, Ticks),
}

impl Pair {
    /// When it began at the earliest.
    fn begin(&self) -> Ticks {
        self.first.unwrap_or(self.within.0)
    }
}

/// Begins and ends, put together as they come.
#[derive(Debug, Default)]
struct Pairs {
    pairs: Vec<Pair>,
    /// The open ones.
    open: HashMap<(LaneId, u64), usize>,
    /// Those that are nothing but their micro-batches.
    parts: HashMap<(LaneId, u64), usize>,
    /// Of each lane the last mark, and the open one that began last.
    before: HashMap<LaneId, Ticks>,
    newest: HashMap<LaneId, usize>,
}

impl Pairs {
    /// The pairs of each number that is wanted, by beginning.
    fn of(
        recording: &Recording<'_>,
        is_wanted: impl Fn(u64) -> bool,
    ) -> impl Iterator<Item = Vec<Pair>> {
        let marks: Vec<Mark> = recording.par_record_chunks().flat_map_iter(marks).collect();
        let mut pairs = Self::default();
        marks.into_iter().for_each(|mark| pairs.take(mark));
        let mut of_numbers = BTreeMap::<u64, Vec<Pair>>::new();
        for pair in pairs.pairs.into_iter().filter(|pair| is_wanted(pair.number)) {
            of_numbers.entry(pair.number).or_default().push(pair);
        }
        of_numbers.into_values().map(|mut pairs| {
            pairs.sort_by_key(|pair| (pair.begin(), pair.lane));
            pairs
        })
    }

    fn take(&mut self, mark: Mark) {
        let key = (mark.lane, mark.number);
        let before = self.before.insert(mark.lane, mark.at).unwrap_or_default();
        let place = match (mark.is_micro_batch, mark.ends) {
            (false, false) => {
                self.open.insert(key, self.pairs.len());
                None
            }
            (false, true) => self.open.remove(&key),
            (true, _) if self.open.contains_key(&key) => return,
            (true, _) => Some(*self.parts.entry(key).or_insert(self.pairs.len())),
        };
        match place.and_then(|place| self.pairs.get_mut(place)) {
            Some(pair) if mark.ends => (pair.last, pair.within.1) = (Some(mark.at), mark.at),
            Some(_) => {}
            None => {
                let within = if mark.ends { (before, mark.at) } else { (mark.at, Ticks(u64::MAX)) };
                self.open_until(&mark);
                self.pairs.push(Pair {
                    number: mark.number,
                    lane: mark.lane,
                    phase: mark.phase,
                    first: (!mark.ends).then_some(mark.at),
                    last: mark.ends.then_some(mark.at),
                    within,
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
        let newest = self.newest.insert(mark.lane, self.pairs.len());
        let newest = newest.and_then(|place| self.pairs.get_mut(place));
        if let Some(pair) = newest.filter(|pair| pair.last.is_none()) {
            pair.within.1 = mark.at;
        }
    }
}
