//! The words of the trace format, as codes of records.

use tmrun_formats::trace::{GradientState, MemoryCategory, SpanKind, TraceStep};
use tmrun_formats::{Category, ExecutionStep};

pub(super) const fn kind(kind: SpanKind) -> tmrun_formats::SpanKind {
    match kind {
        SpanKind::Function => tmrun_formats::SpanKind::FUNCTION,
        SpanKind::Op => tmrun_formats::SpanKind::OP,
        SpanKind::Module => tmrun_formats::SpanKind::MODULE,
    }
}

pub(super) const fn step(step: TraceStep) -> ExecutionStep {
    match step {
        TraceStep::Forward => ExecutionStep::FORWARD,
        TraceStep::Backward => ExecutionStep::BACKWARD,
        TraceStep::Optimizer => ExecutionStep::OPTIMIZER,
    }
}

pub(super) const fn category(category: MemoryCategory) -> Category {
    match category {
        MemoryCategory::Parameter => Category::PARAMETER,
        MemoryCategory::Activation => Category::ACTIVATION,
        MemoryCategory::Gradient => Category::GRADIENT,
        MemoryCategory::Optimizer => Category::OPTIMIZER,
        MemoryCategory::Other => Category::OTHER,
    }
}

pub(super) const fn gradient(state: GradientState) -> tmrun_formats::GradientState {
    match state {
        GradientState::Present => tmrun_formats::GradientState::PRESENT,
        GradientState::Missing => tmrun_formats::GradientState::MISSING,
        GradientState::Zero => tmrun_formats::GradientState::ZERO,
        GradientState::NonFinite => tmrun_formats::GradientState::NON_FINITE,
    }
}
