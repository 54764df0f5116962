//! A walk over the groups of a chunk that knows where it is: id and step.

use tmrun_formats::wire::{self, Record, Step, groups};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use super::event::EventId;
use super::phase::Selection;
use crate::scan::{RecordChunk, StepState};

/// A place in a chunk. It can be left and gone on from.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'r> {
    rest: &'r [Record],
    event: EventId,
    state: StepState,
    lane: LaneId,
}

/// A group and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'r> {
    /// At least one record.
    pub(super) group: &'r [Record],
    /// The id of its head.
    pub(super) event: EventId,
    /// The step state of its lane before it.
    pub(super) state: StepState,
    /// What it says, if it is a step mark.
    pub(super) mark: Option<Step>,
}

impl<'r> Cursor<'r> {
    pub(super) fn over(chunk: &RecordChunk<'r>) -> Self {
        Self {
            rest: chunk.records(),
            event: EventId::at(chunk.lane(), chunk.first_sequence()),
            state: chunk.step(),
            lane: chunk.lane(),
        }
    }

    /// The state behind a gap: a lane that lost host-time records may have lost step marks.
    fn doubt(&mut self, gap: &wire::Gap) {
        let lost = gap.reason.class() == GapClass::Lost && gap.reason != GapReason::NO_LANE;
        if lost && gap.planes.contains(Planes::HOST_TIME) && gap.lane == self.lane {
            self.state = self.state.doubted();
        }
    }
}

impl<'r> Iterator for Cursor<'r> {
    type Item = Placed<'r>;

    #[inline]
    fn next(&mut self) -> Option<Placed<'r>> {
        let group = groups(self.rest).next()?;
        let head = group.first()?;
        let mut placed = Placed { group, event: self.event, state: self.state, mark: None };
        self.rest = self.rest.get(group.len()..).unwrap_or_default();
        self.event.advance(group.len());
        if let Some(step) = head.payload::<Step>() {
            placed.mark = Some(step);
            self.state = self.state.after(&head.header(), &step);
        } else if let Some(gap) = head.payload::<wire::Gap>() {
            self.doubt(&gap);
        }
        Some(placed)
    }
}

impl Placed<'_> {
    /// Whether it belongs to what was selected.
    #[inline]
    pub(super) fn is_in(&self, selection: &Selection) -> bool {
        match &self.mark {
            None => selection.covers(self.state),
            Some(mark) => selection.covers_mark(mark),
        }
    }
}
