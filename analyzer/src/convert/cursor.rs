//! A walk over the groups of a chunk that knows where it is: id and step.

use tmrun_formats::wire::{self, Kind, Record, Step, groups};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use super::event::EventId;
use super::fact::{self, Sections};
use super::phase::Selection;
use crate::scan::{RecordChunk, StepState};

/// A place in a chunk. It can be left and gone on from.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'r> {
    records: &'r [Record],
    kinds: Kinds,
    /// The head of the group that was handed out last, and what comes behind it.
    at: usize,
    next: usize,
    /// The id of the record at `event_at`. It is brought forward only when it is asked for.
    event: EventId,
    event_at: usize,
    state: StepState,
    lane: LaneId,
}

/// A group and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'r> {
    /// At least one record.
    pub(super) group: &'r [Record],
    /// The step state of its lane before it.
    pub(super) state: StepState,
    /// What it says, if it is a step mark.
    pub(super) mark: Option<Step>,
}

/// Which records are heads of groups that matter. Those that only continue others are none; step
/// marks and gaps always are, because the steps of the others depend on them.
#[derive(Debug, Clone, Copy)]
struct Kinds(u64);

impl Kinds {
    const ALL: Self = Self(!Self::CONTINUATIONS);
    const CONTINUATIONS: u64 = Self::bit(Kind::OpInput as u8)
        | Self::bit(Kind::Shape as u8)
        | Self::bit(Kind::Stats as u8);

    fn of(sections: Sections) -> Self {
        let heads = Kind::ALL.iter().filter(|&&kind| sections.meets(fact::of_kind(kind)));
        let marks = Self::bit(Kind::Step as u8) | Self::bit(Kind::Gap as u8);
        Self(heads.fold(marks, |bits, &kind| bits | Self::bit(kind as u8)))
    }

    /// All codes from 63 on share a bit; this version knows none of them.
    const fn bit(code: u8) -> u64 {
        1_u64.wrapping_shl(if code < 63 { code as u32 } else { 63 })
    }

    #[inline(always)]
    fn has(self, record: &Record) -> bool {
        self.0 & Self::bit(record.header().kind) != 0
    }
}

impl<'r> Cursor<'r> {
    /// Over all groups.
    pub(super) fn over_all(chunk: &RecordChunk<'r>) -> Self {
        Self::new(chunk, Kinds::ALL)
    }

    /// Over the groups that can have anything for these collections.
    pub(super) fn over(chunk: &RecordChunk<'r>, sections: Sections) -> Self {
        Self::new(chunk, Kinds::of(sections))
    }

    fn new(chunk: &RecordChunk<'r>, kinds: Kinds) -> Self {
        Self {
            records: chunk.records(),
            kinds,
            at: 0,
            next: 0,
            event: EventId::at(chunk.lane(), chunk.first_sequence()),
            event_at: 0,
            state: chunk.step(),
            lane: chunk.lane(),
        }
    }

    /// The id of the record at this place in the group that was handed out last.
    #[inline]
    pub(super) fn event(&mut self, place: usize) -> EventId {
        self.event.advance(self.at.saturating_sub(self.event_at));
        self.event_at = self.at;
        let mut event = self.event;
        event.advance(place);
        event
    }

    /// The next group that matters.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Placed<'r>> {
        let rest = self.records.get(self.next..)?;
        let skipped = rest.iter().position(|record| self.kinds.has(record))?;
        let group = groups(rest.get(skipped..)?).next()?;
        let head = group.first()?;
        self.at = self.next.saturating_add(skipped);
        self.next = self.at.saturating_add(group.len());
        let mut placed = Placed { group, state: self.state, mark: None };
        match head.kind() {
            Some(Kind::Step) => {
                placed.mark = head.payload();
                self.mark(head, placed.mark);
            }
            Some(Kind::Gap) => self.doubt(head),
            _ => {}
        }
        Some(placed)
    }

    #[inline(never)]
    fn mark(&mut self, head: &Record, mark: Option<Step>) {
        if let Some(step) = mark {
            self.state = self.state.after(&head.header(), &step);
        }
    }

    /// The state behind a gap: a lane that lost host-time records may have lost step marks.
    #[cold]
    fn doubt(&mut self, head: &Record) {
        let Some(gap) = head.payload::<wire::Gap>() else { return };
        let lost = gap.reason.class() == GapClass::Lost && gap.reason != GapReason::NO_LANE;
        if lost && gap.planes.contains(Planes::HOST_TIME) && gap.lane == self.lane {
            self.state = self.state.doubted();
        }
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
