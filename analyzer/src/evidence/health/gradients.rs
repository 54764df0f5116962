//! Gradients, and whether they are those of the contract.

use super::{HealthCode, Issues, Subject};
use std::collections::{HashMap, HashSet};
use tmrun_formats::trace::{
    CoverageLevel, Gradient, GradientContract, GradientFamilyContract, GradientFamilyExpectation,
    GradientState,
};

/// Gradient by gradient, then all of them against the contract.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    check_events(&subject.trace.gradients, issues);
    let declared = subject.trace.run.capture_contract.gradients;
    match (declared, &subject.trace.run.capture_contract.gradient_contract) {
        (CoverageLevel::Complete, None) => {
            let message = "capture_contract: gradients is complete: expected a gradient_contract";
            issues.add(HealthCode::GradientContractMissing, message);
        }
        (CoverageLevel::Complete, Some(contract)) => match contract.check() {
            Ok(()) => check_contract(&subject.trace.gradients, contract, issues),
            Err(error) => {
                let message = format!("gradient_contract: {error}");
                issues.add(HealthCode::GradientContractInvalid, message);
            }
        },
        (_, Some(_)) => {
            let message = format!(
                "capture_contract: gradients is {declared}: expected complete, for there is a \
                 gradient_contract"
            );
            issues.add(HealthCode::GradientContractWithoutCompleteCoverage, message);
        }
        (_, None) => {}
    }
}

fn check_events(gradients: &[Gradient<'_>], issues: &mut Issues) {
    let mut ids = HashSet::new();
    for gradient in gradients {
        let Gradient { event_id, root, key, state, norm } = gradient;
        if event_id.trim().is_empty() {
            let message = format!("gradient of {root:?} {key:?}: event_id is blank");
            issues.add(HealthCode::EmptyGradientEventId, message);
        }
        if root.trim().is_empty() || key.trim().is_empty() {
            let message = format!(
                "gradient {event_id:?}: root is {root:?}, key {key:?}: expected neither blank"
            );
            issues.add(HealthCode::EmptyGradientParameterKey, message);
        }
        if !ids.insert(&**event_id) {
            let message =
                format!("gradient {event_id:?} is there twice: expected an id of its own");
            issues.add(HealthCode::DuplicateGradientEventId, message);
        }
        if !norm_agrees(*state, *norm) {
            let expected = match state {
                GradientState::Present => "a finite norm above 0",
                GradientState::Zero => "a norm of 0.0",
                GradientState::Missing | GradientState::NonFinite => "no norm",
            };
            let found = norm.map_or_else(|| "none".to_owned(), |norm| format!("{norm:?}"));
            let message = format!(
                "gradient {event_id:?} of {root:?} {key:?}: state is {state}: expected {expected}, found {found}"
            );
            issues.add(HealthCode::GradientStateNormInconsistent, message);
        }
    }
}

/// Whether a norm goes with a state.
fn norm_agrees(state: GradientState, norm: Option<f64>) -> bool {
    match state {
        GradientState::Present => norm.is_some_and(|norm| norm.is_finite() && norm > 0.0),
        GradientState::Zero => norm.is_some_and(|norm| norm == 0.0 && norm.is_sign_positive()),
        GradientState::Missing | GradientState::NonFinite => norm.is_none(),
    }
}

/// What was observed of one parameter.
struct Observed {
    state: GradientState,
    count: usize,
}

/// What was observed of one family.
#[derive(Default)]
struct Members {
    expected: usize,
    observed: usize,
    present: usize,
    /// Those whose state is not missing.
    attached: usize,
    non_finite: usize,
}

fn check_contract(gradients: &[Gradient<'_>], contract: &GradientContract, issues: &mut Issues) {
    // The first event of a parameter is the one that counts.
    let mut observed = HashMap::<(&str, &str), Observed>::new();
    for Gradient { root, key, state, .. } in gradients {
        let entry = observed.entry((root, key));
        let of = entry.or_insert(Observed { state: *state, count: 0 });
        of.count = of.count.saturating_add(1);
    }
    let expected: HashSet<(&str, &str)> =
        contract.expected.iter().map(|expected| (&*expected.root, &*expected.key)).collect();

    let mut parameters: Vec<_> = observed.iter().collect();
    parameters.sort_unstable_by_key(|(parameter, _)| **parameter);
    for (&(root, key), &Observed { count, .. }) in parameters {
        if count != 1 {
            let message =
                format!("gradient of {root:?} {key:?}: expected one event, found {count}");
            issues.add(HealthCode::GradientManifestDuplicateKey, message);
        }
        if !expected.contains(&(root, key)) {
            let message = format!("gradient of {root:?} {key:?} is not in the gradient_contract");
            issues.add(HealthCode::GradientManifestUndeclaredKey, message);
        }
    }

    let mut families = HashMap::<&str, Members>::new();
    for parameter in &contract.expected {
        let (root, key) = (&*parameter.root, &*parameter.key);
        let members = families.entry(&parameter.family).or_default();
        let more = |count: &mut usize| *count = count.saturating_add(1);
        more(&mut members.expected);
        let Some(Observed { state, .. }) = observed.get(&(root, key)) else {
            let message = format!("gradient of {root:?} {key:?}: expected one event, found none");
            issues.add(HealthCode::GradientManifestMissingKey, message);
            continue;
        };
        more(&mut members.observed);
        match state {
            GradientState::Missing => continue,
            GradientState::Present => more(&mut members.present),
            GradientState::NonFinite => more(&mut members.non_finite),
            GradientState::Zero => {}
        }
        more(&mut members.attached);
    }
    for family in &contract.families {
        if let Some(members) = families.get(&*family.family) {
            check_family(family, members, issues);
        }
    }
}

fn check_family(family: &GradientFamilyContract, members: &Members, issues: &mut Issues) {
    let &Members { expected, observed, present, attached, non_finite } = members;
    let (name, min_present) = (&family.family, family.min_present);
    if non_finite > 0 {
        let message =
            format!("gradient family {name:?}: {non_finite} of {expected} are not finite");
        issues.add(HealthCode::GradientFamilyNonFinite, message);
    }
    // A failed capture may have ended before the rest of them was recorded.
    let judged = !issues.failed || observed == expected;
    match family.expectation {
        GradientFamilyExpectation::Active if judged && present < min_present => {
            let message = format!(
                "active gradient family {name:?}: {present} of {expected} are present: expected at least {min_present}"
            );
            issues.add(HealthCode::GradientActiveFamilyBelowMinimum, message);
        }
        GradientFamilyExpectation::Inactive if attached > 0 => {
            let message = format!(
                "inactive gradient family {name:?}: {attached} of {expected} have a gradient: expected none"
            );
            issues.add(HealthCode::GradientInactiveFamilyLeakage, message);
        }
        GradientFamilyExpectation::DataConditional
            if judged && (1..min_present).contains(&present) =>
        {
            let message = format!(
                "data-conditional gradient family {name:?}: {present} of {expected} are present: expected none or at least {min_present}"
            );
            issues.add(HealthCode::GradientConditionalFamilyBelowMinimum, message);
        }
        _ => {}
    }
}
