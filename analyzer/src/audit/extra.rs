//! What the neighbour's audit does not look at.

use super::gradients::{Groups, Settled, event_ids, same, states};
use super::identity::{ExpectedIdentity, IdentityField, unchecked};
use super::report::{ObservationConfidence, ParamIdentity};
use super::tensors;
use crate::severed::{Severed, of_runtime};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tmrun_formats::runtime::{GradientFact, GradientState, RuntimeDocument, ValueObservation};

/// The last integer that a reader with nothing but doubles, such as JavaScript, reads exactly.
const LAST_EXACT_DOUBLE: u64 = (1 << 53) - 1;

/// Findings and remarks beside the neighbour's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Extra {
    /// Two facts of one gradient at one step that differ. To the neighbour a series is never a
    /// conflict, and the last one in text order wins.
    pub same_step_gradient_conflicts: Vec<SameStepConflict>,
    /// Every parameter that was ever not finite, even if it recovered.
    pub ever_non_finite: Vec<NonFiniteParameter>,
    /// Of the parameters that last had no gradient, or one that was zero, since when.
    pub without: Vec<ParameterWithout>,
    /// Where the gradients of parameters that never had one likely stop.
    pub severed: Vec<Severed>,
    /// Where values were not finite.
    pub non_finite_values: Vec<NonFiniteValue>,
    /// Which of these places was the first, by step and then by the order of ids: where to look. None where
    /// one of them does not say its step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_non_finite_place: Option<String>,
    /// The first step at which a gradient or a value was not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_non_finite_step: Option<u64>,
    /// Value ranges with saturated elements that name no source: the neighbour drops them.
    pub saturated_without_source: Vec<String>,
    /// Value ranges whose `min` is above their `max`.
    pub inverted_ranges: Vec<String>,
    /// Remark: static tensors whose conflicts are all between steps.
    pub tensors_varying_by_step: Vec<String>,
    /// Remark: identities that were expected and that the trace does not carry.
    pub identity_unchecked: Vec<IdentityField>,
    /// Remark: how many integers are above 2⁵³ − 1, which readers in JavaScript round.
    pub inexact_integers: u64,
    /// Gaps of class `lost` that the trace declares.
    pub lost_gaps: u64,
    /// Remark: its other gaps.
    pub other_gaps: u64,
}

/// Facts of one gradient at one step that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SameStepConflict {
    /// The parameter.
    pub identity: ParamIdentity,
    /// The step.
    pub step: u64,
    /// The distinct states, sorted.
    pub states: Vec<String>,
    /// The facts, sorted.
    pub event_ids: Vec<String>,
    /// Always unknown.
    pub confidence: ObservationConfidence,
}

/// A parameter whose gradient was once not finite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NonFiniteParameter {
    /// The parameter.
    pub identity: ParamIdentity,
    /// The first step it was so, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u64>,
    /// How many facts say so.
    pub count: u64,
}

/// A parameter whose gradient was last missing or zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParameterWithout {
    /// The parameter.
    pub identity: ParamIdentity,
    /// `missing` or `zero`.
    pub state: GradientState,
    /// The first step it was so, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u64>,
    /// How many facts say so.
    pub count: u64,
}

/// A place whose values were once not finite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NonFiniteValue {
    /// Its source, else its static id, else the id of the observation.
    pub place: String,
    /// The first step it was so, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u64>,
    /// How many elements, over all observations.
    pub elements: u64,
}

impl Extra {
    /// Whether anything but remarks was found.
    pub(super) fn has_findings(&self) -> bool {
        !self.same_step_gradient_conflicts.is_empty()
            || !self.ever_non_finite.is_empty()
            || !self.severed.is_empty()
            || !self.non_finite_values.is_empty()
            || !self.saturated_without_source.is_empty()
            || !self.inverted_ranges.is_empty()
            || self.lost_gaps > 0
    }
}

pub(super) fn look(
    trace: &RuntimeDocument,
    groups: &Groups<'_>,
    settled: &Settled,
    expected: Option<&ExpectedIdentity>,
) -> Extra {
    let ever_non_finite = ever_non_finite(groups);
    let non_finite_values = non_finite_values(trace);
    let steps = ever_non_finite.iter().filter_map(|it| it.first_step);
    let earliest = steps.chain(non_finite_values.iter().filter_map(|it| it.first_step)).min();
    let named = |found: fn(&ValueObservation) -> bool| {
        trace.values.iter().filter(|it| found(it)).map(|it| it.event_id.clone()).collect()
    };
    let lost = trace.gaps.iter().filter(|gap| gap.class == "lost").count();
    Extra {
        same_step_gradient_conflicts: same_step_conflicts(groups),
        ever_non_finite,
        without: without(groups, settled),
        severed: of_runtime(trace),
        non_finite_values,
        first_non_finite_place: first_non_finite_place(trace),
        earliest_non_finite_step: earliest,
        saturated_without_source: named(|it| it.saturated_count > 0 && it.source.is_none()),
        inverted_ranges: named(|it| it.min > it.max),
        tensors_varying_by_step: tensors::varying_by_step(trace),
        identity_unchecked: expected.map_or_else(Vec::new, |it| unchecked(trace, it)),
        inexact_integers: inexact_integers(trace),
        lost_gaps: lost as u64,
        other_gaps: trace.gaps.len().saturating_sub(lost) as u64,
    }
}

