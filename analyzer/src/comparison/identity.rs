//! Whether runs are of the same conditions, and each cohort of one implementation.

use super::differences::Differences;
use super::reasons::{Cohort, Placed, Reasons, all};
use super::runs::more;
use tmrun_formats::comparison::ComparisonCode;
use tmrun_formats::trace::ComparisonIdentity;

fn of(placed: Placed<'_>) -> Option<&ComparisonIdentity> {
    placed.run.meta.comparison_identity.as_ref()
}

/// What all runs have in common.
pub(super) fn common(
    cohorts: [Cohort<'_>; 2],
    reasons: &mut Reasons<'_>,
) -> Option<ComparisonIdentity> {
    let without = all(cohorts).find(|&placed| of(placed).is_none());
    let first = all(cohorts).next();
    let (None, Some((first, identity))) =
        (without, first.and_then(|first| Some((first, of(first)?))))
    else {
        let whose = without.map_or_else(|| "both cohorts".to_owned(), |placed| placed.to_string());
        let message = format!("{whose}: comparison_identity is missing: expected it of every run");
        reasons.add(ComparisonCode::IdentityMissing, message);
        return None;
    };
    if let Err(error) = identity.check() {
        let message = format!("{first}: comparison_identity: {error}");
        reasons.add(ComparisonCode::IdentityInvalid, message);
        return None;
    }
    let differences = |placed| Some((placed, Differences::of_conditions(of(placed)?, identity)));
    let mut differ =
        all(cohorts).filter_map(differences).filter(|(_, differences)| !differences.is_empty());
    if let Some((placed, differences)) = differ.next() {
        let more = more(differ.count());
        let message = format!("{placed}, held against {first}: {differences}{more}");
        reasons.add(ComparisonCode::IdentityConditionsDiffer, message);
        return None;
    }
    Some(ComparisonIdentity { implementation_id: None, pair_id: None, ..identity.clone() })
}

fn implementation_of(placed: Placed<'_>) -> Option<&str> {
    of(placed)?.implementation_id.as_deref()
}

/// The implementation that all runs of a cohort have.
pub(super) fn implementation<'d>(cohort: Cohort<'d>, reasons: &mut Reasons<'_>) -> Option<&'d str> {
    const FIELD: &str = "comparison_identity.implementation_id";
    let first = cohort.placed().next().and_then(implementation_of);
    let without = cohort.placed().find(|&placed| implementation_of(placed).is_none());
    let (None, Some(first)) = (without, first) else {
        let whose = without.map_or_else(|| cohort.name.to_owned(), |placed| placed.to_string());
        let message = format!("{whose}: {FIELD} is missing: expected it of every run");
        reasons.add(ComparisonCode::ImplementationIdMissing, message);
        return None;
    };
    let named = || cohort.placed().filter_map(|placed| Some((placed, implementation_of(placed)?)));
    if let Some((placed, _)) = named().find(|(_, id)| id.trim().is_empty()) {
        let message = format!("{placed}: {FIELD} is blank: expected a text");
        reasons.add(ComparisonCode::ImplementationIdEmpty, message);
        return None;
    }
    if let Some((placed, id)) = named().find(|(_, id)| *id != first) {
        let message = format!(
            "{placed}: {FIELD} is {id:?}: expected {first:?}, as of the cohort's first run"
        );
        reasons.add(ComparisonCode::ImplementationIdInconsistent, message);
        return None;
    }
    Some(first)
}
