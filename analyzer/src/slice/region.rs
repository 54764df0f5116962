//! Which part of a recording evidence is about: one step, or the one measured region of a session.

use std::collections::BTreeMap;
use std::fmt;

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{Kind, Record, Span, Step, StepMark, flags};
use tmrun_formats::{LaneId, Phase, SpanId, Ticks};

use crate::scan::{RecordChunk, Recording};

/// A part of a recording that is evidence of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// What is measured.
    pub measured: Measured,
    /// The lane that it is on.
    pub lane: LaneId,
    /// When it begins.
    pub first: Ticks,
    /// When it ends, or the last moment that is known.
    pub last: Ticks,
    /// Whether its beginning was seen; without, it begins with the first record of it that is left.
    pub begun: bool,
    /// Whether its end was seen.
    pub ended: bool,
    /// What it does; 0 stands for the run's phase.
    pub phase: Phase,
    /// From its first moment on any lane to its last. A recording without steps is of one invocation,
    /// and what it says before and behind the measured span is said of that: then all of it.
    pub extent: (Ticks, Ticks),
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
    /// The step began more than once on its lane: it is not one invocation.
    Repeated {
        /// The file.
        file: String,
        /// The step.
        step: u64,
        /// How often it began.
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
                "{file}: step {step} begins {times} times on its lane, and evidence is of one \
                 invocation: number steps without repeating one"
            ),
            Self::NotOneRegion { file, regions: 0, steps: found } => write!(
                f,
                "{file}: no span says that it is the measured region; {}: choose one with --step",
                steps(found)
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

impl Region {
    /// The region of a step, or without one that of the only measured span.
    ///
    /// # Errors
    ///
    /// When there is no such step, or not exactly one measured region.
    pub fn of(recording: &Recording<'_>, step: Option<u64>) -> Result<Self, RegionError> {
        let file = recording.name().to_owned();
        let found = Found::in_all(recording, step);
        let steps = found.steps;
        let Some(number) = step else {
            let failed = recording.meta().terminal.is_none_or(|terminal| !terminal.complete);
            return match found.regions[..] {
                [region] => Ok(region.region(steps.map_or_else(|| recording.span(), |_| None))),
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
        // Other lanes join a step that is open already.
        let main = found.lanes.iter().min_by_key(|(lane, seen)| (seen.first(), **lane));
        let Some((&lane, seen)) = main else {
            return Err(RegionError::NoStep { file, step: number, found: steps });
        };
        if seen.begins > 1 {
            return Err(RegionError::Repeated { file, step: number, times: seen.begins });
        }
        let end_of_file = recording.span().map_or(seen.last_record, |(_, last)| last);
        let last = seen.end.unwrap_or(end_of_file);
        let lasts = found.lanes.values().map(|seen| seen.end.unwrap_or(seen.last_record));
        Ok(Self {
            measured: Measured::Step(number),
            lane,
            first: seen.first(),
            last,
            begun: seen.begin.is_some(),
            ended: seen.end.is_some(),
            phase: seen.phase,
            extent: (seen.first(), lasts.fold(last, Ticks::max)),
        })
    }

    fn of_run(recording: &Recording<'_>) -> Self {
        let (first, last) = recording.span().unwrap_or_default();
        Self {
            measured: Measured::Run,
            lane: LaneId::RECORDER,
            first,
            last,
            begun: true,
            ended: false,
            phase: Phase::default(),
            extent: (first, last),
        }
    }

    /// The number of the step, if it is one.
    pub const fn step(&self) -> Option<u64> {
        match self.measured {
            Measured::Step(number) => Some(number),
            Measured::Span(..) | Measured::Run => None,
        }
    }

    /// Whether a stretch of time has a part of it: some time within, or a moment of it.
    pub fn overlaps(&self, first: Ticks, last: Ticks) -> bool {
        let (from, to) = self.extent;
        (first < to && last > from) || self.has(first) && self.has(last)
    }

    /// Whether a moment is in it.
    pub fn has(&self, at: Ticks) -> bool {
        (self.extent.0..=self.extent.1).contains(&at)
    }
}

/// What there is to choose from.
#[derive(Debug, Default)]
struct Found {
    /// Of the step that is asked for, by lane.
    lanes: BTreeMap<LaneId, Seen>,
    /// The measured spans.
    regions: Vec<MeasuredSpan>,
    /// The least and the greatest step.
    steps: Option<(u64, u64)>,
}

/// A measured span.
#[derive(Debug, Clone, Copy)]
struct MeasuredSpan {
    lane: LaneId,
    id: SpanId,
    first: Ticks,
    last: Ticks,
    ended: bool,
    phase: Phase,
}

impl MeasuredSpan {
    /// As a region, of an invocation that has at least this extent.
    fn region(&self, invocation: Option<(Ticks, Ticks)>) -> Region {
        let (first, last) = invocation.unwrap_or((self.first, self.last));
        Region {
            measured: Measured::Span(self.lane, self.id),
            lane: self.lane,
            first: self.first,
            last: self.last,
            begun: true,
            ended: self.ended,
            phase: self.phase,
            extent: (first.min(self.first), last.max(self.last)),
        }
    }
}

/// What a lane has of the step.
#[derive(Debug, Clone, Copy)]
struct Seen {
    begin: Option<Ticks>,
    begins: u64,
    end: Option<Ticks>,
    first_record: Ticks,
    last_record: Ticks,
    phase: Phase,
}

impl Seen {
    fn first(&self) -> Ticks {
        self.begin.unwrap_or(self.first_record)
    }

    fn merge(&mut self, other: &Self) {
        self.begin = self.begin.into_iter().chain(other.begin).min();
        self.begins = self.begins.saturating_add(other.begins);
        self.end = self.end.max(other.end);
        self.first_record = self.first_record.min(other.first_record);
        self.last_record = self.last_record.max(other.last_record);
        if self.phase == Phase::default() {
            self.phase = other.phase;
        }
    }
}

impl Found {
    fn in_all(recording: &Recording<'_>, step: Option<u64>) -> Self {
        let mut found = recording
            .par_record_chunks()
            .fold(Self::default, |mut found, chunk| {
                found.chunk(&chunk, step);
                found
            })
            .reduce(Self::default, Self::merge);
        found.regions.sort_by_key(|region| (region.lane, region.id));
        found
    }

    fn chunk(&mut self, chunk: &RecordChunk<'_>, step: Option<u64>) {
        let lane = chunk.lane();
        let mut state = chunk.step();
        for record in chunk.records() {
            let header = record.header();
            match Kind::from_code(header.kind) {
                Some(Kind::Step) => {
                    if let Some(mark) = record.payload::<Step>() {
                        self.mark(lane, record, &mark, step);
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
            if let Some(open) = state.open.filter(|open| Some(open.number) == step) {
                self.record(lane, record, &open);
            }
        }
    }

    /// A step mark.
    fn mark(&mut self, lane: LaneId, record: &Record, mark: &Step, step: Option<u64>) {
        let (number, phase) = (mark.number, mark.phase);
        let (least, greatest) = self.steps.unwrap_or((number, number));
        self.steps = Some((least.min(number), greatest.max(number)));
        let header = record.header();
        if Some(number) != step || header.flags & flags::STEP_MICRO_BATCH != 0 {
            return;
        }
        let at = header.ticks;
        let ends = header.flags & flags::STEP_END != 0;
        let begins = !ends && header.flags & flags::STEP_RESUMED == 0;
        self.see(
            lane,
            Seen {
                begin: begins.then_some(at),
                begins: begins.into(),
                end: ends.then_some(at),
                first_record: at,
                last_record: at,
                phase,
            },
        );
    }

    /// A record of the step.
    fn record(&mut self, lane: LaneId, record: &Record, open: &StepMark) {
        let (first, last) = record.edges();
        self.see(
            lane,
            Seen {
                begin: None,
                begins: 0,
                end: None,
                first_record: first.max(record.header().ticks),
                last_record: last,
                phase: open.phase,
            },
        );
    }

    fn see(&mut self, lane: LaneId, seen: Seen) {
        self.lanes.entry(lane).and_modify(|known| known.merge(&seen)).or_insert(seen);
    }

    fn merge(mut self, other: Self) -> Self {
        for (lane, seen) in other.lanes {
            self.see(lane, seen);
        }
        self.regions.extend(other.regions);
        self.steps = match (self.steps, other.steps) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self
    }
}
