//! Steps: which training update or inference invocation a lane's records belong to.

use tmrun_formats::wire::{Step, flags};
use tmrun_formats::{Level, NameId, Phase};

use crate::clock::Clock;
use crate::lane::{LaneBlock, add};
use crate::record::Recorder;

/// An open step. It ends when the guard is dropped.
#[must_use = "a step ends when its guard is dropped"]
pub struct StepGuard<'l, C: Clock> {
    recorder: Option<Recorder<'l, C>>,
    step: Step,
    /// The step that was open before.
    outer: u64,
    flags: u16,
}

impl<'l, C: Clock> StepGuard<'l, C> {
    pub(crate) const fn inert() -> Self {
        let step = Step { number: 0, micro_batch: 0, phase: Phase(0) };
        Self { recorder: None, step, outer: 0, flags: 0 }
    }

    pub(crate) fn open(recorder: Recorder<'l, C>, number: u64, phase: Phase) -> Self {
        Self::begin(recorder, Step { number, micro_batch: 0, phase }, 0)
    }

    fn begin(recorder: Recorder<'l, C>, step: Step, flags: u16) -> Self {
        let block = recorder.block();
        let guard = Self { recorder: Some(recorder), step, outer: block.step(), flags };
        guard.mark(recorder, 0);
        block.set_step(step.number);
        add(&block.guards, 1);
        guard
    }

    fn mark(&self, recorder: Recorder<'l, C>, end: u16) {
        let mut header = recorder.header::<Step>(C::ticks(), NameId::NONE, Level::PULSE);
        header.flags = self.flags | end;
        recorder.store(header, &self.step);
    }

    /// The step's number.
    pub const fn number(&self) -> u64 {
        self.step.number
    }

    /// Opens a micro-batch within the step.
    pub fn micro_batch(&self, micro_batch: u32) -> StepGuard<'_, C> {
        match self.recorder {
            Some(recorder) => {
                let step = Step { micro_batch, ..self.step };
                StepGuard::begin(recorder, step, flags::STEP_MICRO_BATCH)
            }
            None => StepGuard::inert(),
        }
    }
}

impl<C: Clock> Drop for StepGuard<'_, C> {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder {
            self.mark(recorder, flags::STEP_END);
            let block: &LaneBlock = recorder.block();
            block.set_step(self.outer);
            block.guards.set(block.guards.get().saturating_sub(1));
        }
    }
}

impl<C: Clock> core::fmt::Debug for StepGuard<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StepGuard").field("number", &self.step.number).finish_non_exhaustive()
    }
}
