//! What is missing of a region: the same of a recording and of a slice of it.

use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use crate::scan::{Gap, Recording};
use crate::slice::Region;
use crate::slice::concern::Concern;
use crate::slice::kept::Kept;
use crate::slice::left_out;

/// What is missing of a region, in order of time: in the file, and because it is in another one or in none.
/// What a slice leaves out is none of it: it lies before or behind, or between spans that are around the
/// region.
pub(super) fn of(recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> Vec<Gap> {
    let concern = Concern::of(recording, region);
    let gaps = recording.gaps().iter().filter(|gap| !left_out::is(gap) && concern.is_of(gap));
    let left_out = left_out::of(recording, region, kept);
    let gaps = gaps.copied().chain(left_out.into_iter().map(|left_out| left_out.gap));
    let gaps = gaps.chain(left_out::of_earlier_files(recording, region));
    let outside = region.outside.iter().filter(|outside| !outside.is_told(recording));
    let gaps = gaps.chain(outside.map(|outside| outside.gap(recording, region.extent)));
    let mut gaps: Vec<Gap> = gaps.map(|gap| of_region(gap, recording, &concern, region)).collect();
    gaps.sort_by_key(|gap| (gap.first, gap.last, gap.class, gap.reason, gap.lane));
    gaps
}

/// A gap as far as it is one of the region. When something was lost, nobody knows; what was not asked
/// for goes on before and behind, or is of what is live alone.
fn of_region(
    mut gap: Gap,
    recording: &Recording<'_>,
    concern: &Concern<'_>,
    region: &Region,
) -> Gap {
    if gap.class == GapClass::NotRequested {
        let (clock, (from, to)) = (recording.clock(), region.extent);
        if concern.is_within(&gap) {
            (gap.first, gap.last) = (gap.first.max(from), gap.last.min(to));
        } else {
            gap.planes = Planes::LOGICAL_MEMORY;
        }
        (gap.first_ns, gap.last_ns) = (clock.ns(gap.first), clock.ns(gap.last));
    }
    // Damage of the recorder's own lane is of no lane that anybody works with.
    let is_damage = matches!(gap.reason, GapReason::CORRUPT | GapReason::TORN);
    gap.lane = gap.lane.filter(|&lane| !is_damage || lane != LaneId::RECORDER);
    gap
}
