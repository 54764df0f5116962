//! Which part of a recording evidence is about: one step, or the one measured region of a session.

use std::collections::BTreeMap;
use std::fmt;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tmrun_formats::{GapClass, GapReason, LaneId, Phase, SpanId, Ticks};

use super::around::{Around, AroundStep};
use super::found::{Found, Seen, Wanted};
use super::outside::{self, Outside};
use super::stretches::{Stretch, hull, overlap};
use crate::scan::{Clock, Recording};

/// A part of a recording that is evidence of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// What is measured.
    pub measured: Measured,
    /// The lane that it is on.
    pub lane: LaneId,
    /// When it begins, or the first moment at which it may have begun.
    pub first: Ticks,
    /// When it ends. Without its end, when the next step of its lane begins, or all that is known ends.
    pub last: Ticks,
    /// Whether its beginning was seen, and no lane can have begun it before that unseen.
    pub begun: bool,
    /// Whether its end was seen, on its lane, and is the end of what began there for certain.
    pub ended: bool,
    /// Whether what was not seen of the two was lost; else it lies outside of the recording, or never was.
    pub edge_lost: bool,
    /// What it does; 0 stands for the run's phase.
    pub phase: Phase,
    /// The least and the greatest step that begins in it, unless it is a step itself. One invocation
    /// has one at most; what is said of several is said of them together.
    pub steps: Option<(u64, u64)>,
    /// From its first moment on any lane to its last. A recording without steps is of one invocation,
    /// and what it says before and behind the measured span is said of that: then all of it.
    pub extent: (Ticks, Ticks),
    /// What lanes may have of it before this file or behind it.
    pub outside: Vec<Outside>,
}

/// A step where it is there once.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) region: Region,
    /// How often it is there, as far as its marks tell.
    pub(crate) times: u64,
    /// How many lanes took part.
    pub(crate) lanes: usize,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// A step, made the measured region after the fact.
    Step(u64),
    /// A span that says that it is the measured region: its lane and its id.
    Span(LaneId, SpanId),
    /// The whole of a run that broke off before its measured region ended, if it has one.
    Run,
}

/// Why there is no such region.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionError {
    /// No record is of this step.
    NoStep {
        /// The file.
        file: String,
        /// The step.
        step: u64,
        /// The least and the greatest step that there are.
        found: Option<(u64, u64)>,
    },
    /// The step began or ended more than once on its lane, or began on another one when it had ended on its
    /// own, or in another phase: it is not one invocation.
    Repeated {
        /// The file.
        file: String,
        /// The step.
        step: u64,
        /// How often it is there, as far as its marks tell.
        times: u64,
    },
    /// The file has no measured region, or several.
    NotOneRegion {
        /// The file.
        file: String,
        /// How many there are.
        regions: u64,
        /// The least and the greatest step that there are.
        steps: Option<(u64, u64)>,
    },
    /// Step 0, or one that only warmed up.
    WarmUp {
        /// The file.
        file: String,
        /// The step.
        step: u64,
        /// How many steps warm up.
        warmup: u64,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = |found: &Option<(u64, u64)>| match found {
            Some((first, last)) if first == last => format!("it has step {first}"),
            Some((first, last)) => format!("it has steps {first} to {last}"),
            None => "it has no steps".to_owned(),
        };
        match self {
            Self::NoStep { file, step, found } => {
                write!(f, "{file}: no record is of step {step}; {}", steps(found))
            }
            Self::Repeated { file, step, times } => write!(
                f,
                "{file}: step {step} is there {times} times, and evidence is of one invocation: \
                 number steps without repeating one"
            ),
            Self::NotOneRegion { file, regions: 0, steps: None } => write!(
                f,
                "{file}: no span says that it is the measured region, and it has no steps: it has \
                 nothing that evidence could be of"
            ),
            Self::NotOneRegion { file, regions: 0, steps: found } => write!(
                f,
                "{file}: no span says that it is the measured region; {}: choose one with --step",
                steps(found)
            ),
            Self::NotOneRegion { file, regions, steps: None } => write!(
                f,
                "{file}: {regions} spans say that they are the measured region, evidence is of one, and \
                 it has no steps to choose from: record each invocation into a file of its own"
            ),
            Self::NotOneRegion { file, regions, steps: found } => write!(
                f,
                "{file}: {regions} spans say that they are the measured region, and evidence is of \
                 one; {}: choose one with --step",
                steps(found)
            ),
            Self::WarmUp { file, step, warmup } => write!(
                f,
                "{file}: step {step} cannot be evidence: the first {warmup} warm up, and steps \
                 count from 1"
            ),
        }
    }
}

