//! Whether what is compared was verified.

use super::reasons::{Cohort, Reasons};
use tmrun_formats::comparison::{
    ComparisonCode, ComparisonInput, ComparisonInputs, InputVerification,
};

/// Inputs that nobody verified: traces.
#[must_use]
pub fn unverified() -> ComparisonInputs<'static> {
    let verification = InputVerification::UnverifiedTraces;
    ComparisonInputs { verification, baseline: Vec::new(), candidate: Vec::new() }
}

/// Inputs of which each run was verified.
#[must_use]
pub fn verified<'a>(
    baseline: Vec<ComparisonInput<'a>>,
    candidate: Vec<ComparisonInput<'a>>,
) -> ComparisonInputs<'a> {
    ComparisonInputs { verification: InputVerification::VerifiedBundles, baseline, candidate }
}

pub(super) fn check(
    inputs: &ComparisonInputs<'_>,
    [baseline, candidate]: [Cohort<'_>; 2],
    reasons: &mut Reasons<'_>,
) {
    match inputs.verification {
        InputVerification::UnverifiedTraces => reasons.add(
            ComparisonCode::UnverifiedInputs,
            "traces were given, which nothing vouches for: expected bundles; publish each run as one",
        ),
        InputVerification::VerifiedBundles => {
            check_receipts(&inputs.baseline, baseline, reasons);
            check_receipts(&inputs.candidate, candidate, reasons);
        }
    }
}

fn check_receipts(receipts: &[ComparisonInput<'_>], cohort: Cohort<'_>, reasons: &mut Reasons<'_>) {
    if receipts.len() != cohort.runs.len() {
        let (name, runs, found) = (cohort.name, cohort.runs.len(), receipts.len());
        let message = format!("{name}: {found} receipts for {runs} runs: expected one each");
        return reasons.add(ComparisonCode::ReceiptCountMismatch, message);
    }
    for (receipt, placed) in receipts.iter().zip(cohort.placed()) {
        let ComparisonInput { run_id, manifest_sha256: digest } = receipt;
        if *run_id != placed.run.meta.run_id {
            let message = format!("{placed}: its receipt is of the run {run_id:?}");
            reasons.add(ComparisonCode::ReceiptRunIdMismatch, message);
        }
        if digest.len() != 64 || !digest.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            let message = format!(
                "{placed}: manifest_sha256 of its receipt is {digest:?}: expected 64 hexadecimal digits"
            );
            reasons.add(ComparisonCode::ReceiptDigestInvalid, message);
        }
    }
}
