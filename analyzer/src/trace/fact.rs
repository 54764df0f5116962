//! What happened in a region beside its spans, in order of time.

use tmrun_formats::wire::{DeviceInterval, Kind, Record, StepState, groups};
use tmrun_formats::{LaneId, SpanId, Ticks};

use super::launched::Launches;
use super::told::{LeftOut, Told};
use crate::scan::Recording;
use crate::slice::Region;
use crate::slice::kept::{Kept, edges, is_event, is_of};
use crate::slice::live::Live;

/// A group of records that is an event, or several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact<'r> {
    pub(super) lane: LaneId,
    /// The position of its head.
    pub(super) position: u64,
    pub(super) group: &'r [Record],
    pub(super) kind: Kind,
    pub(super) first: Ticks,
    pub(super) last: Ticks,
    /// The span that it was recorded within.
    pub(super) within: Option<SpanId>,
    /// The step that was open on its lane.
    pub(super) state: StepState,
    /// Storage that was allocated before the region began.
    pub(super) carried: bool,
}

/// The facts of a region.
pub(super) fn of<'r>(
    recording: &'r Recording<'r>,
    region: &Region,
    kept: &Kept<'r>,
    told: &mut Told,
) -> Vec<Fact<'r>> {
    let mut live = Live::default();
    let mut launches = Launches::of(recording, region, kept);
    let mut facts = Vec::new();
    for (&lane, runs) in kept {
        for run in runs {
            let mut state = run.state;
            let mut position = run.first;
            for group in groups(run.records()) {
                let before = state;
                state = group.iter().fold(state, |state, record| state.behind(record, lane));
                let at = position;
                position = position.saturating_add(group.len() as u64);
                let Some(head) = group.first() else { continue };
                let (first, last) = edges(group);
                let Some(kind) = head.kind() else {
                    if region.overlaps(first, last) {
                        told.leave_out(LeftOut::Unknown);
                    }
                    continue;
                };
                let is_memory = matches!(kind, Kind::Alloc | Kind::Free);
                let within = run.span.nearest(head.header().span);
                let fact = Fact {
                    lane,
                    position: at,
                    group,
                    kind,
                    first,
                    last,
                    within: Some(within).filter(|id| !id.is_none()),
                    state: before,
                    carried: is_memory && first < region.extent.0,
                };
                let is_of_region = is_of(region, group, before);
                if let Some(interval) = head.payload::<DeviceInterval>() {
                    // It belongs where it was launched, which its own lane says.
                    let launched = head.header().ticks;
                    if !launches.has(&interval, launched) {
                        if is_of_region {
                            told.leave_out(LeftOut::OtherStep);
                        }
                        continue;
                    }
                }
                if fact.carried {
                    live.record(lane, at, head);
                    facts.push(fact);
                } else if is_of_region && is_event(kind) {
                    facts.push(fact);
                }
            }
        }
    }
    let live = live.allocations();
    facts.retain(|fact| !fact.carried || live.contains_key(&(fact.lane, fact.position)));
    facts.sort_by_key(|fact| (fact.first, fact.lane, fact.position));
    facts
}
