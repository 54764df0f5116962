//! What nobody asked to keep of a recording, as far as a region lacks it: positions of lanes.

use std::collections::BTreeMap;

use tmrun_formats::wire::{self, Kind};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use super::concern::Concern;
use super::kept::{Kept, Run, between};
use super::region::Region;
use crate::scan::{Gap, Recording};

/// Positions that are left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOut {
    pub(crate) gap: Gap,
    /// The first of them; `None` where a Gap record that is kept tells of them.
    pub(crate) position: Option<u64>,
}

/// What is left out of a region: what lies between records that were published in it, and before it what
/// may have allocated what is live in it, of a lane all together.
pub(crate) fn of(recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> Vec<LeftOut> {
    let concern = Concern::of(recording, region);
    let (mut all, mut before) = (Vec::new(), BTreeMap::<LaneId, LeftOut>::new());
    for missing in recording.missing().iter().filter(|missing| is(&missing.gap)) {
        let (gap, Some(position), Some(lane)) = (missing.gap, missing.position, missing.gap.lane)
        else {
            continue;
        };
        let runs = kept.get(&lane).map_or(&[] as &[Run<'_>], |runs| runs);
        let of_gap = LeftOut { gap, position: Some(position) };
        if concern.is_within(&gap) && is_within(position, gap.records, region, runs) {
            all.push(of_gap);
        } else if let Some(gap) = of_memory_before(&gap, region, &concern) {
            let of_gap = LeftOut { gap, ..of_gap };
            before.entry(lane).and_modify(|earlier| earlier.add(&of_gap)).or_insert(of_gap);
        }
    }
    let records = kept.values().flatten().flat_map(|run| run.records());
    let told = records.filter(|record| record.header().kind == Kind::Gap as u8);
    let told = told.filter_map(|record| record.payload::<wire::Gap>());
    let told = told.map(|gap| Gap::recorded(&gap)).filter(|gap| is(gap) && concern.is_of(gap));
    all.extend(before.into_values());
    all.extend(told.map(|gap| LeftOut { gap, position: None }));
    all
}

/// Whether a gap is one of positions that nobody asked for.
pub(crate) fn is(gap: &Gap) -> bool {
    gap.lane.is_some() && matches!(gap.reason, GapReason::LEFT_OUT | GapReason::SLICED)
}

/// What a lane is taken up without: files before this one, in which what is live may have been allocated.
pub(crate) fn of_earlier_files(recording: &Recording<'_>, region: &Region) -> Option<Gap> {
    let mut starts = recording.meta().starts.values();
    let goes_on = starts.any(|start| start.sequence > 0);
    let range = (Default::default(), region.extent.0);
    let gap = Gap::lost(GapReason::LEFT_OUT, None, range, 0);
    let gap = Gap { class: GapClass::NotRequested, planes: Planes::LOGICAL_MEMORY, ..gap };
    let concern = Concern::of(recording, region);
    Some(gap).filter(|gap| goes_on && concern.is_of(gap))
}

impl LeftOut {
    fn add(&mut self, other: &Self) {
        let (gap, more) = (&mut self.gap, &other.gap);
        gap.first = gap.first.min(more.first);
        gap.last = gap.last.max(more.last);
        gap.records = gap.records.saturating_add(more.records);
        self.position = self.position.min(other.position);
    }
}

/// The part of a gap that is before the region, if that matters. (What is left out where a file begins has
/// the time of the first record that there is.)
fn of_memory_before(gap: &Gap, region: &Region, concern: &Concern<'_>) -> Option<Gap> {
    let matters = concern.promises_memory() && gap.reason != GapReason::SLICED;
    let last = gap.last.min(region.extent.0);
    let before = Gap { last, planes: Planes::LOGICAL_MEMORY, ..*gap };
    Some(before).filter(|before| matters && before.first <= before.last)
}

/// Whether positions are left out between two records that were published in the region.
fn is_within(position: u64, records: u64, region: &Region, runs: &[Run<'_>]) -> bool {
    between(region, runs, position, records).is_some_and(|(before, _)| {
        let last = before.records().last();
        before.end() != position || !last.is_some_and(|record| stands_for(record, records))
    })
}

/// Whether a record says that it and so many positions behind it are missing, as one of a slice does. What
/// was left out before the region it tells of a whole lane.
fn stands_for(record: &wire::Record, records: u64) -> bool {
    record.payload::<wire::Gap>().is_some_and(|gap| {
        let is_counted = gap.records.checked_sub(1) == Some(records);
        gap.groups == 0 && (is_counted || gap.reason.class() == GapClass::NotRequested)
    })
}
