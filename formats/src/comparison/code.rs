//! Why a comparison is not eligible.

use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonReason<'a> {
    /// Which.
    pub code: ComparisonCode,
    /// For people.
    pub message: Cow<'a, str>,
}

words! {
    /// The causes. A comparison is eligible when none of them holds.
    ComparisonCode {
        /// Traces were given instead of bundles.
        UnverifiedInputs "unverified_inputs",
        /// Not one receipt a run.
        ReceiptCountMismatch "receipt_count_mismatch",
        /// A receipt of another run than the trace's.
        ReceiptRunIdMismatch "receipt_run_id_mismatch",
        /// A receipt whose digest is none.
        ReceiptDigestInvalid "receipt_digest_invalid",
        /// Fewer than five runs in a cohort.
        InsufficientRuns "insufficient_runs",
        /// A run that stands there twice, over both cohorts.
        DuplicateRunIds "duplicate_run_ids",
        /// A cohort without runs.
        NoRuns "no_runs",
        /// Runs that differ in entrypoint, phase, device, timing mode, steps, synchronisation or contract.
        CaptureSemanticsMismatch "capture_semantics_mismatch",
        /// A run that failed or is structurally invalid.
        IncompleteCapture "incomplete_capture",
        /// A measurement scope other than `production_equivalent`.
        NotProductionEquivalent "not_production_equivalent",
        /// A device other than the CPU, without synchronisation around the measured region.
        UnsynchronizedDeviceRegion "unsynchronized_device_region",
        /// Not exactly one measured span that is closed.
        MeasuredRegionCountInvalid "measured_region_count_invalid",
        /// A run without comparison identity.
        IdentityMissing "identity_missing",
        /// A comparison identity that breaks its rules.
        IdentityInvalid "identity_invalid",
        /// Identities that differ in more than the implementation and the pair.
        IdentityConditionsDiffer "identity_conditions_differ",
        /// A run without implementation id.
        ImplementationIdMissing "implementation_id_missing",
        /// A blank implementation id.
        ImplementationIdEmpty "implementation_id_empty",
        /// More than one implementation in a cohort.
        ImplementationIdInconsistent "implementation_id_inconsistent",
        /// Some runs name a pair and some do not.
        PairingIncomplete "pairing_incomplete",
        /// A pair that a cohort has twice.
        PairIdsDuplicated "pair_ids_duplicated",
        /// Pairs that only one cohort has.
        PairSetsMismatch "pair_sets_mismatch",
    }
}
