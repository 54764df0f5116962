//! Facts of one parameter's gradient: a series of steps, an agreement, or a contradiction.

use super::report::{GradientConflict, ObservationConfidence, ParamIdentity};
use std::collections::{BTreeMap, BTreeSet};
use tmrun_formats::runtime::{GradientFact, GradientState, RuntimeDocument};

/// The facts of each parameter, in the document's order.
pub(super) type Groups<'a> = BTreeMap<ParamIdentity, Vec<&'a GradientFact>>;

pub(super) fn by_parameter(trace: &RuntimeDocument) -> Groups<'_> {
    let mut groups = Groups::new();
    for fact in &trace.gradients {
        groups.entry(ParamIdentity::of(fact)).or_default().push(fact);
    }
    groups
}

/// Whether two facts say the same. Not a number equals itself here.
pub(super) fn same(first: &GradientFact, second: &GradientFact) -> bool {
    let norms_agree = match (first.norm, second.norm) {
        (Some(first), Some(second)) => first == second || (first.is_nan() && second.is_nan()),
        (first, second) => first.is_none() && second.is_none(),
    };
    first.state == second.state && norms_agree
}

fn agreed<'a>(facts: &[&'a GradientFact]) -> Option<&'a GradientFact> {
    let (first, others) = facts.split_first()?;
    others.iter().all(|other| same(first, other)).then_some(first)
}

/// The latest fact of a series, in which every fact has its step.
fn latest<'a>(facts: &[&'a GradientFact]) -> Option<&'a GradientFact> {
    if facts.iter().any(|fact| fact.step.is_none()) {
        return None;
    }
    facts.iter().copied().max_by_key(|fact| fact.step)
}

/// What is known of a parameter's gradient: the first fact if every one says the same, and `None` if
/// there is none or they differ, be it by step.
#[must_use]
pub fn agreed_gradient<'a>(
    trace: &'a RuntimeDocument,
    root: &str,
    key: &str,
) -> Option<&'a GradientFact> {
    let facts: Vec<&GradientFact> =
        trace.gradients.iter().filter(|fact| fact.root == root && fact.key == key).collect();
    agreed(&facts)
}

/// The parameters whose facts are neither a series nor an agreement.
pub(super) fn conflicts(groups: &Groups<'_>) -> Vec<GradientConflict> {
    groups
        .iter()
        .filter(|(_, facts)| latest(facts).is_none() && agreed(facts).is_none())
        .map(|(identity, facts)| GradientConflict {
            identity: identity.clone(),
            states: states(facts),
            event_ids: event_ids(facts),
            confidence: ObservationConfidence::Unknown,
        })
        .collect()
}

/// The distinct states, sorted as text.
pub(super) fn states(facts: &[&GradientFact]) -> Vec<String> {
    let states: BTreeSet<&str> = facts.iter().map(|fact| fact.state.name()).collect();
    states.into_iter().map(str::to_owned).collect()
}

/// The facts' ids, sorted.
pub(super) fn event_ids(facts: &[&GradientFact]) -> Vec<String> {
    let ids: BTreeSet<&str> = facts.iter().map(|fact| fact.event_id.as_str()).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Parameters by what their gradient was found to be, those in conflict left out.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub missing: Vec<ParamIdentity>,
    pub non_finite: Vec<ParamIdentity>,
    pub zero: Vec<ParamIdentity>,
}

pub(super) fn settled(groups: &Groups<'_>, conflicts: &[GradientConflict]) -> Settled {
    let conflicted: BTreeSet<&ParamIdentity> = conflicts.iter().map(|it| &it.identity).collect();
    let mut settled = Settled::default();
    for (identity, facts) in groups {
        if conflicted.contains(identity) {
            continue;
        }
        let list = match latest(facts).or_else(|| agreed(facts)).map(|fact| fact.state) {
            Some(GradientState::Missing) => &mut settled.missing,
            Some(GradientState::NonFinite) => &mut settled.non_finite,
            Some(GradientState::Zero) => &mut settled.zero,
            Some(GradientState::Present) | None => continue,
        };
        list.push(identity.clone());
    }
    settled
}

pub(super) fn first_non_finite_step(trace: &RuntimeDocument) -> Option<u64> {
    trace
        .gradients
        .iter()
        .filter(|fact| fact.state == GradientState::NonFinite)
        .filter_map(|fact| fact.step)
        .min()
}
