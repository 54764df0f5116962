//! The numbers of a comparison.

use crate::published::finite;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One cohort's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleStatistics {
    /// They themselves, in the order of the inputs.
    pub samples_ns: Vec<u64>,
    /// Their median.
    #[serde(serialize_with = "finite::write")]
    pub median_ns: f64,
    /// Their 95th percentile, interpolated.
    #[serde(serialize_with = "finite::write")]
    pub p95_ns: f64,
    /// The median of their distances from the median.
    #[serde(serialize_with = "finite::write")]
    pub mad_ns: f64,
}

/// Where the difference of the medians lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// With which confidence; 0.95.
    #[serde(serialize_with = "finite::write")]
    pub level: f64,
    /// The lower end.
    #[serde(serialize_with = "finite::write")]
    pub lower_delta_ns: f64,
    /// The upper end.
    #[serde(serialize_with = "finite::write")]
    pub upper_delta_ns: f64,
}

/// The tensor statistics of the cohorts, by label. `a` is the baseline, `b` the candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorStatsComparison<'a> {
    /// How many runs the baseline has.
    pub baseline_runs: u64,
    /// How many runs the candidate has.
    pub candidate_runs: u64,
    /// Labels that both have: those that differ most first, then by label.
    pub matched: Vec<TensorStatsRow<'a>>,
    /// Labels of the baseline alone.
    pub unmatched_a: Vec<Cow<'a, str>>,
    /// Labels of the candidate alone.
    pub unmatched_b: Vec<Cow<'a, str>>,
}

/// One label, averaged over each cohort.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorStatsRow<'a> {
    /// The label.
    pub label: Cow<'a, str>,
    /// The baseline's mean of `rms`.
    #[serde(serialize_with = "finite::write")]
    pub rms_a: f64,
    /// The candidate's mean of `rms`.
    #[serde(serialize_with = "finite::write")]
    pub rms_b: f64,
    /// Candidate by baseline; 1 where both are zero, none where only the baseline is.
    #[serde(serialize_with = "finite::write_option")]
    pub rms_ratio: Option<f64>,
    /// The same of `abs_max`.
    #[serde(serialize_with = "finite::write_option")]
    pub abs_max_ratio: Option<f64>,
    /// The baseline's elements that are not finite.
    pub non_finite_a: u64,
    /// The candidate's elements that are not finite.
    pub non_finite_b: u64,
    /// How many observations the baseline's means are over.
    pub samples_a: u64,
    /// How many observations the candidate's means are over.
    pub samples_b: u64,
    /// How many of the baseline's runs have the label.
    pub runs_a: u64,
    /// How many of the candidate's runs have the label.
    pub runs_b: u64,
}
