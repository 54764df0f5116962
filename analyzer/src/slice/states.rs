//! Which step each lane was in around a region, by time.

use std::collections::BTreeMap;

use tmrun_formats::wire::{Kind, Record, Step, StepState, flags};
use tmrun_formats::{GapClass, LaneId, Ticks};

use super::kept::{Kept, Run};
use crate::scan::Recording;

/// A moment in twice as many ticks: what ends at one is over behind it.
pub(crate) type Half = u128;

/// The states of a lane. (What is published late may have begun long before, so a state is not as old as the
/// first record that was made in it.)
#[derive(Debug)]
pub(crate) struct States {
    /// From the beginning of time, and then each from a moment on.
    pub(crate) changes: Vec<Change>,
    pub(crate) marks: Vec<Mark>,
    /// The last moment that a record of it speaks of.
    pub(crate) last: Option<Ticks>,
}

/// A state from a moment on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) at: Half,
    pub(crate) state: StepState,
    /// How many marks are before it.
    pub(crate) marks: usize,
}

/// A mark that a step begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) at: Ticks,
    pub(crate) number: u64,
    pub(crate) ends: bool,
}

impl States {
    /// Those of a lane that is in this state where nothing is kept of it.
    fn of(lane: LaneId, runs: &[Run<'_>], start: StepState, lost: &Lost) -> Self {
        let mut state = runs.first().map_or(start, |run| run.state);
        let first = Change { at: 0, state, marks: 0 };
        let mut states = Self { changes: vec![first], marks: Vec::new(), last: None };
        let mut end = 0;
        for run in runs {
            if run.state != state {
                state = run.state;
                let told = run.records().first().filter(|head| is_gap(head));
                let told = told.map(|head| head.header().ticks);
                let from = told.or_else(|| lost.first_in(lane, (end, run.first)));
                states.change(from.or(states.last).unwrap_or_default(), false, state);
            }
            for record in run.records() {
                let mark = mark(record);
                states.marks.extend(mark);
                let behind = state.behind(record, lane);
                if behind != state {
                    state = behind;
                    let at = mark.map_or(record.edges().0, |mark| mark.at);
                    states.change(at, mark.is_some_and(|mark| mark.ends), state);
                }
                if !record.continues() && !is_gap(record) {
                    states.last = states.last.max(Some(record.edges().1));
                }
            }
            end = run.end();
        }
        states
    }

    fn change(&mut self, at: Ticks, ends: bool, state: StepState) {
        let at = half(at, ends);
        // A lane's marks are in the order of time.
        let at = self.changes.last().map_or(at, |last| last.at.max(at));
        self.changes.push(Change { at, state, marks: self.marks.len() });
    }

    /// The step that the lane is in for sure at a moment; where it ends at that moment it is still.
    pub(crate) fn step_at(&self, ticks: Ticks) -> Option<u64> {
        self.step_behind(half(ticks, false))
    }

    /// The same when what ends at that moment is over.
    pub(crate) fn step_from(&self, ticks: Ticks) -> Option<u64> {
        self.step_behind(half(ticks, true))
    }

    fn step_behind(&self, at: Half) -> Option<u64> {
        let behind = self.changes.partition_point(|change| change.at <= at);
        let last = behind.checked_sub(1).and_then(|at| self.changes.get(at))?;
        last.state.open.filter(|_| last.state.sure).map(|open| open.number)
    }
}

/// The states of every lane that something is kept of.
#[derive(Debug)]
pub(crate) struct Lanes(BTreeMap<LaneId, States>);

impl Lanes {
    pub(crate) fn of(recording: &Recording<'_>, kept: &Kept<'_>) -> Self {
        let lost = Lost::of(recording);
        let start = |lane| recording.lanes().get(lane).map_or(StepState::START, |lane| lane.start);
        let states =
            kept.iter().map(|(&lane, runs)| (lane, States::of(lane, runs, start(lane), &lost)));
        Self(states.collect())
    }

    pub(crate) fn get(&self, lane: LaneId) -> Option<&States> {
        self.0.get(&lane)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneId, &States)> {
        self.0.iter().map(|(&lane, states)| (lane, states))
    }
}

/// Since when positions are lost.
struct Lost(BTreeMap<(LaneId, u64), Ticks>);

impl Lost {
    fn of(recording: &Recording<'_>) -> Self {
        let lost = recording.missing().iter().filter(|m| m.gap.class == GapClass::Lost);
        let lost = lost.filter_map(|m| Some(((m.gap.lane?, m.position?), m.gap.first)));
        Self(lost.collect())
    }

    fn first_in(&self, lane: LaneId, (from, to): (u64, u64)) -> Option<Ticks> {
        if from >= to {
            return None;
        }
        self.0.range((lane, from)..(lane, to)).next().map(|(_, &first)| first)
    }
}

pub(crate) const fn half(at: Ticks, behind: bool) -> Half {
    (at.0 as u128) << 1 | behind as u128
}

fn is_gap(record: &Record) -> bool {
    record.kind() == Some(Kind::Gap)
}

fn mark(record: &Record) -> Option<Mark> {
    let (step, header) = (record.payload::<Step>()?, record.header());
    let ends = header.flags & flags::STEP_END != 0;
    Some(Mark { at: header.ticks, number: step.number, ends })
}
