//! The stack of open steps: a lane's records belong to the innermost.

use tmrun_formats::Phase;

use super::{LaneBlock, add};
use crate::sync::Word;

/// Steps that may be open on a lane at once and be gone back to.
pub(super) const STEPS: usize = if cfg!(all(loom, test)) { 1 } else { 7 };

/// An open step: entry 0 is none.
pub(super) struct OpenStep {
    pub(super) number: Word,
    pub(super) phase: Word,
    pub(super) ended: Word,
}

impl LaneBlock {
    /// The step that is open on the lane, 0 for none.
    pub(crate) fn step(&self) -> u64 {
        self.steps.get(self.steps_open.get() as usize).map_or(0, |step| step.number.get())
    }

    /// A step begins. Returns how deep it is among the steps that are open; 0 when there are too many
    /// to keep, and then the lane stays in the one that it was in.
    pub(crate) fn begin_step(&self, number: u64, phase: Phase) -> usize {
        add(&self.guards, 1);
        let depth = self.steps_open.get() as usize + 1;
        let Some(open) = self.steps.get(depth) else { return 0 };
        open.number.set(number);
        open.phase.set(phase.0.into());
        open.ended.set(0);
        self.steps_open.set(depth as u64);
        depth
    }

    /// The step at this depth ends. Steps may end in any order: one that others were begun in ends
    /// when it does, and the lane is in the innermost one that is still open. Returns it, when a
    /// reader of the marks would not know.
    pub(crate) fn end_step(&self, number: u64, depth: usize) -> Option<(u64, Phase)> {
        self.guards.set(self.guards.get().saturating_sub(1));
        let top = self.steps_open.get() as usize;
        if let Some(ended) = self.steps.get(depth).filter(|_| depth > 0) {
            ended.ended.set(1);
        }
        let mut open = top;
        while open > 0 && self.steps.get(open).is_some_and(|step| step.ended.get() != 0) {
            open -= 1;
        }
        self.steps_open.set(open as u64);
        let step = self.steps.get(open).filter(|_| open > 0)?;
        let goes_on = (step.number.get(), Phase(step.phase.get() as u8));
        (open != top || depth == 0 || goes_on.0 == number).then_some(goes_on)
    }
}
