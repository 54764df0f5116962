//! In which step work on a device was launched: by the lane that launched it, and when.

use std::collections::BTreeSet;

use tmrun_formats::wire::DeviceInterval;
use tmrun_formats::{LaneId, Ticks};

use crate::scan::Recording;
use crate::slice::Region;
use crate::slice::kept::Kept;
use crate::slice::states::{Half, Lanes, Mark, States, half};

/// Knows in which step work was launched. Looked up when the first is asked for: few recordings have work on
/// a device.
#[derive(Debug)]
pub(super) struct Launches<'k, 'r> {
    recording: &'r Recording<'r>,
    region: &'k Region,
    kept: &'k Kept<'r>,
    known: Option<(Lanes, Moments)>,
}

impl<'k, 'r> Launches<'k, 'r> {
    pub(super) const fn of(
        recording: &'r Recording<'r>,
        region: &'k Region,
        kept: &'k Kept<'r>,
    ) -> Self {
        Self { recording, region, kept, known: None }
    }

    /// Whether an interval was launched in the region, of those that have a part of it. Where its lane was
    /// in no step, or nobody knows in which, the moment decides. So it is in one step at most.
    pub(super) fn has(&mut self, interval: &DeviceInterval, at: Ticks) -> bool {
        let Some(step) = self.region.step() else { return true };
        let (lanes, moments) = self.known.get_or_insert_with(|| {
            let lanes = Lanes::of(self.recording, self.kept);
            let moments = Moments::of(&lanes);
            (lanes, moments)
        });
        match lanes.get(interval.lane).and_then(|states| states.step_at(at)) {
            Some(number) => number == step,
            None => self.region.has(at) && moments.step_at(at) == Some(step),
        }
    }
}

/// The one step that a moment is of, if it is one of a step at all: of those that lanes are in for sure the one
/// that was joined last; else of those that they may be in; else the one of which a mark comes first.
///
/// Every step finds the same for a moment that it has: all marks of that time are kept, and of each lane
/// the marks before and behind.
#[derive(Debug)]
struct Moments {
    /// The step that some lane is in, or may be in, each from a moment on.
    changes: Vec<(Half, Option<u64>)>,
    marks: Vec<Mark>,
}

/// What a lane says of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    /// It is in this step, since then.
    In(Half, u64),
    /// It may be in this one.
    May(u64),
}

impl Moments {
    fn of(lanes: &Lanes) -> Self {
        let mut said: Vec<_> = lanes.iter().flat_map(|(lane, states)| said(lane, states)).collect();
        said.sort_by_key(|&(at, ..)| at);
        let (mut sure, mut unsure) = (BTreeSet::new(), BTreeSet::new());
        let mut changes: Vec<(Half, Option<u64>)> = Vec::new();
        for (at, lane, before, says) in said {
            match before {
                Says::In(since, number) => drop(sure.remove(&(since, number, lane))),
                Says::May(number) => drop(unsure.remove(&(number, lane))),
                Says::Nothing => {}
            }
            match says {
                Says::In(since, number) => drop(sure.insert((since, number, lane))),
                Says::May(number) => drop(unsure.insert((number, lane))),
                Says::Nothing => {}
            }
            let sure = sure.last().map(|&(_, number, _)| number);
            let step = sure.or_else(|| unsure.last().map(|&(number, _)| number));
            match changes.last_mut() {
                Some(last) if last.0 == at => last.1 = step,
                _ => changes.push((at, step)),
            }
        }
        let mut marks: Vec<Mark> =
            lanes.iter().flat_map(|(_, states)| &states.marks).copied().collect();
        marks.sort_unstable();
        Self { changes, marks }
    }

    fn step_at(&self, at: Ticks) -> Option<u64> {
        let from = self.changes.partition_point(|change| change.0 <= half(at, false));
        let open = from.checked_sub(1).and_then(|from| self.changes.get(from)?.1);
        let next = || self.marks.get(self.marks.partition_point(|mark| mark.at < at));
        open.or_else(|| next().map(|mark| mark.number))
    }
}

/// What a lane says from moments on, and what it said before. Behind its last record it may have left.
fn said(lane: LaneId, states: &States) -> Vec<(Half, LaneId, Says, Says)> {
    let last = states.last.map_or(0, |last| half(last, true));
    let mut all: Vec<(Half, LaneId, Says, Says)> = Vec::new();
    let (mut before, mut was) = (Says::Nothing, None);
    let ends = states.changes.iter().skip(1).map(|change| change.at).chain([Half::MAX]);
    for (change, end) in states.changes.iter().zip(ends) {
        let next = states.marks.get(change.marks).filter(|next| next.ends);
        let says = match (change.state.open.filter(|_| change.state.sure), before) {
            (Some(open), Says::In(_, number)) if open.number == number => before,
            (Some(open), _) => Says::In(change.at, open.number),
            (None, _) if change.state.sure => Says::Nothing,
            (None, _) => next.map(|next| next.number).or(was).map_or(Says::Nothing, Says::May),
        };
        all.push((change.at, lane, before, says));
        before = says;
        match says {
            Says::In(_, number) => {
                was = Some(number);
                if last < end {
                    before = Says::May(number);
                    all.push((last.max(change.at), lane, says, before));
                }
            }
            Says::Nothing => was = None,
            Says::May(_) => {}
        }
    }
    all
}
