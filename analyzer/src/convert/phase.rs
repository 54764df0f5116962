//! Phases: of the run, of a step, and of what was chosen.

use core::fmt;

use tmrun_formats::Phase;
use tmrun_formats::wire::Step;

use crate::scan::StepState;

/// What a phase is called; one that this version does not know is `unknown`.
pub(super) const fn phase_name(phase: Phase) -> &'static str {
    match phase.name() {
        Some(name) => name,
        None => "unknown",
    }
}

/// Some of the phases; all that this version does not know are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseSet {
    train: bool,
    infer: bool,
    unknown: bool,
}

impl PhaseSet {
    pub(super) const fn add(&mut self, phase: Phase) {
        match phase {
            Phase::TRAIN => self.train = true,
            Phase::INFER => self.infer = true,
            _ => self.unknown = true,
        }
    }

    pub(super) const fn merge(&mut self, other: Self) {
        self.train |= other.train;
        self.infer |= other.infer;
        self.unknown |= other.unknown;
    }

    pub(super) const fn has(self, phase: Phase) -> bool {
        match phase {
            Phase::TRAIN => self.train,
            Phase::INFER => self.infer,
            _ => self.unknown,
        }
    }

    pub(super) fn len(self) -> usize {
        self.iter().count()
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Phase> {
        [Phase::TRAIN, Phase::INFER, Phase(0)].into_iter().filter(move |&phase| self.has(phase))
    }
}

impl fmt::Display for PhaseSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, phase) in self.iter().enumerate() {
            f.write_str(if i > 0 { " and " } else { "" })?;
            f.write_str(phase_name(phase))?;
        }
        if self.len() == 0 { f.write_str("none") } else { Ok(()) }
    }
}

/// The part of a recording that is converted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection {
    pub(super) step: Option<u64>,
    pub(super) phase: Option<Phase>,
    /// What a step is that does not say, and what is in no step.
    pub(super) run: Phase,
}

impl Selection {
    /// Whether it is the whole recording.
    pub(super) const fn is_all(&self) -> bool {
        self.step.is_none() && self.phase.is_none()
    }

    /// The phase of a record in this state.
    pub(super) fn phase_of(&self, state: StepState) -> Phase {
        state.open.map_or(self.run, |open| self.or_run(open.phase))
    }

    /// The phase of a step mark.
    pub(super) const fn phase_of_mark(&self, mark: &Step) -> Phase {
        self.or_run(mark.phase)
    }

    const fn or_run(&self, phase: Phase) -> Phase {
        if phase.0 == 0 { self.run } else { phase }
    }

    /// Whether a record in this state belongs to it.
    #[inline]
    pub(super) fn covers(&self, state: StepState) -> bool {
        self.is_all()
            || (self.step.is_none_or(|step| state.open.is_some_and(|open| open.number == step))
                && self.has_phase(self.phase_of(state)))
    }

    /// Whether a step mark does: it belongs to the step that it begins or ends.
    pub(super) fn covers_mark(&self, mark: &Step) -> bool {
        self.step.is_none_or(|step| mark.number == step) && self.has_phase(self.phase_of_mark(mark))
    }

    /// Whether this phase was asked for, or none in particular.
    pub(super) fn has_phase(&self, phase: Phase) -> bool {
        self.phase.is_none_or(|asked| asked == phase)
    }
}
