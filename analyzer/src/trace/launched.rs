//! In which step work on a device was launched: by the lane that launched it, and when.

use std::collections::BTreeMap;

use tmrun_formats::wire::{DeviceInterval, Kind, Step, StepState, flags};
use tmrun_formats::{LaneId, Ticks};

use super::fact::Fact;
use crate::slice::Region;
use crate::slice::kept::{Kept, Run, edges};

/// The step that each lane was in around a region, by time. Looked up when a lane is asked for: few
/// recordings have work on a device.
#[derive(Debug)]
pub(super) struct Lanes<'k, 'r> {
    region: &'k Region,
    kept: &'k Kept<'r>,
    known: BTreeMap<LaneId, Option<States>>,
}

/// The states of a lane.
#[derive(Debug)]
struct States {
    /// Before the first change that is known.
    first: StepState,
    /// Each from a moment on, in twice as many ticks: what ends at one is over behind it.
    changes: Vec<(u128, StepState)>,
}

impl<'k, 'r> Lanes<'k, 'r> {
    pub(super) const fn of(region: &'k Region, kept: &'k Kept<'r>) -> Self {
        Self { region, kept, known: BTreeMap::new() }
    }

    /// Whether an interval was launched in the region, of those that have a part of it. Where its lane was
    /// in no step, or nobody knows in which, the moment decides. So it is in one step at most.
    pub(super) fn launched(
        &mut self,
        fact: &Fact<'_>,
        interval: &DeviceInterval,
        at: Ticks,
    ) -> bool {
        let Some(step) = self.region.step() else { return true };
        let state =
            if fact.lane == interval.lane { fact.state } else { self.state(interval.lane, at) };
        let (from, to) = self.region.extent;
        match state.open.filter(|_| state.sure) {
            Some(open) => open.number == step,
            None => from <= at && (at < to || from == to && at == to),
        }
    }

    fn state(&mut self, lane: LaneId, at: Ticks) -> StepState {
        let runs = self.kept.get(&lane);
        let states = || runs.and_then(|runs| States::of(lane, runs));
        let states = self.known.entry(lane).or_insert_with(states);
        states.as_ref().map_or(StepState::START, |states| states.at(at))
    }
}

impl States {
    fn of(lane: LaneId, runs: &[Run<'_>]) -> Option<Self> {
        let first = runs.first()?.state;
        let (mut states, mut state) = (Self { first, changes: Vec::new() }, first);
        for run in runs {
            if run.state != state {
                state = run.state;
                let (from, _) = edges(run.records().get(..1).unwrap_or_default());
                states.change(from, false, state);
            }
            for record in run.records() {
                let behind = state.behind(record, lane);
                if behind == state {
                    continue;
                }
                state = behind;
                let header = record.header();
                let ends = header.kind == Kind::Step as u8 && header.flags & flags::STEP_END != 0;
                let at = record.payload::<Step>().map_or(record.edges().0, |_| header.ticks);
                states.change(at, ends, state);
            }
        }
        Some(states)
    }

    fn change(&mut self, at: Ticks, ends: bool, state: StepState) {
        let at = u128::from(at.0) << 1 | u128::from(ends);
        // A lane's marks are in the order of time.
        let at = self.changes.last().map_or(at, |&(last, _)| last.max(at));
        self.changes.push((at, state));
    }

    fn at(&self, ticks: Ticks) -> StepState {
        let ticks = u128::from(ticks.0) << 1;
        let behind = self.changes.partition_point(|&(at, _)| at <= ticks);
        let last = behind.checked_sub(1).and_then(|at| self.changes.get(at));
        last.map_or(self.first, |&(_, state)| state)
    }
}
