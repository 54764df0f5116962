//! Where marks of a step may have been that are lost: between the marks of other steps around it.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{Kind, Record, Step, flags};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes, Ticks};

use super::found::Seen;
use super::region::overlap;
use crate::scan::{Gap, RecordChunk, Recording};

/// From, and to.
type Stretch = (Ticks, Ticks);

/// The lanes around what is left of a step.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// What is lost and may have been step marks.
    lost: Vec<Gap>,
    marks: BTreeMap<LaneId, Marks>,
    /// Lanes of which nobody can say that they have no steps.
    stepping: BTreeSet<LaneId>,
}

/// The marks of other steps that are next to this one: the last before, and the first beginning behind.
/// And whether there are some between this one's own where marks are lost before them and behind them.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    before: Option<Ticks>,
    behind: Option<Ticks>,
    has_between: bool,
    /// Whether the lane has step marks, and records at all.
    has_marks: bool,
    has_records: bool,
    /// When the last of its records was published.
    last: Option<Ticks>,
}

impl Around {
    /// Looks around a step of which this was seen. Where both its marks are there and nothing else is
    /// lost, there is nothing to look for.
    pub(super) fn of(
        recording: &Recording<'_>,
        number: u64,
        seen: &BTreeMap<LaneId, Seen>,
    ) -> Self {
        let lost = recording.gaps().iter().filter(|gap| may_hold_marks(gap));
        let lost: Vec<Gap> = lost.copied().collect();
        let is_whole = |seen: &Seen| seen.begin.is_some() && seen.end.is_some();
        if lost.is_empty() && seen.values().all(is_whole) {
            return Self::default();
        }
        // What no lane has of the step would be around its first moment.
        let first = seen.values().map(|seen| seen.first).min().unwrap_or_default();
        let place = |lane: LaneId| seen.get(&lane).map_or((first, first), |s| (s.first, s.last));
        let mut around = Self { lost, ..Self::default() };
        let lost_within =
            |lane| seen.get(&lane).and_then(|s| around.lost(lane, s.begin.zip(s.end)?));
        let marks = recording
            .par_record_chunks()
            .fold(BTreeMap::<LaneId, Marks>::new, |mut lanes, chunk| {
                let lane = lanes.entry(chunk.lane()).or_default();
                lane.chunk(&chunk, number, place(chunk.lane()), lost_within(chunk.lane()));
                lanes
            })
            .reduce(BTreeMap::new, |mut lanes, other| {
                for (id, marks) in other {
                    lanes.entry(id).or_default().merge(&marks);
                }
                lanes
            });
        // A lane that has records and no mark has no steps; one of which all is lost may have had some.
        let has_none = |id| marks.get(&id).is_some_and(|m| m.has_records && !m.has_marks);
        let lanes = recording.lanes().iter().map(|(id, _)| id);
        around.stepping = lanes.filter(|&id| id != LaneId::RECORDER && !has_none(id)).collect();
        around.marks = marks;
        around
    }

    /// Where the beginning of the step may be lost on a lane whose first record of it is of this moment.
    pub(super) fn lost_before(&self, lane: LaneId, first: Ticks) -> Option<Stretch> {
        let before = self.marks.get(&lane).and_then(|marks| marks.before);
        self.lost(lane, (before.unwrap_or_default(), first))
    }

    /// Where its end may be lost on a lane whose last record of it is of this moment.
    pub(super) fn lost_behind(&self, lane: LaneId, last: Ticks) -> Option<Stretch> {
        self.lost(lane, (last, self.next_begin(lane).unwrap_or(Ticks(u64::MAX))))
    }

    /// Where its end, and another beginning of its number, may be lost between the two marks of it that there
    /// are: around marks of other steps.
    pub(super) fn lost_between(&self, lane: LaneId, marks: Stretch) -> Option<Stretch> {
        let has_between = self.marks.get(&lane).is_some_and(|marks| marks.has_between);
        self.lost(lane, marks).filter(|_| has_between)
    }

    /// Where another lane may have begun it before this moment, and lost both its marks: behind its last
    /// mark of another step, however long before.
    pub(super) fn lost_elsewhere(
        &self,
        seen: &BTreeMap<LaneId, Seen>,
        begin: Ticks,
    ) -> Option<Stretch> {
        let others = self.stepping.iter().filter(|lane| !seen.contains_key(lane));
        let stretches = others.filter_map(|&lane| {
            let marks = self.marks.get(&lane).copied().unwrap_or_default();
            let within = (marks.before.unwrap_or_default(), begin);
            let may_be_of_lane = |gap: &Gap| match gap.lane {
                Some(of) => of == lane,
                // Positions tell what a lane lacks before its last record; this is of none that is known.
                None => {
                    let is_behind = |last| gap.first < gap.last && last >= gap.last;
                    gap.records > 0 || !marks.last.is_some_and(is_behind)
                }
            };
            self.lost_of(within, may_be_of_lane)
        });
        stretches.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    /// When the next step begins on a lane.
    pub(super) fn next_begin(&self, lane: LaneId) -> Option<Ticks> {
        self.marks.get(&lane)?.behind
    }

    /// From the first to the last moment of a stretch at which something of a lane is lost.
    fn lost(&self, lane: LaneId, within: Stretch) -> Option<Stretch> {
        self.lost_of(within, |gap| gap.lane.is_none_or(|of| of == lane))
    }

    /// The same of the gaps that are wanted.
    fn lost_of(&self, within: Stretch, is_wanted: impl Fn(&Gap) -> bool) -> Option<Stretch> {
        let lost = self.lost.iter().filter(|gap| is_wanted(gap)).map(|gap| (gap.first, gap.last));
        let lost = lost.filter(|&lost| overlap(lost, within));
        let (first, last) = lost.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))?;
        Some((first.max(within.0), last.min(within.1)))
    }
}

/// Whether step marks of a lane may be among what is lost. (What found no lane was of none, and what was
/// recorded when the recording had ended is behind all of it.)
fn may_hold_marks(gap: &Gap) -> bool {
    let is_elsewhere = matches!(gap.reason, GapReason::NO_LANE | GapReason::AFTER_FINISH);
    let is_lost = gap.class == GapClass::Lost && !is_elsewhere;
    is_lost && gap.planes.contains(Planes::HOST_TIME)
}

impl Marks {
    fn chunk(
        &mut self,
        chunk: &RecordChunk<'_>,
        number: u64,
        (first, last): Stretch,
        lost_within: Option<Stretch>,
    ) {
        let is_gap = |record: &Record| record.header().kind == Kind::Gap as u8;
        if let Some(last) = chunk.records().iter().rfind(|record| !is_gap(record)) {
            self.has_records = true;
            self.last = self.last.max(Some(last.edges().1));
        }
        let marks = chunk.records().iter().filter_map(|record| {
            let mark = record.payload::<Step>()?;
            Some((record.header(), mark.number))
        });
        for (header, of) in marks {
            self.has_marks = true;
            let (at, opens) = (header.ticks, flags::STEP_END | flags::STEP_RESUMED);
            if of != number && at <= first {
                self.before = self.before.max(Some(at));
            }
            if of != number && at >= last && header.flags & opens == 0 {
                self.behind = Some(self.behind.map_or(at, |behind| behind.min(at)));
            }
            self.has_between |=
                of != number && lost_within.is_some_and(|(from, to)| from < at && at < to);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.before = self.before.max(other.before);
        self.behind = self.behind.into_iter().chain(other.behind).min();
        self.has_between |= other.has_between;
        self.has_marks |= other.has_marks;
        self.has_records |= other.has_records;
        self.last = self.last.max(other.last);
    }
}
