//! What that is missing concerns a region.

use tmrun_formats::wire::{self, Record};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use super::region::Region;
use crate::scan::{Gap, Recording};

/// Nobody knows which planes.
const ANY: Planes = Planes(u32::MAX);

/// Knows of what is missing whether it may have been evidence of a region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Concern<'r> {
    region: &'r Region,
    promises_memory: bool,
    may_lack_first: bool,
}

impl<'r> Concern<'r> {
    pub(crate) fn of(recording: &Recording<'_>, region: &'r Region) -> Self {
        let contract = recording.meta().contract;
        let promises_memory = contract.is_some_and(|contract| contract.logical_memory > 0);
        let may_lack_first = recording.calibrations().may_lack_first();
        Self { region, promises_memory, may_lack_first }
    }

    pub(crate) fn is_of(&self, gap: &Gap) -> bool {
        self.planes(gap).is_some()
    }

    /// Whether a gap is of a moment of the region.
    pub(crate) fn is_within(&self, gap: &Gap) -> bool {
        self.region.overlaps(gap.first, gap.last)
    }

    /// Whether a slice has to tell of a gap: it is of the region, or why the clock may lack its first
    /// readings, so that the slice's does not count from the first that there is.
    pub(super) fn is_told_in_a_slice(&self, gap: &Gap) -> bool {
        self.is_of(gap) || self.may_lack_first && gap.may_be_metadata()
    }

    /// The planes of the region that a gap may be of; `None` where it is of none. What is missing before
    /// it may have been an allocation of what is live, but for what a slice was made without; and what was
    /// lost, a change of the level, which is in force in it.
    pub(crate) fn planes(&self, gap: &Gap) -> Option<Planes> {
        if self.is_within(gap) {
            return Some(if gap.planes == Planes::NONE { ANY } else { gap.planes });
        }
        if gap.first >= self.region.extent.0 || gap.reason == GapReason::SLICED {
            return None;
        }
        let may_be_recorders = match gap.lane {
            Some(lane) => lane == LaneId::RECORDER,
            // Metadata is of no lane, and of the recorder's plane alone.
            None => gap.planes.contains(Planes::HOST_TIME),
        };
        let is_lost = gap.class == GapClass::Lost;
        if is_lost && may_be_recorders && gap.planes.contains(Planes::RECORDER) {
            return Some(ANY);
        }
        let is_memory = gap.planes.contains(Planes::LOGICAL_MEMORY);
        (self.promises_memory && is_memory).then_some(Planes::LOGICAL_MEMORY)
    }

    /// Whether the run promised anything of memory.
    pub(crate) const fn promises_memory(&self) -> bool {
        self.promises_memory
    }

    /// Whether a record tells of such a gap.
    pub(super) fn is_told_by(&self, record: &Record) -> bool {
        let gap = record.payload::<wire::Gap>();
        gap.is_some_and(|gap| self.is_told_in_a_slice(&Gap::recorded(&gap)))
    }
}
