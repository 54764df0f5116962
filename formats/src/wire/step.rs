//! Which step is open on a lane.

use super::{Gap, Record, RecordHeader, Step, flags};
use crate::{GapClass, LaneId, Phase, Planes};

/// A step that is open on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepMark {
    /// Its number.
    pub number: u64,
    /// What it does; 0 stands for the run's phase.
    pub phase: Phase,
    /// The micro-batch that is open in it.
    pub micro_batch: Option<u32>,
    /// Whether the step stays open when the micro-batch ends.
    pub within_step: bool,
}

/// The step state of a lane at one of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepState {
    /// The step that was open, as far as step marks survive.
    pub open: Option<StepMark>,
    /// Whether no step mark can have been lost since the last one that says which step is open.
    pub sure: bool,
}

impl StepState {
    /// A lane's state before its first record.
    pub const START: Self = Self { open: None, sure: true };

    /// The state behind a step mark.
    pub fn after(self, header: &RecordHeader, step: &Step) -> Self {
        self.behind_mark(StepMark::of(header, step), header.flags & flags::STEP_END != 0)
    }

    /// The state behind the beginning or the end of what a mark is of. A beginning leaves no doubt. An end
    /// says that the step that it closes was open, and of any other one nothing.
    #[must_use]
    pub fn behind_mark(self, mark: StepMark, ends: bool) -> Self {
        let open = match (mark.micro_batch.is_some(), ends) {
            (false, false) => Some(mark),
            (false, true) => StepMark::close(self.open, mark.number),
            (true, false) => Some(mark.enter(self.open)),
            (true, true) => StepMark::leave(self.open, mark.number),
        };
        let is_of_open = self.open.is_some_and(|open| open.number == mark.number);
        Self { open, sure: self.sure || !ends || is_of_open }
    }

    /// The state behind a record of `lane`, whatever its kind.
    pub fn behind(self, record: &Record, lane: LaneId) -> Self {
        if let Some(step) = record.payload::<Step>() {
            return self.after(&record.header(), &step);
        }
        match record.payload::<Gap>() {
            Some(gap) if gap.lane == lane && gap.may_hold_marks() => self.doubted(),
            _ => self,
        }
    }

    /// The state behind a place where step marks may have been lost.
    #[must_use]
    pub const fn doubted(self) -> Self {
        Self { open: self.open, sure: false }
    }
}

impl StepMark {
    /// The step that a mark is of, with nothing around it.
    pub fn of(header: &RecordHeader, step: &Step) -> Self {
        let micro_batch = (header.flags & flags::STEP_MICRO_BATCH != 0).then_some(step.micro_batch);
        Self { number: step.number, phase: step.phase, micro_batch, within_step: false }
    }

    /// The state in this micro-batch, which begins while `open` is.
    #[must_use]
    pub fn enter(self, open: Option<Self>) -> Self {
        let within_step = open.is_some_and(|open| {
            open.number == self.number && (open.micro_batch.is_none() || open.within_step)
        });
        Self { within_step, ..self }
    }

    /// The state behind the end of step `number`: another one stays open. (A program that assigns
    /// the next step to the variable of the last begins it before it ends the last.)
    pub fn close(open: Option<Self>, number: u64) -> Option<Self> {
        open.filter(|open| open.number != number)
    }

    /// The state behind the end of a micro-batch of step `number`.
    pub fn leave(open: Option<Self>, number: u64) -> Option<Self> {
        let open = open.filter(|open| open.number == number)?;
        (open.micro_batch.is_none() || open.within_step).then_some(Self {
            micro_batch: None,
            within_step: false,
            ..open
        })
    }
}

impl Gap {
    /// Whether step marks may be among what was lost.
    pub fn may_hold_marks(&self) -> bool {
        self.reason.class() == GapClass::Lost && self.planes.contains(Planes::HOST_TIME)
    }
}
