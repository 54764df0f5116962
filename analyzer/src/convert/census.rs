//! The first pass: what there is to convert, and what of it has no place in the output.

use tmrun_formats::LaneId;
use tmrun_formats::runtime::Section;

use super::batch::Slots;
use super::cover::{ChunkCover, Cover};
use super::cursor::Cursor;
use super::fact::{self, Fact, Sections};
use super::phase::{PhaseSet, Selection};
use super::source::Source;
use super::tally::{Absent, Note, Tally};
use crate::scan::{Block, RecordChunk, Recording, StepState};

/// What a recording has for a selection.
#[derive(Debug, Clone)]
pub(super) struct Census {
    pub(super) tally: Tally,
    /// Observations by collection.
    pub(super) observations: [u64; Section::ALL.len()],
    /// The collections that each block has anything for, in file order.
    pub(super) blocks: Vec<Sections>,
    pub(super) cover: Cover,
    /// The phases of the selected step, or of all, whichever phase is selected.
    pub(super) phases: PhaseSet,
    /// The least and the greatest step of the selected phase, whichever step is selected.
    pub(super) steps: Option<(u64, u64)>,
    /// Whether the selected step is among them.
    pub(super) has_step: bool,
}

impl Census {
    pub(super) fn take<'r>(
        recording: &'r Recording<'r>,
        source: &Source<'r>,
        selection: &Selection,
    ) -> Self {
        let mut census = Self {
            tally: Tally::default(),
            observations: [0; Section::ALL.len()],
            blocks: Vec::with_capacity(recording.blocks().len()),
            cover: Cover::of(selection),
            phases: PhaseSet::default(),
            steps: None,
            has_step: false,
        };
        let count = |block: &'r Block, found: &mut Found| {
            found.reset();
            for chunk in recording.records_in(block) {
                found.look(&chunk, source, selection);
            }
        };
        let mut blocks = recording.blocks().iter();
        let merged: Result<(), core::convert::Infallible> =
            Slots::default().in_order(&mut blocks, count, |_, found| {
                census.merge(found);
                Ok(())
            });
        let Ok(()) = merged;
        census
    }

    fn merge(&mut self, found: &Found) {
        self.tally.merge(&found.tally);
        self.blocks.push(found.sections);
        for (lane, cover) in &found.covers {
            self.cover.chunk(*lane, cover);
        }
        self.phases.merge(found.phases);
        self.has_step |= found.has_step;
        for (sum, n) in self.observations.iter_mut().zip(found.observations) {
            *sum = sum.saturating_add(n);
        }
        if let Some((first, last)) = found.steps {
            add_steps(&mut self.steps, first);
            add_steps(&mut self.steps, last);
        }
    }
}

/// What one block has.
#[derive(Debug, Default)]
struct Found {
    tally: Tally,
    observations: [u64; Section::ALL.len()],
    sections: Sections,
    /// By chunk, in file order; none where everything is selected.
    covers: Vec<(LaneId, ChunkCover)>,
    phases: PhaseSet,
    steps: Option<(u64, u64)>,
    has_step: bool,
}

impl Found {
    fn reset(&mut self) {
        let mut covers = core::mem::take(&mut self.covers);
        covers.clear();
        *self = Self { covers, ..Self::default() };
    }

    fn look<'r>(&mut self, chunk: &RecordChunk<'r>, source: &Source<'r>, selection: &Selection) {
        let all_phases = Selection { phase: None, ..*selection };
        let mut cursor = Cursor::over_all(chunk);
        let mut cover = ChunkCover::default();
        while let Some(placed) = cursor.next() {
            let selected = placed.is_in(selection);
            if let Some(mark) = &placed.mark {
                let phase = selection.phase_of_mark(mark);
                if selection.has_phase(phase) {
                    add_steps(&mut self.steps, mark.number);
                }
                if all_phases.covers_mark(mark) {
                    self.phases.add(phase);
                }
                self.has_step |= selected;
            }
            let head = placed.group.first().map(|head| head.header().ticks);
            cover.next(selected, head.filter(|_| placed.mark.is_some()));
            if !selected {
                continue;
            }
            let (found, state) = (&mut *self, placed.state);
            let mut tally = core::mem::take(&mut found.tally);
            fact::read(source, placed.group, Sections::ALL, &mut tally, |_, fact, tally| {
                found.phases.add(selection.phase_of(state));
                found.count(&fact, state, source, tally);
            });
            self.tally = tally;
        }
        if !selection.is_all() {
            self.covers.push((chunk.lane(), cover));
        }
    }

    fn count(&mut self, fact: &Fact<'_>, state: StepState, source: &Source<'_>, tally: &mut Tally) {
        let section = fact.section();
        self.sections.add(section);
        if let Some(count) = self.observations.get_mut(section as usize) {
            *count = count.saturating_add(1);
        }
        if !state.sure {
            tally.note(Note::DoubtfulStep, 1);
        }
        if state.open.is_some() && !source.schema.has_steps() {
            match section {
                Section::Tensors => tally.leave_out(Absent::TensorStep),
                Section::Operations => tally.leave_out(Absent::OperationStep),
                Section::Gradients => tally.leave_out(Absent::GradientStep),
                Section::Values | Section::EdgeTimings => {}
            }
        }
    }
}

fn add_steps(steps: &mut Option<(u64, u64)>, number: u64) {
    let (first, last) = steps.unwrap_or((number, number));
    *steps = Some((first.min(number), last.max(number)));
}
