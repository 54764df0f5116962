//! One comparison, put together.

use super::reasons::{Cohort, Reasons};
use super::{Run, bootstrap, identity, inputs, pairs, runs, statistics, tensors};
use tmrun_formats::comparison::{
    Comparison, ComparisonCode, ComparisonInputs, ComparisonSchema, ComparisonVerdict,
    ConfidenceInterval, METRIC,
};

/// How many runs a cohort has at least.
pub const MINIMUM_RUNS: usize = 5;

/// Compares runs by the wall time of their measured regions. `inputs` says where they come from.
#[must_use]
pub fn compare<'d>(
    baseline: &'d [Run],
    candidate: &'d [Run],
    inputs: ComparisonInputs<'d>,
) -> Comparison<'d> {
    let cohorts @ [before, after] = [("baseline", baseline), ("candidate", candidate)]
        .map(|(name, runs)| Cohort { name, runs });
    let mut reasons = Reasons::default();
    inputs::check(&inputs, cohorts, &mut reasons);
    let samples = cohorts.map(|cohort| runs::samples(cohort, &mut reasons));
    check_sizes(cohorts, &mut reasons);
    runs::check_ids(cohorts, &mut reasons);
    runs::check_semantics(cohorts, &mut reasons);
    let identity = identity::common(cohorts, &mut reasons);
    let baseline_implementation_id = identity::implementation(before, &mut reasons);
    let candidate_implementation_id = identity::implementation(after, &mut reasons);
    let pairs = pairs::deltas(cohorts, &mut reasons);

    let Reasons(reasons) = reasons;
    let wide = samples.each_ref().map(|samples| statistics::wide(samples));
    let [baseline_stats, candidate_stats] = samples.map(statistics::of);
    let median_delta_ns = match &pairs {
        Some(deltas) => statistics::median(&mut deltas.clone()),
        None => candidate_stats.median_ns - baseline_stats.median_ns,
    };
    let comparable = reasons.is_empty();
    let confidence_interval = comparable.then(|| match (&pairs, &wide) {
        (Some(deltas), _) => bootstrap::of_pairs(deltas),
        (None, [baseline, candidate]) => bootstrap::of_cohorts(baseline, candidate),
    });
    Comparison {
        schema: ComparisonSchema,
        metric: METRIC.into(),
        inputs,
        comparable,
        paired: pairs.is_some(),
        verdict: verdict(confidence_interval.as_ref()),
        reasons,
        baseline_implementation_id: baseline_implementation_id.map(Into::into),
        candidate_implementation_id: candidate_implementation_id.map(Into::into),
        identity,
        median_delta_ns,
        median_delta_percent: (baseline_stats.median_ns != 0.0)
            .then(|| median_delta_ns / baseline_stats.median_ns * 100.0),
        baseline: baseline_stats,
        candidate: candidate_stats,
        confidence_interval,
        tensor_stats: tensors::of(baseline, candidate),
    }
}

fn check_sizes(cohorts: [Cohort<'_>; 2], reasons: &mut Reasons<'_>) {
    let [before, after] = cohorts.map(|cohort| cohort.runs.len());
    if before.min(after) < MINIMUM_RUNS {
        let message = format!(
            "baseline of {before} runs, candidate of {after}: expected at least {MINIMUM_RUNS} of each"
        );
        reasons.add(ComparisonCode::InsufficientRuns, message);
    }
}

fn verdict(interval: Option<&ConfidenceInterval>) -> ComparisonVerdict {
    match interval {
        None => ComparisonVerdict::Ineligible,
        Some(ends) if ends.upper_delta_ns < 0.0 => ComparisonVerdict::CandidateFaster,
        Some(ends) if ends.lower_delta_ns > 0.0 => ComparisonVerdict::CandidateSlower,
        Some(_) => ComparisonVerdict::Inconclusive,
    }
}
