//! The rows of Nsight's tables.

use crate::published::Coded;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How much of one table is in the packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuReportLimit {
    /// How many rows it has.
    pub total_rows: u64,
    /// How many are here.
    pub displayed_rows: u64,
    /// Whether that is fewer.
    pub truncated: bool,
}

/// One row of a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuSummaryRow<'a> {
    /// The kernel, call or operation.
    pub name: Cow<'a, str>,
    /// The sum of its times.
    pub total_ns: u64,
    /// How often it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How long it took on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_ns: Option<u64>,
    /// How long at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<u64>,
    /// How long at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<u64>,
    /// What Nsight files it under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Cow<'a, str>>,
}

/// One row of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTimelineRow<'a> {
    /// The range or operation.
    pub name: Cow<'a, str>,
    /// Which of the two it is.
    pub kind: Coded<'a, GpuRowKind>,
    /// The device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Cow<'a, str>>,
    /// The context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Cow<'a, str>>,
    /// The stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Cow<'a, str>>,
    /// Nsight's own correlation of call and work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The label, of a range that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_key: Option<Cow<'a, str>>,
    /// When it began, on Nsight's clock.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// When its work on the GPU began, of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected_start_ns: Option<u64>,
    /// How long that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected_duration_ns: Option<u64>,
    /// How many pieces of work that were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_operations: Option<u64>,
}

words! {
    /// What a row of a timeline is.
    GpuRowKind {
        /// A range.
        NvtxRange "nvtx_range",
        /// Work on the GPU.
        GpuOperation "gpu_operation",
    }
}
