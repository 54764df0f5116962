//! Which step a device interval is of: the one that was open where and when it was launched. It is
//! recorded on another lane, later; this is the one case in which a step is found by time.

use std::collections::BTreeMap;

use tmrun_formats::wire::{DeviceInterval, Kind, Record, StepState};
use tmrun_formats::{LaneId, Ticks};

use super::fact::Fact;
use super::told::{LeftOut, Told};
use crate::slice::Region;

/// The steps of each lane, by when they changed.
#[derive(Debug, Default)]
pub(super) struct Launches(BTreeMap<LaneId, Vec<(Ticks, StepState)>>);

impl Launches {
    /// Takes in a group, in the order of its lane, and the state before it.
    pub(super) fn saw(&mut self, lane: LaneId, group: &[Record], before: StepState) {
        let Some(head) = group.first() else { return };
        let states = self.0.entry(lane).or_default();
        match states.last() {
            // What is before the first that is known was in the same step.
            None => states.push((Ticks(0), before)),
            // Something in between is not here.
            Some((_, last)) if *last != before => states.push((head.header().ticks, before)),
            Some(_) => {}
        }
        if head.kind() == Some(Kind::Step) {
            let state = group.iter().fold(before, |state, record| state.behind(record, lane));
            states.push((head.header().ticks, state));
        }
    }

    /// The state of a lane at a moment.
    fn at(&self, lane: LaneId, at: Ticks) -> StepState {
        let states = self.0.get(&lane).map_or(&[][..], Vec::as_slice);
        let behind = states.partition_point(|(ticks, _)| *ticks <= at);
        let known = behind.checked_sub(1).and_then(|before| states.get(before));
        known.map_or_else(|| StepState::START.doubted(), |(_, state)| *state)
    }

    /// Gives the intervals of other lanes the step that they were launched in. Those that were launched
    /// in none, before the region or behind it, are not of it.
    pub(super) fn place(&self, region: &Region, facts: &mut Vec<Fact<'_>>, told: &mut Told) {
        facts.retain_mut(|fact| {
            let head = fact.group.first();
            let interval = head.and_then(|head| head.payload::<DeviceInterval>());
            let Some(interval) = interval.filter(|interval| interval.lane != fact.lane) else {
                return true;
            };
            fact.state = self.at(interval.lane, fact.first);
            let is_of_region = fact.state.open.is_some() || region.has(fact.first);
            if !is_of_region {
                told.leave_out(LeftOut::OtherStep);
            }
            is_of_region
        });
    }
}