impl std::error::Error for RegionError {}

impl RegionError {
    /// Whether another command line would do: another step.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::NotOneRegion { .. } | Self::Repeated { .. })
    }
}

impl Region {
    /// The region of a step, or without one that of the only measured span.
    ///
    /// # Errors
    ///
    /// When there is no such step, or not exactly one measured region.
    pub fn of(recording: &Recording<'_>, step: Option<u64>) -> Result<Self, RegionError> {
        let file = recording.name().to_owned();
        let found = Found::in_all(recording, step.map_or(Wanted::Spans, Wanted::Step));
        let steps = found.range;
        let Some(number) = step else {
            let failed = recording.meta().terminal.is_none_or(|terminal| !terminal.complete);
            return match found.regions[..] {
                [span] => {
                    let extent = found.covered.filter(|_| steps.is_none());
                    Ok(found.region(&span, extent))
                }
                [] if failed && steps.is_none() => Ok(Self::of_run(recording)),
                _ => {
                    let regions = found.regions.len() as u64;
                    Err(RegionError::NotOneRegion { file, regions, steps })
                }
            };
        };
        let warmup = recording.meta().run.map_or(0, |run| run.warmup_steps);
        if number <= warmup {
            return Err(RegionError::WarmUp { file, step: number, warmup });
        }
        let around = Around::of(recording, &found);
        let of_step = found.steps.get(&number);
        match of_step.and_then(|seen| Self::of_step(recording, &found, around.step(number, seen))) {
            None => Err(RegionError::NoStep { file, step: number, found: steps }),
            Some((_, times)) if times > 1 => {
                Err(RegionError::Repeated { file, step: number, times })
            }
            Some((region, _)) => Ok(region),
        }
    }

    /// What there is of all steps. Those that only warm up are among them.
    pub(crate) fn every(recording: &Recording<'_>) -> BTreeMap<u64, Invocation> {
        let found = Found::in_all(recording, Wanted::Every);
        let around = Around::of(recording, &found);
        let steps = found.steps.par_iter().filter_map(|(&number, seen)| {
            let (region, times) = Self::of_step(recording, &found, around.step(number, seen))?;
            Some((number, Invocation { region, times, lanes: seen.len() }))
        });
        steps.collect()
    }

    /// The region of a step, and how often the step is there; `None` where nothing is left of it. A mark
    /// that is lost may have stood anywhere where something is lost.
    fn of_step(
        recording: &Recording<'_>,
        found: &Found,
        around: AroundStep<'_>,
    ) -> Option<(Self, u64)> {
        let AroundStep { number, seen: lanes, .. } = around;
        let first = |lane, seen: &Seen| {
            let lost = || around.lost_before(lane, seen.first);
            seen.begin.or_else(|| Some(lost()?.0)).unwrap_or(seen.first)
        };
        // Other lanes join a step that is open already.
        let main = lanes.iter().min_by_key(|(lane, seen)| (first(**lane, seen), **lane));
        let (&lane, seen) = main?;
        let outside = outside::of(recording, number, lanes, around, lane);
        let lost_begin = match seen.begin {
            Some(begin) => around.lost_elsewhere(begin),
            None => around.lost_before(lane, seen.first),
        };
        let lost_end = match seen.end {
            Some(end) => seen.begin.and_then(|begin| around.lost_between(lane, (begin, end))),
            None => around.lost_behind(lane, seen.last).or_else(|| {
                let is_torn = |o: &Outside| o.lane == lane && o.reason == GapReason::TORN;
                outside.iter().any(is_torn).then_some((seen.last, seen.last))
            }),
        };
        let of_file = || found.covered.map_or(seen.last, |(_, last)| last);
        let next = || around.next_begin(lane, seen.last);
        let last = seen.end.or_else(next).unwrap_or_else(of_file);
        let lasts = lanes.iter().map(|(&lane, seen)| {
            let lost = || around.lost_behind(lane, seen.last);
            seen.left().or_else(|| Some(lost()?.1)).unwrap_or(seen.last)
        });
        let lasts = lasts.chain(lost_begin.map(|(_, last)| last));
        let from = lost_begin.map_or(first(lane, seen), |(from, _)| from);
        let times = times(recording, lanes, (lane, seen), first);
        let region = Self {
            measured: Measured::Step(number),
            lane,
            first: from,
            last,
            begun: seen.begin.is_some() && lost_begin.is_none(),
            ended: seen.end.is_some() && lost_end.is_none(),
            edge_lost: lost_begin.or(lost_end).is_some(),
            phase: seen.phase,
            steps: None,
            extent: (from, lasts.fold(last, Ticks::max)),
            outside,
        };
        Some((region, times))
    }

