//! How full the rings were, and how large they should have been.

use std::collections::BTreeMap;

use tmrun::scan::{Gap, Lane, Recording};
use tmrun_formats::{GapReason, LaneId};

/// Drops of a lane that lie closer together than this are one burst: the recorder's thread had no
/// time to take much in between.
const APART_NS: u64 = 1_000_000;

/// A ring of more slots than this is no answer.
const MOST_SLOTS: u64 = 1 << 32;

/// The rings of a recording. They are all of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rings {
    /// Records that each holds.
    pub(super) slots: u64,
    /// The lane whose ring was the fullest, and how many records waited in it; of those that say.
    pub(super) fullest: Option<(LaneId, u64)>,
    pub(super) dropped: Option<Dropped>,
}

/// The worst that a ring was too small for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) lane: LaneId,
    /// Records of the worst burst.
    pub(super) burst: u64,
    /// The smallest ring that would have held a full ring and the burst: a power of two. It is an
    /// estimate. The recorder's thread would have taken more meanwhile, or been slowed down.
    pub(super) slots: Option<u64>,
}

impl Rings {
    pub(super) fn of(recording: &Recording<'_>) -> Option<Self> {
        let slots = recording.meta().run.map(|run| run.ring_slots)?;
        if !(1..=MOST_SLOTS).contains(&slots) {
            return None;
        }
        let lanes = recording.lanes().iter().filter(|&(id, _)| id != LaneId::RECORDER);
        let waited = lanes.filter_map(|(id, lane)| Some((id, high_water(lane, slots)?)));
        let fullest = waited.max_by_key(|&(id, waited)| (waited, std::cmp::Reverse(id)));
        let worst = worst_burst(recording.lost());
        let dropped = worst.map(|(lane, burst)| {
            // What was dropped found a full ring.
            let needed = slots.checked_add(burst).and_then(u64::checked_next_power_of_two);
            Dropped { lane, burst, slots: needed.filter(|&needed| needed <= MOST_SLOTS) }
        });
        Some(Self { slots, fullest, dropped })
    }

    /// The share of the fullest ring that never was in use.
    pub(super) fn headroom(&self) -> Option<f64> {
        let (_, waited) = self.fullest?;
        Some(1.0 - waited as f64 / self.slots as f64)
    }
}

/// The most records that waited in a lane's ring; `None` when that is not known, or is more than a
/// ring holds and so not true.
pub(super) fn high_water(lane: &Lane<'_>, slots: u64) -> Option<u64> {
    lane.totals.map(|totals| totals.high_water).filter(|&waited| waited <= slots)
}

/// The most records that a lane dropped in one burst. The gaps are in order of time.
fn worst_burst<'g>(gaps: impl Iterator<Item = &'g Gap>) -> Option<(LaneId, u64)> {
    let of_ring = |gap: &&Gap| matches!(gap.reason, GapReason::OVERRUN | GapReason::LAPPED);
    let mut bursts: BTreeMap<LaneId, (u64, u64)> = BTreeMap::new();
    let mut worst: Option<(LaneId, u64)> = None;
    for gap in gaps.filter(of_ring) {
        let Some(lane) = gap.lane.filter(|_| gap.records > 0) else { continue };
        let (ends, records) = bursts.entry(lane).or_default();
        if gap.first_ns.saturating_sub(*ends) > APART_NS {
            *records = 0;
        }
        (*ends, *records) = (gap.last_ns.max(*ends), records.saturating_add(gap.records));
        if worst.is_none_or(|(_, most)| *records > most) {
            worst = Some((lane, *records));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun_formats::{GapClass, Planes, Ticks};

    fn gap(lane: u16, first_ns: u64, last_ns: u64, records: u64) -> Gap {
        Gap {
            class: GapClass::Lost,
            reason: GapReason::OVERRUN,
            lane: Some(LaneId(lane)),
            first: Ticks(first_ns),
            last: Ticks(last_ns),
            first_ns,
            last_ns,
            records,
            groups: records,
            planes: Planes::HOST_TIME,
        }
    }

    #[test]
    fn drops_that_follow_each_other_closely_are_one_burst() {
        let ms = APART_NS;
        let gaps = [
            gap(0, ms, ms + 10, 5),
            gap(1, ms, ms + 10, 9),
            gap(0, 2 * ms, 2 * ms + 10, 6),
            gap(0, 9 * ms, 9 * ms + 10, 10),
        ];
        assert_eq!(worst_burst(gaps.iter()), Some((LaneId(0), 11)));
        assert_eq!(worst_burst(gaps[1..].iter()), Some((LaneId(0), 10)));
        assert_eq!(worst_burst([].iter()), None);
    }

    #[test]
    fn counts_that_nobody_can_have_counted_end_at_the_top() {
        let gaps = [gap(0, 0, 1, u64::MAX), gap(0, 2, 3, u64::MAX)];
        assert_eq!(worst_burst(gaps.iter()), Some((LaneId(0), u64::MAX)));
    }
}
