//! A look at the records that are drained: which steps are left out, and what is worth keeping. It
//! costs the producers nothing, and the drain only when it is asked for.

use tmrun_formats::GradientState;
use tmrun_formats::wire::{Gradient, Kind, Range, Record, Scalar, Stats, Step, StepState, flags};

use super::Drain;
use super::take::Run;
use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::sink::Sink;

/// What the drain looks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// The steps are followed, because the recording may go on in another file.
    pub(crate) steps: bool,
    /// Of the steps from this number on every so manieth is kept.
    pub(crate) every: Option<(u64, u64)>,
    pub(crate) watch: Watch,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Watch {
    /// A step that takes longer than so many ticks.
    pub(crate) longest: Option<u64>,
    /// A step that takes longer than so many times the usual.
    pub(crate) times: Option<u64>,
    /// A scalar, a statistic or a gradient that is not finite.
    pub(crate) not_finite: bool,
    /// It came.
    fired: bool,
    /// Sixteen times what a step usually takes, and how many steps there were.
    usual: u64,
    steps: u64,
}

/// Steps before it is known what is usual.
const LEARN: u64 = 8;

impl Look {
    pub(super) fn is_needed(&self) -> bool {
        self.steps || self.every.is_some() || self.watch.is_needed()
    }

    /// Whether the group of this head stays in the file: a step is left out with both its marks, and
    /// what tells of losses never is.
    fn keeps(&self, before: StepState, after: StepState, head: &Record) -> bool {
        let Some((first, every)) = self.every else { return true };
        let of_kept = |state: StepState| {
            let number = state.open.map(|open| open.number);
            number.is_none_or(|number| number.abs_diff(first).is_multiple_of(every.max(1)))
        };
        let kind = Kind::from_code(head.header().kind);
        matches!(kind, Some(Kind::Gap | Kind::Control)) || (of_kept(before) && of_kept(after))
    }
}

impl Watch {
    pub(super) fn is_needed(&self) -> bool {
        self.not_finite || self.longest.is_some() || self.times.is_some()
    }

    /// Whether it came since the last call.
    #[cfg(feature = "std")]
    pub(crate) fn take_fired(&mut self) -> bool {
        core::mem::take(&mut self.fired)
    }

    fn see(&mut self, record: &Record, block: &LaneBlock) {
        if let Some(step) = record.payload::<Step>() {
            self.step(record, &step, block);
        } else if self.not_finite {
            self.fired |= not_finite(record);
        }
    }

    fn step(&mut self, record: &Record, step: &Step, block: &LaneBlock) {
        let header = record.header();
        if header.flags & (flags::STEP_MICRO_BATCH | flags::STEP_RESUMED) != 0 {
            return;
        }
        if header.flags & flags::STEP_END == 0 {
            return block.step_began(step.number, header.ticks);
        }
        let Some(began) = block.when_step_began(step.number) else { return };
        let took = header.ticks.since(began);
        let usual = self.usual / 16;
        let slow = self.times.filter(|_| self.steps >= LEARN);
        self.fired |= slow.is_some_and(|times| took > usual.saturating_mul(times));
        self.fired |= self.longest.is_some_and(|longest| took > longest);
        // The mean at first, and then one that forgets: of so many steps or of sixteen.
        self.steps = self.steps.saturating_add(1);
        let part = self.steps.min(16);
        let sum = self.usual - self.usual / part;
        self.usual = sum.saturating_add(took.saturating_mul(16) / part);
    }
}

fn not_finite(record: &Record) -> bool {
    if let Some(scalar) = record.payload::<Scalar>() {
        return !scalar.value.is_finite();
    }
    if let Some(stats) = record.payload::<Stats>() {
        // Of finite elements, too, a sum of squares may be infinite.
        let all = [stats.rms, stats.abs_max, stats.mean];
        return stats.nan > 0 || stats.inf > 0 || !all.iter().all(|value| value.is_finite());
    }
    if let Some(gradient) = record.payload::<Gradient>() {
        return gradient.state == GradientState::NON_FINITE || !gradient.norm.is_finite();
    }
    record.payload::<Range>().is_some_and(|range| range.non_finite > 0)
}

impl<C: Clock, S: Sink> Drain<'_, C, S> {
    /// What the drain looks for.
    #[cfg_attr(
        not(feature = "std"),
        allow(dead_code, reason = "the recorder's thread asks for it")
    )]
    pub(crate) fn look(&mut self) -> &mut Look {
        &mut self.look
    }

    /// Writes a run of records but for what is left out of it.
    pub(super) fn look_at(&mut self, run: Run<'_>) -> Result<(), S::Error> {
        let (lane, block) = (run.lane, run.block);
        let mut result = Ok(());
        let mut state = block.step_state();
        let (mut from, mut from_state, mut keep) = (0, state, true);
        for (at, record) in run.records.into_iter().flatten().enumerate() {
            self.look.watch.see(record, block);
            if record.continues() {
                continue;
            }
            let after = state.behind(record, lane);
            let kept = self.look.keeps(state, after, record);
            if kept != keep {
                result = result.and(self.write_or_leave(run.cut(from, at), from_state, keep));
                (from, from_state, keep) = (at, state, kept);
            }
            state = after;
        }
        let rest = run.cut(from, usize::MAX);
        result = result.and(self.write_or_leave(rest, from_state, keep));
        block.set_step_state(state);
        result
    }

    fn write_or_leave(
        &mut self,
        run: Run<'_>,
        state: StepState,
        keep: bool,
    ) -> Result<(), S::Error> {
        let records = run.records[0].len() + run.records[1].len();
        if records == 0 {
            return Ok(());
        }
        if keep || self.out.failed() {
            return self.write_run(run, Some(state));
        }
        let records = records as u64;
        run.block.leave_out(run.sequence, records);
        self.left_out = self.left_out.saturating_add(records);
        Ok(())
    }
}

impl<'r> Run<'r> {
    /// The records from one index to another.
    fn cut(&self, from: usize, to: usize) -> Self {
        let [first, second] = self.records;
        let part = |slice: &'r [Record], from: usize, to: usize| {
            let to = to.min(slice.len());
            slice.get(from.min(to)..to).unwrap_or_default()
        };
        let behind = first.len();
        let records = [
            part(first, from, to),
            part(second, from.saturating_sub(behind), to.saturating_sub(behind)),
        ];
        Self { sequence: self.sequence.wrapping_add(from as u64), records, ..*self }
    }
}
