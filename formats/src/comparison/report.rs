//! One comparison of two cohorts.

use super::{ComparisonReason, ConfidenceInterval, SampleStatistics, TensorStatsComparison};
use crate::published::finite;
use crate::published::label::label;
use crate::trace::ComparisonIdentity;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is compared, always.
pub const METRIC: &str = "outer_wall_time_ns";

label! {
    /// The schema of a [`Comparison`].
    ComparisonSchema = "candle-graph/comparison/6"
}

/// Baseline against candidate, by the wall time of the measured region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison<'a> {
    /// The label.
    pub schema: ComparisonSchema,
    /// [`METRIC`].
    pub metric: Cow<'a, str>,
    /// What went in.
    pub inputs: ComparisonInputs<'a>,
    /// Whether there is no reason against it.
    pub comparable: bool,
    /// Whether runs were compared pair by pair.
    pub paired: bool,
    /// What the interval says.
    pub verdict: ComparisonVerdict,
    /// Why it is not eligible.
    pub reasons: Vec<ComparisonReason<'a>>,
    /// The baseline's implementation, where it has one.
    pub baseline_implementation_id: Option<Cow<'a, str>>,
    /// The candidate's implementation, where it has one.
    pub candidate_implementation_id: Option<Cow<'a, str>>,
    /// The conditions that all runs share, where they do.
    pub identity: Option<ComparisonIdentity>,
    /// The baseline's times.
    pub baseline: SampleStatistics,
    /// The candidate's times.
    pub candidate: SampleStatistics,
    /// Paired: the median of the differences. Else the difference of the medians.
    #[serde(serialize_with = "finite::write")]
    pub median_delta_ns: f64,
    /// The same by the baseline's median, which must not be zero.
    #[serde(serialize_with = "finite::write_option")]
    pub median_delta_percent: Option<f64>,
    /// Where the difference lies; only of an eligible comparison.
    pub confidence_interval: Option<ConfidenceInterval>,
    /// What the tensors say, whether the times are eligible or not.
    #[serde(default)]
    pub tensor_stats: TensorStatsComparison<'a>,
}

words! {
    /// What came out.
    ComparisonVerdict {
        /// There is a reason against comparing.
        Ineligible "ineligible",
        /// The interval contains zero.
        Inconclusive "inconclusive",
        /// The whole interval is below zero.
        CandidateFaster "candidate_faster",
        /// The whole interval is above zero.
        CandidateSlower "candidate_slower",
    }
}

/// Where the runs came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonInputs<'a> {
    /// Whether they were verified.
    pub verification: InputVerification,
    /// The baseline's bundles; none of traces.
    pub baseline: Vec<ComparisonInput<'a>>,
    /// The candidate's bundles; none of traces.
    pub candidate: Vec<ComparisonInput<'a>>,
}

words! {
    /// What may be said of the runs that went in.
    InputVerification {
        /// Bundles, each held against its manifest.
        VerifiedBundles "verified_bundles",
        /// Traces, which are never eligible.
        UnverifiedTraces "unverified_traces",
    }
}

/// One bundle that went in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonInput<'a> {
    /// Its run.
    pub run_id: Cow<'a, str>,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Cow<'a, str>,
}
