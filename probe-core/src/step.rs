//! Steps: which training update or inference invocation a lane's records belong to.

use tmrun_formats::wire::{Step, flags};
use tmrun_formats::{Level, NameId, Phase, Planes};

use crate::clock::Clock;
use crate::record::Recorder;
use crate::shared::Missed;

/// An open step. It ends when the guard is dropped.
///
/// It stays on the thread that began it:
///
/// ```compile_fail,E0277
/// # use tmrun_probe_core::probe;
/// probe!(static PROBE: lanes = 1, slots = 64);
/// let step = PROBE.step(1);
/// std::thread::spawn(move || drop(step));
/// ```
#[must_use = "a step ends when its guard is dropped"]
pub struct StepGuard<'l, C: Clock> {
    recorder: Option<Recorder<'l, C>>,
    /// Where its marks are counted when there is no lane for them.
    missed: Option<&'l Missed>,
    open: OpenStep,
}

/// An open step, for whoever says where and when it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenStep {
    step: Step,
    /// How deep it is among the open steps of its lane.
    depth: usize,
    flags: u16,
}

impl OpenStep {
    const NONE: Self =
        Self { step: Step { number: 0, micro_batch: 0, phase: Phase(0) }, depth: 0, flags: 0 };

    /// A step begins on this lane.
    pub(crate) fn begin<C: Clock>(recorder: Recorder<'_, C>, step: Step, flags: u16) -> Self {
        mark(recorder, &step, flags);
        let depth = recorder.block().begin_step(step.number, step.phase);
        Self { step, depth, flags }
    }

    /// It ends, on the same lane.
    pub(crate) fn end<C: Clock>(&self, recorder: Recorder<'_, C>) {
        mark(recorder, &self.step, self.flags | flags::STEP_END);
        let goes_on = recorder.block().end_step(self.step.number, self.depth);
        // Around a micro-batch is its own step, which never stopped.
        let goes_on = goes_on.filter(|_| self.flags & flags::STEP_MICRO_BATCH == 0);
        if let Some((number, phase)) = goes_on {
            mark(recorder, &Step { number, micro_batch: 0, phase }, flags::STEP_RESUMED);
        }
    }
}

impl<'l, C: Clock> StepGuard<'l, C> {
    pub(crate) const fn inert() -> Self {
        Self { recorder: None, missed: None, open: OpenStep::NONE }
    }

    /// A step without a lane: both its marks are lost.
    pub(crate) fn missed(missed: &'l Missed) -> Self {
        missed.count(Planes::HOST_TIME);
        Self { missed: Some(missed), ..Self::inert() }
    }

    pub(crate) fn open(recorder: Recorder<'l, C>, number: u64, phase: Phase) -> Self {
        Self::begin(recorder, Step { number, micro_batch: 0, phase }, 0)
    }

    fn begin(recorder: Recorder<'l, C>, step: Step, flags: u16) -> Self {
        let open = OpenStep::begin(recorder, step, flags);
        Self { recorder: Some(recorder), missed: None, open }
    }

    /// The step's number.
    pub const fn number(&self) -> u64 {
        self.open.step.number
    }

    /// Opens a micro-batch within the step.
    pub fn micro_batch(&self, micro_batch: u32) -> StepGuard<'_, C> {
        match (self.recorder, self.missed) {
            (Some(recorder), _) => {
                let step = Step { micro_batch, ..self.open.step };
                StepGuard::begin(recorder, step, flags::STEP_MICRO_BATCH)
            }
            (None, Some(missed)) => StepGuard::missed(missed),
            (None, None) => StepGuard::inert(),
        }
    }
}

fn mark<C: Clock>(recorder: Recorder<'_, C>, step: &Step, flags: u16) {
    let mut header = recorder.header::<Step>(C::ticks(), NameId::NONE, Level::PULSE);
    header.flags = flags;
    recorder.store(header, step);
}

impl<C: Clock> Drop for StepGuard<'_, C> {
    /// Small enough to be inlined everywhere: so one that is compiled out is no code.
    #[inline(always)]
    fn drop(&mut self) {
        if self.recorder.is_some() || self.missed.is_some() {
            self.end();
        }
    }
}

impl<C: Clock> StepGuard<'_, C> {
    #[inline(never)]
    fn end(&self) {
        if let Some(recorder) = self.recorder {
            self.open.end(recorder);
        } else if let Some(missed) = self.missed {
            missed.count(Planes::HOST_TIME);
        }
    }
}

impl<C: Clock> core::fmt::Debug for StepGuard<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StepGuard").field("number", &self.number()).finish_non_exhaustive()
    }
}
