//! What is missing of a region: the same of a recording and of a slice of it.

use tmrun_formats::wire::{self, Record};
use tmrun_formats::{GapClass, GapReason, LaneId};

use crate::scan::{Gap, Missing, Recording};
use crate::slice::Region;
use crate::slice::concern::Concern;
use crate::slice::kept::{Kept, Run, between};

/// What is missing of a region, in order of time. What a slice leaves out is none of it: it lies
/// before or behind, or between spans that are around the region.
pub(super) fn of(recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> Vec<Gap> {
    let concern = Concern::of(recording, region);
    let gaps = recording.gaps().iter().filter(|gap| concern.is_of(gap));
    let missing = gaps.filter(|gap| !is_cut(gap) || is_cut_within(gap, recording, region, kept));
    let mut gaps: Vec<Gap> = missing.map(|gap| within(gap, recording, region)).collect();
    gaps.sort_by_key(|gap| (gap.first, gap.last, gap.class, gap.reason, gap.lane));
    gaps
}

fn is_cut(gap: &Gap) -> bool {
    gap.reason == GapReason::SLICED && gap.lane.is_some()
}

/// A gap as far as it is one of the region. When something was lost, nobody knows; what was not asked
/// for goes on before and behind.
fn within(gap: &Gap, recording: &Recording<'_>, region: &Region) -> Gap {
    let mut gap = *gap;
    if gap.class == GapClass::NotRequested {
        let (clock, (from, to)) = (recording.clock(), region.extent);
        (gap.first, gap.last) = (gap.first.max(from), gap.last.min(to));
        (gap.first_ns, gap.last_ns) = (clock.ns(gap.first), clock.ns(gap.last));
    }
    // As a record tells it: damage of the recorder's own lane is of no lane that anybody works with.
    let is_damage = matches!(gap.reason, GapReason::CORRUPT | GapReason::TORN);
    gap.lane = gap.lane.filter(|&lane| !is_damage || lane != LaneId::RECORDER);
    gap
}

/// Whether positions are left out between two records that were published in the region: somebody cut
/// out another part than this one.
fn is_cut_within(gap: &Gap, recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> bool {
    let of_gap = |missing: &&Missing| {
        let one = |gap: &Gap| (gap.reason, gap.lane, gap.first, gap.last, gap.records);
        one(&missing.gap) == one(gap)
    };
    let mut positions = recording.missing().iter().filter(of_gap);
    positions.any(|missing| match gap.lane.and_then(|lane| kept.get(&lane)) {
        Some(runs) => missing.position.is_none_or(|at| is_within(at, gap.records, region, runs)),
        None => true,
    })
}

fn is_within(position: u64, records: u64, region: &Region, runs: &[Run<'_>]) -> bool {
    between(region, runs, position, records).is_some_and(|(before, _)| {
        let last = before.records().last();
        before.end() != position || !last.is_some_and(|record| stands_for(record, records))
    })
}

/// Whether a record says that it and so many positions behind it are lost, as one of a slice does.
fn stands_for(record: &Record, records: u64) -> bool {
    record.payload::<wire::Gap>().is_some_and(|gap| {
        gap.reason.class() == GapClass::Lost
            && gap.groups == 0
            && gap.records.checked_sub(1) == Some(records)
    })
}
