//! Which of Nsight's ranges are which spans.

use crate::published::Coded;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Labels of the trace held against ranges that were projected on the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCorrelation<'a> {
    /// By what.
    pub mode: Coded<'a, GpuCorrelationMode>,
    /// Whether the clocks were aligned; they never are.
    pub clock_aligned: bool,
    /// Whether every expected label is there once, and no other.
    pub complete: bool,
    /// Label by label.
    pub ledger: GpuLedger<'a>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

words! {
    /// By what ranges and spans are held together.
    GpuCorrelationMode {
        /// By nothing.
        None "none",
        /// By the names of projected ranges.
        NvtxProjectedRange "nvtx_projected_range",
    }
}

/// What was expected, and what was there. Every list is sorted and has each label once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuLedger<'a> {
    /// Must be projected.
    pub expected: Vec<Cow<'a, str>>,
    /// Must not be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_only: Vec<Cow<'a, str>>,
    /// Is projected.
    pub observed: Vec<Cow<'a, str>>,
    /// Must be and is.
    pub matched: Vec<Cow<'a, str>>,
    /// Must be and is not.
    pub missing_expected: Vec<Cow<'a, str>>,
    /// Is, and nobody asked.
    pub unexpected_observed: Vec<Cow<'a, str>>,
    /// Must not be and is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexpected_cpu_only: Vec<Cow<'a, str>>,
    /// Is more than once.
    pub duplicates: Vec<GpuDuplicate<'a>>,
}

/// A label that was projected more than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDuplicate<'a> {
    /// The label.
    pub semantic_key: Cow<'a, str>,
    /// How often.
    pub occurrences: u64,
}

/// The work on the GPU inside one projected range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPhase<'a> {
    /// The label.
    pub semantic_key: Cow<'a, str>,
    /// Whether its clock is aligned with the trace's; it never is.
    pub clock_aligned: bool,
    /// When the range begins, on Nsight's clock.
    pub projected_start_ns: u64,
    /// How long it is.
    pub projected_duration_ns: u64,
    /// How long the union of the work in it is.
    pub gpu_busy_ns: u64,
    /// How many pieces of work that are.
    pub gpu_operation_count: u64,
    /// By what they were laid to the range.
    pub join_keys: Vec<Cow<'a, str>>,
}
