//! From a group of records to the observations in it: the one place that decides what becomes what.

use tmrun_formats::runtime::Section;
use tmrun_formats::wire::{Kind, Range, Record, Scalar, Stats, flags};

use super::edge::EdgeFact;
use super::gradient::GradientFact;
use super::operation::OperationFact;
use super::source::Source;
use super::tally::{Absent, Tally};
use super::tensor::TensorFact;
use super::value::ValueFact;

/// An observation, decided upon and not yet written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fact<'r> {
    Tensor(TensorFact<'r>),
    Operation(OperationFact<'r>),
    Gradient(GradientFact<'r>),
    Value(ValueFact<'r>),
    Edge(EdgeFact<'r>),
}

impl Fact<'_> {
    pub(super) const fn section(&self) -> Section {
        match self {
            Self::Tensor(_) => Section::Tensors,
            Self::Operation(_) => Section::Operations,
            Self::Gradient(_) => Section::Gradients,
            Self::Value(_) => Section::Values,
            Self::Edge(_) => Section::EdgeTimings,
        }
    }
}

/// A set of collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sections(u8);

impl Sections {
    pub(super) const ALL: Self = Self(u8::MAX);

    pub(super) const fn only(section: Section) -> Self {
        Self(1_u8.wrapping_shl(section as u32))
    }

    pub(super) const fn has(self, section: Section) -> bool {
        self.0 & Self::only(section).0 != 0
    }

    pub(super) const fn add(&mut self, section: Section) {
        self.0 |= Self::only(section).0;
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The collections that a group with a head of this kind can have anything for.
pub(super) fn of_kind(kind: Kind) -> Sections {
    let mut sections = Sections::default();
    match kind {
        Kind::Tensor => {
            sections.add(Section::Tensors);
            sections.add(Section::Values);
        }
        Kind::Op => sections.add(Section::Operations),
        Kind::Gradient => sections.add(Section::Gradients),
        Kind::Range | Kind::Scalar => sections.add(Section::Values),
        Kind::Edge => sections.add(Section::EdgeTimings),
        _ => {}
    }
    sections
}

/// Hands each observation of a group to `each`, with the place of its record in the group, and
/// counts what is left out. Of collections that are not wanted nothing is handed out, and they may
/// be counted or not.
#[inline]
pub(super) fn read<'r>(
    source: &Source<'r>,
    group: &'r [Record],
    wanted: Sections,
    tally: &mut Tally,
    mut each: impl FnMut(usize, Fact<'r>, &mut Tally),
) {
    let Some(head) = group.first() else { return };
    let Some(kind) = head.kind() else { return tally.leave_out(Absent::Unknown) };
    match kind {
        Kind::Span if head.header().flags & flags::SPAN_SEGMENT != 0 => {
            tally.leave_out(Absent::Segment);
        }
        Kind::Tensor => {
            let context = head.header().flags & flags::TENSOR_CONTEXT != 0;
            if !context
                && wanted.has(Section::Tensors)
                && let Some(fact) = TensorFact::read(source, group, tally)
            {
                each(0, Fact::Tensor(fact), tally);
            }
            if wanted.has(Section::Values) {
                described(source, group, context, tally, each);
            }
        }
        Kind::Op if wanted.has(Section::Operations) => {
            if let Some(fact) = OperationFact::read(source, group, tally) {
                each(0, Fact::Operation(fact), tally);
            }
        }
        Kind::Gradient if wanted.has(Section::Gradients) => {
            if let Some(fact) = GradientFact::read(source, head, tally) {
                each(0, Fact::Gradient(fact), tally);
            }
        }
        Kind::Range | Kind::Scalar if wanted.has(Section::Values) => {
            ranges(source, group, 0, tally, each);
        }
        Kind::Edge if wanted.has(Section::EdgeTimings) => {
            if let Some(fact) = EdgeFact::read(source, head, tally) {
                each(0, Fact::Edge(fact), tally);
            }
        }
        _ => absent(kind).into_iter().for_each(|what| tally.leave_out(what)),
    }
}

/// The statistics behind a tensor.
fn described<'r>(
    source: &Source<'r>,
    group: &'r [Record],
    context: bool,
    tally: &mut Tally,
    each: impl FnMut(usize, Fact<'r>, &mut Tally),
) {
    if let Some(at) = group.iter().position(|record| record.kind() == Some(Kind::Range)) {
        ranges(source, group, at, tally, each);
    } else if group.iter().any(|record| record.payload::<Stats>().is_some()) {
        tally.leave_out(Absent::Stats);
    } else if context {
        tally.leave_out(Absent::Context);
    }
}

/// The value range of the record at this place.
fn ranges<'r>(
    source: &Source<'r>,
    group: &'r [Record],
    at: usize,
    tally: &mut Tally,
    mut each: impl FnMut(usize, Fact<'r>, &mut Tally),
) {
    if !source.schema.has(Section::Values) {
        return tally.leave_out(Absent::Value);
    }
    let Some(record) = group.get(at) else { return };
    let fact = match (record.payload::<Range>(), record.payload::<Scalar>()) {
        (Some(range), _) => ValueFact::range(source, group, &range, tally),
        (None, Some(scalar)) => Some(ValueFact::scalar(source, record, scalar, tally)),
        (None, None) => None,
    };
    if let Some(fact) = fact {
        each(at, Fact::Value(fact), tally);
    }
}

/// What the schema lacks for a record of this kind. (Gap records are listed as gaps.)
const fn absent(kind: Kind) -> Option<Absent> {
    Some(match kind {
        Kind::Span => Absent::Span,
        Kind::Step => Absent::Step,
        Kind::Alloc => Absent::Alloc,
        Kind::Free => Absent::Free,
        Kind::DeviceMemory => Absent::DeviceMemory,
        Kind::DeviceInterval => Absent::DeviceInterval,
        Kind::Level => Absent::Level,
        Kind::Control => Absent::Control,
        Kind::Hit => Absent::Hit,
        Kind::ClockSync => Absent::ClockSync,
        Kind::Gap => return None,
        // Continuations never stand alone in an intact chunk, and the others are not wanted here.
        Kind::OpInput | Kind::Shape | Kind::Stats => Absent::Unknown,
        Kind::Tensor | Kind::Op | Kind::Gradient | Kind::Range | Kind::Scalar | Kind::Edge => {
            return None;
        }
    })
}
