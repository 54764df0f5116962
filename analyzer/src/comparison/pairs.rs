//! Runs that were made two by two, one for each cohort.

use super::reasons::{Cohort, Placed, Reasons, all};
use std::collections::BTreeMap;
use tmrun_formats::comparison::ComparisonCode;

/// How much longer the candidate of each pair took, in the order of the pairs' ids; none where runs
/// are no pairs, or not all of them.
pub(super) fn deltas(cohorts: [Cohort<'_>; 2], reasons: &mut Reasons<'_>) -> Option<Vec<i128>> {
    all(cohorts).find_map(pair_of)?;
    let mut sides = cohorts.into_iter().map(by_pair);
    let (baseline, candidate) = match (sides.next()?, sides.next()?) {
        (Ok(baseline), Ok(candidate)) => (baseline, candidate),
        (Err((code, message)), _) | (_, Err((code, message))) => {
            reasons.add(code, message);
            return None;
        }
    };
    let alone = |of: &Pairs<'_>, other: &Pairs<'_>| {
        of.iter().find_map(|(pair, &(placed, _))| {
            (!other.contains_key(pair))
                .then(|| format!("{placed}: its pair {pair:?} has no other half"))
        })
    };
    if let Some(message) = alone(&baseline, &candidate).or_else(|| alone(&candidate, &baseline)) {
        reasons.add(ComparisonCode::PairSetsMismatch, message);
        return None;
    }
    let both = baseline.values().zip(candidate.values());
    Some(both.map(|((_, a), (_, b))| i128::from(*b).saturating_sub((*a).into())).collect())
}

fn pair_of<'d>(placed: Placed<'d>) -> Option<&'d str> {
    placed.run.meta.comparison_identity.as_ref()?.pair_id.as_deref()
}

/// Runs and their times, by pairs.
type Pairs<'d> = BTreeMap<&'d str, (Placed<'d>, u64)>;

fn by_pair<'d>(cohort: Cohort<'d>) -> Result<Pairs<'d>, (ComparisonCode, String)> {
    let mut pairs = BTreeMap::new();
    for placed in cohort.placed() {
        let incomplete = |what: &str| {
            let message = format!("{placed}: {what}: expected it of every run, as some have pairs");
            (ComparisonCode::PairingIncomplete, message)
        };
        let pair =
            pair_of(placed).ok_or_else(|| incomplete("comparison_identity.pair_id is missing"))?;
        let time = placed.run.measured.first();
        let time = time.ok_or_else(|| incomplete("no measured span ended"))?;
        if let Some((first, _)) = pairs.insert(pair, (placed, *time)) {
            let message =
                format!("{placed}: its pair {pair:?} is that of {first}: expected one each");
            return Err((ComparisonCode::PairIdsDuplicated, message));
        }
    }
    Ok(pairs)
}