    fn of_run(recording: &Recording<'_>) -> Self {
        let (first, last) = covered(recording).unwrap_or_default();
        Self {
            measured: Measured::Run,
            lane: LaneId::RECORDER,
            first,
            last,
            begun: true,
            ended: false,
            edge_lost: false,
            phase: Phase::default(),
            steps: None,
            extent: (first, last),
            outside: Vec::new(),
        }
    }

    /// How long it was, in nanoseconds of the host; `None` where an end of it was not seen, or where the
    /// readings of the clock do not tell.
    pub(crate) fn wall_ns(&self, clock: &Clock<'_>) -> Option<u64> {
        let is_told = self.begun && self.ended && clock.tells(self.first, self.last);
        is_told.then(|| clock.host_ns(self.last).since(clock.host_ns(self.first)))
    }

    /// The number of the step, if it is one.
    pub const fn step(&self) -> Option<u64> {
        match self.measured {
            Measured::Step(number) => Some(number),
            Measured::Span(..) | Measured::Run => None,
        }
    }

    /// The least and the greatest of the steps that it covers, where those are several.
    pub fn several_steps(&self) -> Option<(u64, u64)> {
        self.steps.filter(|(first, last)| first < last)
    }

    /// Whether a stretch of time has a part of it: some time within, or a moment of it.
    pub fn overlaps(&self, first: Ticks, last: Ticks) -> bool {
        overlap((first, last), self.extent)
    }

    /// Whether a moment is in it.
    pub fn has(&self, at: Ticks) -> bool {
        (self.extent.0..=self.extent.1).contains(&at)
    }
}

/// How often a step is there, as far as its marks tell: on its lane, and on others that did not join it. A
/// lane joins a step that is open, and says nothing of the phase or the same.
fn times(
    recording: &Recording<'_>,
    lanes: &BTreeMap<LaneId, Seen>,
    (main, of_main): (LaneId, &Seen),
    first: impl Fn(LaneId, &Seen) -> Ticks,
) -> u64 {
    let of_run = recording.meta().run.map_or(Phase::default(), |run| run.phase);
    let phase = if of_main.phase == Phase::default() { of_run } else { of_main.phase };
    let is_another = |lane: LaneId, seen: &Seen| {
        let began = seen.last_begin.unwrap_or_else(|| first(lane, seen));
        let is_late = of_main.end.is_some_and(|end| began > end);
        is_late || seen.phase != Phase::default() && seen.phase != phase
    };
    let others = lanes.iter().filter(|&(&lane, seen)| lane != main && is_another(lane, seen));
    others.fold(of_main.times().max(1), |times, _| times.saturating_add(1))
}

/// The time that a recording is of: that of what is there, and of what is lost.
pub(super) fn covered(recording: &Recording<'_>) -> Option<Stretch> {
    let lost = recording.gaps().iter().filter(|gap| gap.class == GapClass::Lost);
    let lost = lost.map(|gap| (gap.first, gap.last));
    recording.span().into_iter().chain(lost).reduce(hull)
}
