//! Where marks of a step may have been that are lost: between the marks of other steps around it.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{Kind, Record, Step, flags};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes, Ticks};

use super::found::{Found, Seen};
use super::stretches::{Stretch, Stretches, hull};
use super::timeline::Timeline;
use crate::scan::{Gap, RecordChunk, Recording};

/// The step marks of all lanes, and what is lost and may have been step marks.
#[derive(Debug, Default)]
pub(super) struct Around {
    lanes: BTreeMap<LaneId, Lane>,
    /// What is lost of no lane that is known, and was told of by somebody or is a moment.
    of_any: Stretches,
    /// The rest of it: positions tell what a lane lacks before its last record, so this is of none that
    /// has a record behind it.
    of_silent: Stretches,
}

#[derive(Debug, Default)]
struct Lane {
    marks: Timeline,
    /// Those of them that begin a step.
    begins: Timeline,
    lost: Stretches,
    /// When the last of its records was published.
    last: Option<Ticks>,
    /// Whether nobody can say that it has no steps.
    may_step: bool,
}

impl Around {
    /// Looks around the steps that were found. Where both their marks are there and nothing else is lost,
    /// there is nothing to look for.
    pub(super) fn of(recording: &Recording<'_>, found: &Found) -> Self {
        let lost: Vec<&Gap> = recording.gaps().iter().filter(|gap| may_hold_marks(gap)).collect();
        let is_whole = |seen: &Seen| seen.begin.is_some() && seen.end.is_some();
        let mut seen = found.steps.values().flat_map(BTreeMap::values);
        if lost.is_empty() && seen.all(is_whole) {
            return Self::default();
        }
        let mut records = recording
            .par_record_chunks()
            .fold(BTreeMap::<LaneId, Records>::new, |mut lanes, chunk| {
                lanes.entry(chunk.lane()).or_default().chunk(&chunk);
                lanes
            })
            .reduce(BTreeMap::new, |mut lanes, other| {
                for (id, records) in other {
                    lanes.entry(id).or_default().merge(records);
                }
                lanes
            });
        let mut of_lanes = BTreeMap::<LaneId, Vec<Stretch>>::new();
        let (mut of_any, mut of_silent) = (Vec::new(), Vec::new());
        for gap in lost {
            let list = match gap.lane {
                Some(lane) => of_lanes.entry(lane).or_default(),
                None if gap.records > 0 || gap.first == gap.last => &mut of_any,
                None => &mut of_silent,
            };
            list.push((gap.first, gap.last));
        }
        let known = recording.lanes().iter().map(|(id, _)| id);
        let ids = known.chain(records.keys().copied()).chain(of_lanes.keys().copied());
        let ids: BTreeSet<_> = ids.collect();
        let lanes = ids.into_iter().map(|id| {
            let records = records.remove(&id).unwrap_or_default();
            let is_known = recording.lanes().get(id).is_some();
            // A lane that has records and no mark has no steps; one of which all is lost may have had some.
            let has_none = records.last.is_some() && records.marks.is_empty();
            let lane = Lane {
                begins: records.marks.iter().filter(|mark| mark.2).map(|m| (m.0, m.1)).collect(),
                marks: records.marks.iter().map(|mark| (mark.0, mark.1)).collect(),
                lost: of_lanes.remove(&id).unwrap_or_default().into_iter().collect(),
                last: records.last,
                may_step: is_known && id != LaneId::RECORDER && !has_none,
            };
            (id, lane)
        });
        let lanes = lanes.collect();
        let (of_any, of_silent) = (of_any.into_iter().collect(), of_silent.into_iter().collect());
        Self { lanes, of_any, of_silent }
    }

    /// What is around a step of which this was seen.
    pub(super) const fn step<'a>(
        &'a self,
        number: u64,
        seen: &'a BTreeMap<LaneId, Seen>,
    ) -> AroundStep<'a> {
        AroundStep { around: self, number, seen }
    }

    /// From the first to the last moment of a stretch at which something of a lane is lost.
    fn lost(&self, lane: LaneId, within: Stretch) -> Option<Stretch> {
        let of_lane = self.lanes.get(&lane).and_then(|lane| lane.lost.overlapping(within));
        let of_any = self.of_any.overlapping(within);
        let all = [of_lane, of_any, self.of_silent.overlapping(within)];
        clamped(all, within)
    }

    /// The same, less what is of no lane that has a record behind it.
    fn lost_of(&self, lane: &Lane, within: Stretch) -> Option<Stretch> {
        let of_silent = self.of_silent.ending_behind(lane.last.unwrap_or_default(), within);
        let all = [lane.lost.overlapping(within), self.of_any.overlapping(within), of_silent];
        clamped(all, within)
    }
}

