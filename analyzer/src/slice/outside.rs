//! What a file does not have of a step, because a lane is in it where the file begins or still where it
//! ends.

use std::collections::BTreeMap;

use tmrun_formats::wire::StepState;
use tmrun_formats::{GapReason, LaneId, Ticks};

use super::around::AroundStep;
use super::found::Seen;
use crate::salvage::{Salvaged, salvaged};
use crate::scan::{Gap, Recording};

/// What a lane may have of a step where the file has nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// The lane.
    pub lane: LaneId,
    /// Why it is not there: another file has it (`left-out`), the file breaks off (`torn`), or it was
    /// recorded when the recording had ended (`after-finish`).
    pub reason: GapReason,
    /// Behind, or before, this moment.
    pub at: Ticks,
    /// Whether it is behind the end of the file.
    pub behind: bool,
}

impl Outside {
    /// What it is called where the step has this extent: nobody knows how much it is, or of which planes.
    pub(crate) fn gap(&self, recording: &Recording<'_>, extent: (Ticks, Ticks)) -> Gap {
        let last = if self.behind { self.at.max(extent.1) } else { self.at };
        let gap = Gap::lost(self.reason, Some(self.lane), (self.at, last), 0);
        let clock = recording.clock();
        let (first_ns, last_ns) = (clock.ns(gap.first), clock.ns(gap.last));
        Gap { class: self.reason.class(), first_ns, last_ns, ..gap }
    }

    /// Whether a Gap record tells of it, as in a slice.
    pub(crate) fn is_told(&self, recording: &Recording<'_>) -> bool {
        recording.gaps().iter().any(|gap| self.is(gap))
    }

    fn is(&self, gap: &Gap) -> bool {
        let is_uncounted = gap.records == 0 && gap.groups == 0;
        let is_of_lane = gap.lane == Some(self.lane) && gap.reason == self.reason;
        self.behind && is_uncounted && is_of_lane && gap.first == self.at
    }
}

/// Whether a lane is in a step for certain.
pub(super) fn is_in(state: StepState, number: u64) -> bool {
    state.sure && state.open.is_some_and(|open| open.number == number)
}

/// What there may be of a step before the file and behind it, lane by lane; `main` is the lane that it is on.
pub(super) fn of(
    recording: &Recording<'_>,
    number: u64,
    seen: &BTreeMap<LaneId, Seen>,
    around: AroundStep<'_>,
    main: LaneId,
) -> Vec<Outside> {
    let mut outside = Vec::new();
    for (&lane, seen) in seen {
        let Some(known) = recording.lanes().get(lane) else { continue };
        if is_in(known.start, number) {
            let (reason, at) = (GapReason::LEFT_OUT, seen.first);
            outside.push(Outside { lane, reason, at, behind: false });
        }
        if is_in(known.state, number) && seen.left().is_none() {
            let of = |reason| Outside { lane, reason, at: seen.last, behind: true };
            let told = [GapReason::LEFT_OUT, GapReason::TORN, GapReason::AFTER_FINISH].map(of);
            let told = told.into_iter().find(|outside| outside.is_told(recording));
            // What is lost there is a gap already.
            let is_lost = || around.lost_behind(lane, seen.last).is_some();
            outside.extend(told.or_else(|| {
                let reason = behind(recording, lane == main).filter(|_| !is_lost())?;
                Some(of(reason))
            }));
        }
    }
    outside
}

/// Why a file does not have what a lane did behind its last record; `None` where that was the last. A run that
/// says that it failed ended the step that it was in.
fn behind(recording: &Recording<'_>, is_main: bool) -> Option<GapReason> {
    if recording.goes_on() {
        return Some(GapReason::LEFT_OUT);
    }
    let Some(terminal) = recording.meta().terminal else { return Some(GapReason::TORN) };
    let how = terminal.reason.filter(|_| !terminal.complete).and_then(salvaged);
    match how {
        None if is_main && !terminal.complete => None,
        None => Some(GapReason::AFTER_FINISH),
        Some(Salvaged::Torn) => Some(GapReason::TORN),
        Some(Salvaged::Whole) => None,
    }
}