fn same_step_conflicts(groups: &Groups<'_>) -> Vec<SameStepConflict> {
    let mut conflicts = Vec::new();
    for (identity, facts) in groups {
        let mut steps: BTreeMap<u64, Vec<&GradientFact>> = BTreeMap::new();
        for &fact in facts {
            if let Some(step) = fact.step {
                steps.entry(step).or_default().push(fact);
            }
        }
        for (step, facts) in steps {
            let Some((first, others)) = facts.split_first() else { continue };
            if others.iter().all(|other| same(first, other)) {
                continue;
            }
            conflicts.push(SameStepConflict {
                identity: identity.clone(),
                step,
                states: states(&facts),
                event_ids: event_ids(&facts),
                confidence: ObservationConfidence::Unknown,
            });
        }
    }
    conflicts
}

fn ever_non_finite(groups: &Groups<'_>) -> Vec<NonFiniteParameter> {
    let mut found = Vec::new();
    for (identity, facts) in groups {
        let bad = || facts.iter().filter(|fact| fact.state == GradientState::NonFinite);
        let count = bad().count() as u64;
        if count > 0 {
            let first_step = bad().filter_map(|fact| fact.step).min();
            found.push(NonFiniteParameter { identity: identity.clone(), first_step, count });
        }
    }
    found
}

/// Since when parameters that are missing their gradient, or have one that is zero, do so: those without
/// first.
fn without(groups: &Groups<'_>, settled: &Settled) -> Vec<ParameterWithout> {
    let missing = settled.missing.iter().map(|identity| (identity, GradientState::Missing));
    let zero = settled.zero.iter().map(|identity| (identity, GradientState::Zero));
    let since = |(identity, state): (&ParamIdentity, GradientState)| {
        let facts = groups.get(identity).map_or(&[][..], |facts| facts);
        let such = || facts.iter().filter(|fact| fact.state == state);
        let first_step = such().filter_map(|fact| fact.step).min();
        let (identity, count) = (identity.clone(), such().count() as u64);
        ParameterWithout { identity, state, first_step, count }
    };
    missing.chain(zero).map(since).collect()
}

fn place_of(value: &ValueObservation) -> &str {
    value.source.as_deref().or(value.static_id.as_deref()).unwrap_or(&value.event_id)
}

fn first_non_finite_place(trace: &RuntimeDocument) -> Option<String> {
    let mut found = trace.values.iter().filter(|value| value.nonfinite_count > 0);
    let first = found.clone().min_by_key(|value| (value.step, &value.event_id))?;
    found.all(|value| value.step.is_some()).then(|| place_of(first).to_owned())
}

fn non_finite_values(trace: &RuntimeDocument) -> Vec<NonFiniteValue> {
    let mut places: BTreeMap<&str, (Option<u64>, u64)> = BTreeMap::new();
    for value in trace.values.iter().filter(|value| value.nonfinite_count > 0) {
        let (first, elements) = places.entry(place_of(value)).or_default();
        *first = match (*first, value.step) {
            (Some(first), Some(step)) => Some(first.min(step)),
            (first, step) => first.or(step),
        };
        *elements = elements.saturating_add(value.nonfinite_count);
    }
    places
        .into_iter()
        .map(|(place, (first_step, elements))| NonFiniteValue {
            place: place.to_owned(),
            first_step,
            elements,
        })
        .collect()
}

/// Sources with saturated elements, under the root `value`, as the neighbour lists them.
pub(super) fn saturating(trace: &RuntimeDocument) -> Vec<ParamIdentity> {
    let saturated = trace.values.iter().filter(|value| value.saturated_count > 0);
    let sources: BTreeSet<&String> = saturated.filter_map(|value| value.source.as_ref()).collect();
    sources
        .into_iter()
        .map(|source| ParamIdentity { root: "value".to_owned(), key: source.clone() })
        .collect()
}

fn inexact_integers(trace: &RuntimeDocument) -> u64 {
    let tensors =
        trace.tensors.iter().flat_map(|it| it.shape.iter().map(|&dim| dim as u64).chain(it.step));
    let operations =
        trace.operations.iter().flat_map(|it| it.step.into_iter().chain(it.duration_ns));
    let gradients = trace.gradients.iter().filter_map(|it| it.step);
    let values = trace
        .values
        .iter()
        .flat_map(|it| it.step.into_iter().chain([it.nonfinite_count, it.saturated_count]));
    let edges =
        trace.edge_timings.iter().flat_map(|it| it.step.into_iter().chain([it.duration_ns]));
    let all = tensors.chain(operations).chain(gradients).chain(values).chain(edges);
    all.filter(|&number| number > LAST_EXACT_DOUBLE).count() as u64
}