/// What is lost is lost within this.
fn clamped(lost: [Option<Stretch>; 3], within: Stretch) -> Option<Stretch> {
    let (first, last) = lost.into_iter().flatten().reduce(hull)?;
    Some((first.max(within.0), last.min(within.1)))
}

/// Whether step marks of a lane may be among what is lost. (What found no lane was of none, and what was
/// recorded when the recording had ended is behind all of it.)
fn may_hold_marks(gap: &Gap) -> bool {
    let is_elsewhere = matches!(gap.reason, GapReason::NO_LANE | GapReason::AFTER_FINISH);
    let is_lost = gap.class == GapClass::Lost && !is_elsewhere;
    is_lost && gap.planes.contains(Planes::HOST_TIME)
}

/// The lanes around what is left of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct AroundStep<'a> {
    around: &'a Around,
    pub(super) number: u64,
    pub(super) seen: &'a BTreeMap<LaneId, Seen>,
}

impl AroundStep<'_> {
    /// Where the beginning of the step may be lost on a lane whose first record of it is of this moment.
    pub(super) fn lost_before(&self, lane: LaneId, first: Ticks) -> Option<Stretch> {
        let of_lane = self.around.lanes.get(&lane);
        let before = of_lane.and_then(|lane| lane.marks.last_other(self.number, first));
        self.around.lost(lane, (before.unwrap_or_default(), first))
    }

    /// Where its end may be lost on a lane whose last record of it is of this moment.
    pub(super) fn lost_behind(&self, lane: LaneId, last: Ticks) -> Option<Stretch> {
        self.around.lost(lane, (last, self.next_begin(lane, last).unwrap_or(Ticks(u64::MAX))))
    }

    /// Where its end, and another beginning of its number, may be lost between the two marks of it that there
    /// are: around marks of other steps.
    pub(super) fn lost_between(&self, lane: LaneId, marks: Stretch) -> Option<Stretch> {
        let lost = self.around.lost(lane, marks)?;
        let of_lane = self.around.lanes.get(&lane)?;
        let behind = Ticks(lost.0.0.saturating_add(1));
        let has_between = of_lane.marks.first_other(self.number, behind);
        has_between.is_some_and(|at| at < lost.1).then_some(lost)
    }

    /// Where another lane may have begun it before this moment, and lost both its marks: behind its last
    /// mark of another step, however long before.
    pub(super) fn lost_elsewhere(&self, begin: Ticks) -> Option<Stretch> {
        // What no lane has of the step would be around its first moment.
        let first = self.seen.values().map(|seen| seen.first).min().unwrap_or_default();
        let is_other = |lane: &LaneId| !self.seen.contains_key(lane);
        let others = self.around.lanes.iter().filter(|(id, lane)| lane.may_step && is_other(id));
        let stretches = others.filter_map(|(_, lane)| {
            let before = lane.marks.last_other(self.number, first).unwrap_or_default();
            self.around.lost_of(lane, (before, begin))
        });
        stretches.reduce(hull)
    }

    /// When the next step begins on a lane whose last record of this one is of this moment.
    pub(super) fn next_begin(&self, lane: LaneId, last: Ticks) -> Option<Ticks> {
        self.around.lanes.get(&lane)?.begins.first_other(self.number, last)
    }
}

/// What a lane has: its marks, by step, and whether they begin it.
#[derive(Debug, Default)]
struct Records {
    marks: Vec<(Ticks, u64, bool)>,
    last: Option<Ticks>,
}

impl Records {
    fn chunk(&mut self, chunk: &RecordChunk<'_>) {
        let is_gap = |record: &Record| record.header().kind == Kind::Gap as u8;
        if let Some(last) = chunk.records().iter().rfind(|record| !is_gap(record)) {
            self.last = self.last.max(Some(last.edges().1));
        }
        self.marks.extend(chunk.iter().filter_map(|record| {
            let (mark, header) = (record.payload::<Step>()?, record.header());
            let begins = header.flags & (flags::STEP_END | flags::STEP_RESUMED) == 0;
            Some((header.ticks, mark.number, begins))
        }));
    }

    fn merge(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.last = self.last.max(other.last);
    }
}
