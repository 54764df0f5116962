//! Which values are NaN and which infinite: a recording says, and JSON has no word for it.

use serde::Serialize;
use tmrun_formats::trace::GradientState;

use super::Question;
use super::labels::wants_gradient;
use super::page::Bounded;
use crate::source::Subject;
use crate::trace::{NonFinite, ValueOf};

/// Rows of a list.
const ROWS: usize = 50;

/// Values of a tensor that are not finite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NonFiniteStats<'e> {
    /// The label of the statistics.
    pub label: &'e str,
    /// The span that they were recorded within.
    pub span_id: &'e str,
    /// When, in nanoseconds of the trace.
    pub timestamp_ns: u64,
    /// How many are NaN.
    pub nan: u64,
    /// How many are infinite.
    pub infinite: u64,
    /// How many of these are positive; `None` where only both together are known.
    pub positive: Option<u64>,
    /// How many are negative.
    pub negative: Option<u64>,
}

/// What of the statistics is not finite; `None` where nobody has the recording.
pub(super) fn stats<'e>(
    question: &Question,
    subject: &'e Subject<'_>,
) -> Option<Bounded<NonFiniteStats<'e>>> {
    let told = subject.told.as_ref()?;
    let of_stats = told.non_finite.iter().filter(|one| one.of != ValueOf::Gradient);
    let wanted = of_stats.filter(|one| question.wants(&one.label));
    let rows: Vec<_> = wanted
        .map(|one| NonFiniteStats {
            label: &one.label,
            span_id: &one.span_id,
            timestamp_ns: one.timestamp_ns,
            nan: one.nan,
            infinite: one.infinite,
            positive: one.positive,
            negative: one.positive.map(|positive| one.infinite.saturating_sub(positive)),
        })
        .collect();
    Some(Bounded::of(rows, ROWS))
}

/// The norm of a gradient that is not finite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GradientNorm<'e> {
    /// The gradient's root.
    pub root: &'e str,
    /// Its key below that.
    pub key: &'e str,
    /// The span that it was recorded within.
    pub span_id: &'e str,
    /// When, in nanoseconds of the trace.
    pub timestamp_ns: u64,
    /// `NaN`, `+Inf`, `-Inf`; `None` where it was recorded as not finite and no more.
    pub norm: Option<&'static str>,
}

/// What of the gradients is not finite; `None` where nobody has the recording.
pub(super) fn gradients<'e>(
    question: &Question,
    subject: &'e Subject<'_>,
) -> Option<Bounded<GradientNorm<'e>>> {
    let told = subject.told.as_ref()?;
    // Both are in the order of the recording's facts, and one of them is of one of the others.
    let norms = told.non_finite.iter().filter(|one| one.of == ValueOf::Gradient);
    let gradients = subject.trace().gradients.iter();
    let odd = gradients.filter(|one| one.state == GradientState::NonFinite).zip(norms);
    let wanted = odd.filter(|(one, _)| wants_gradient(question, &one.root, &one.key));
    let rows: Vec<_> = wanted
        .map(|(one, odd)| GradientNorm {
            root: &one.root,
            key: &one.key,
            span_id: &odd.span_id,
            timestamp_ns: odd.timestamp_ns,
            norm: word(odd),
        })
        .collect();
    Some(Bounded::of(rows, ROWS))
}

fn word(norm: &NonFinite) -> Option<&'static str> {
    match (norm.nan, norm.infinite, norm.positive) {
        (1.., ..) => Some("NaN"),
        (0, 1.., Some(1..)) => Some("+Inf"),
        (0, 1.., _) => Some("-Inf"),
        (0, 0, _) => None,
    }
}
