//! Gradient records: what became of a parameter's gradient.

use tmrun_formats::GradientState as Code;
use tmrun_formats::runtime::{GradientRef, GradientState};
use tmrun_formats::wire::{Gradient, Record, flags};

use super::encode::Put;
use super::event::EventId;
use super::source::{Name, Source};
use super::tally::{Absent, Note, Tally};
use super::text::Text;

/// A gradient that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct GradientFact<'r> {
    root: Name<'r>,
    key: Name<'r>,
    state: GradientState,
    norm: Option<f64>,
}

impl<'r> GradientFact<'r> {
    /// Reads a record; `None`, counted, for a state that the schema has no word for. A norm that
    /// does not go with the state is left out: which of the two is wrong cannot be known, but the
    /// state is what the recorder looked at the gradient for.
    pub(super) fn read(source: &Source<'r>, head: &'r Record, tally: &mut Tally) -> Option<Self> {
        let (header, gradient) = (head.header(), head.payload::<Gradient>()?);
        let state = match gradient.state {
            Code::PRESENT => GradientState::Present,
            Code::MISSING => GradientState::Missing,
            Code::ZERO => GradientState::Zero,
            Code::NON_FINITE => GradientState::NonFinite,
            _ => {
                tally.leave_out(Absent::Gradient);
                return None;
            }
        };
        let given = (header.flags & flags::GRADIENT_NORM != 0).then_some(gradient.norm);
        let norm = given.filter(|&norm| goes_with(state, norm));
        // The norm of a gradient with NaN or infinity in it is that too: nothing is dropped.
        let says_the_same = |norm: f64| state == GradientState::NonFinite && !norm.is_finite();
        if norm.is_none() && given.is_some_and(|norm| !says_the_same(norm)) {
            tally.note(Note::DroppedNorm, 1);
        }
        Some(Self {
            root: source.name(gradient.root, tally),
            key: source.name(header.name, tally),
            state,
            norm,
        })
    }

    pub(super) fn write(
        &self,
        event: &EventId,
        (event_id, step): (&str, Option<u64>),
        put: &mut Put<'_>,
    ) {
        // Readers join facts of one key. Two unnamed parameters are not the same parameter, and the
        // sound one must not hide the other.
        let key = match self.key {
            Name::Missing(0) => Text::unnamed_at(event),
            key => key.text(),
        };
        put.record(&GradientRef {
            event_id,
            root: self.root.text().as_ref(),
            key: key.as_ref(),
            state: self.state,
            step,
            norm: self.norm,
        });
    }
}

fn goes_with(state: GradientState, norm: f64) -> bool {
    match state {
        GradientState::Present => norm.is_finite() && norm != 0.0,
        GradientState::Zero => norm == 0.0,
        GradientState::Missing | GradientState::NonFinite => false,
    }
}
