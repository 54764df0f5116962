//! Which gaps matter to what is converted.
//!
//! Of a whole recording all do. A selected step (or phase) covers a stretch of time on each lane that
//! saw it: from the step mark before its first record to the mark behind its last, because up to
//! there its own marks may be among what was lost. A gap that touches the stretch of its lane
//! counts; one of a lane that did not see the step counts where it touches the time from the first
//! stretch of any lane to the last. Where nothing was selected, every gap counts: it may be why.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tmrun_formats::{GapReason, LaneId, Planes, Ticks};

use super::phase::Selection;
use crate::scan::Gap;

/// What a chunk says of the stretch of its lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChunkCover {
    first_mark: Option<Ticks>,
    last_mark: Option<Ticks>,
    selected: Option<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    /// The mark before the first selected record, if it is in the same chunk.
    before: Option<Ticks>,
    /// The mark behind the last one, if it is.
    behind: Option<Ticks>,
}

impl ChunkCover {
    /// Takes in the next group; `mark` is its time if it is a step mark.
    #[inline]
    pub(super) fn next(&mut self, selected: bool, mark: Option<Ticks>) {
        if selected {
            let before = self.last_mark;
            self.selected.get_or_insert(Part { before, behind: None }).behind = None;
        }
        let Some(at) = mark else { return };
        if let Some(part) = self.selected.as_mut().filter(|_| !selected) {
            part.behind.get_or_insert(at);
        }
        self.first_mark.get_or_insert(at);
        self.last_mark = Some(at);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct LaneCover {
    last_mark: Option<Ticks>,
    /// From, and to; no end while it is not known.
    stretch: Option<(Ticks, Option<Ticks>)>,
}

/// The stretch of each lane.
#[derive(Debug, Clone)]
pub(super) struct Cover {
    all: bool,
    lanes: BTreeMap<LaneId, LaneCover>,
    /// From the first stretch of any lane to the last, computed when it is first asked for.
    hull: OnceLock<Option<(Ticks, Ticks)>>,
}

impl Cover {
    pub(super) const fn of(selection: &Selection) -> Self {
        Self { all: selection.is_all(), lanes: BTreeMap::new(), hull: OnceLock::new() }
    }

    /// Takes in the next chunk of a lane.
    pub(super) fn chunk(&mut self, lane: LaneId, chunk: &ChunkCover) {
        if self.all {
            return;
        }
        let lane = self.lanes.entry(lane).or_default();
        match (chunk.selected, &mut lane.stretch) {
            (Some(part), Some((_, to))) => *to = part.behind,
            (Some(part), stretch) => {
                let from = part.before.or(lane.last_mark).unwrap_or(Ticks(0));
                *stretch = Some((from, part.behind));
            }
            (None, Some((_, to))) => *to = to.or(chunk.first_mark),
            (None, None) => {}
        }
        lane.last_mark = chunk.last_mark.or(lane.last_mark);
    }

    /// Whether something that is missing there can be of the selection.
    pub(super) fn touches(&self, gap: &Gap) -> bool {
        if self.all || is_everywhere(gap) {
            return true;
        }
        let own = gap.lane.and_then(|lane| self.lanes.get(&lane)).and_then(|lane| lane.stretch);
        let stretch = own.map(|(from, to)| (from, to.unwrap_or(Ticks(u64::MAX)))).or(self.hull());
        // Nothing at all was selected: then what is missing may be all of it.
        stretch.is_none_or(|(from, to)| gap.first <= to && gap.last >= from)
    }

    fn hull(&self) -> Option<(Ticks, Ticks)> {
        *self.hull.get_or_init(|| {
            let stretches = self.lanes.values().filter_map(|lane| lane.stretch);
            let closed = stretches.map(|(from, to)| (from, to.unwrap_or(Ticks(u64::MAX))));
            closed.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        })
    }
}

/// Whether the time of a gap says nothing: damaged metadata may have held the names of records of
/// any time.
fn is_everywhere(gap: &Gap) -> bool {
    let metadata = gap.reason == GapReason::CORRUPT && gap.planes.contains(Planes::RECORDER);
    metadata && gap.lane.is_none()
}

/// Whether evidence of this kind would have been converted. Steps are host time, names are the
/// recorder's; a gap of no plane and no records is of something that held none.
pub(super) const fn is_of_ours(gap: &Gap) -> bool {
    const ELSEWHERE: Planes =
        Planes::LOGICAL_MEMORY.union(Planes::PHYSICAL_MEMORY).union(Planes::DEVICE_TIMING);
    if gap.planes.0 == Planes::NONE.0 {
        return gap.records > 0 || gap.groups > 0;
    }
    !ELSEWHERE.contains(gap.planes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun_formats::{GapClass, Phase};

    fn gap(lane: Option<u16>, first: u64, last: u64) -> Gap {
        Gap {
            class: GapClass::Lost,
            reason: GapReason::OVERRUN,
            lane: lane.map(LaneId),
            first: Ticks(first),
            last: Ticks(last),
            first_ns: 0,
            last_ns: 0,
            records: 1,
            groups: 1,
            planes: Planes::OPERATIONS,
        }
    }

    /// One step on lane 0 with marks at 100 and 200, between marks at 50 and 250.
    fn cover(chunks: &[&[(bool, u64)]]) -> Cover {
        let run = Phase::TRAIN;
        let mut cover = Cover::of(&Selection { step: Some(2), phase: None, run });
        for marks in chunks {
            let mut chunk = ChunkCover::default();
            marks.iter().for_each(|&(selected, at)| chunk.next(selected, Some(Ticks(at))));
            cover.chunk(LaneId(0), &chunk);
        }
        cover
    }

    #[test]
    fn a_gap_counts_between_the_marks_around_a_step_wherever_chunks_end() {
        let marks = [(false, 50), (true, 100), (true, 200), (false, 250), (false, 300)];
        for at in 0..=marks.len() {
            let (first, second) = marks.split_at(at);
            let cover = cover(&[first, second]);
            for (range, expected) in
                [((0, 49), false), ((0, 50), true), ((240, 260), true), ((251, 400), false)]
            {
                assert_eq!(
                    cover.touches(&gap(Some(0), range.0, range.1)),
                    expected,
                    "{at} {range:?}"
                );
                assert_eq!(cover.touches(&gap(Some(7), range.0, range.1)), expected, "other lane");
            }
        }
    }

    #[test]
    fn where_nothing_is_left_of_the_selection_every_gap_counts() {
        assert!(cover(&[]).touches(&gap(Some(0), 0, 1)));
        assert!(cover(&[&[(false, 50)]]).touches(&gap(None, 900, 901)));
    }

    #[test]
    fn a_step_without_an_end_reaches_to_the_end() {
        let cover = cover(&[&[(false, 50), (true, 100)]]);
        assert!(cover.touches(&gap(Some(0), 1 << 60, 1 << 61)));
        assert!(!cover.touches(&gap(Some(0), 0, 10)));
    }

    #[test]
    fn damaged_metadata_counts_at_any_time_and_what_found_no_lane_at_its_own() {
        let cover = cover(&[&[(false, 50), (true, 100), (false, 110)]]);
        let no_lane = |at| Gap { reason: GapReason::NO_LANE, ..gap(None, at, at) };
        assert!(cover.touches(&no_lane(105)) && !cover.touches(&no_lane(900)));
        let names = Gap { reason: GapReason::CORRUPT, planes: Planes::RECORDER, ..no_lane(900) };
        assert!(cover.touches(&names));
    }

    #[test]
    fn planes_that_are_not_converted_do_not_count() {
        let of = |planes| Gap { planes, ..gap(None, 0, 1) };
        assert!(!is_of_ours(&of(Planes::LOGICAL_MEMORY.union(Planes::DEVICE_TIMING))));
        assert!(is_of_ours(&of(Planes::LOGICAL_MEMORY.union(Planes::TENSORS))));
        assert!(is_of_ours(&of(Planes::HOST_TIME)) && is_of_ours(&of(Planes::NONE)));
        assert!(!is_of_ours(&Gap { records: 0, groups: 0, ..of(Planes::NONE) }));
    }
}
