//! What Nsight's reports say, on a clock of their own.

mod capture;
mod correlation;
mod rows;

pub use capture::{
    GpuArtifact, GpuBinding, GpuCapture, GpuCaptureCorrelation, GpuCaptureRun, GpuCaptureTool,
    GpuHardware, GpuProvenance,
};
pub use correlation::{GpuCorrelation, GpuCorrelationMode, GpuDuplicate, GpuLedger, GpuPhase};
pub use rows::{GpuReportLimit, GpuRowKind, GpuSummaryRow, GpuTimelineRow};

use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Everything that was read of Nsight's directory, or that none was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu<'a> {
    /// Whether there is anything.
    pub status: GpuStatus,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The binary report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_report: Option<GpuArtifact<'a>>,
    /// The tables that were read.
    #[serde(default)]
    pub source_csv: Vec<GpuArtifact<'a>>,
    /// Whether they are of this run.
    pub provenance: GpuProvenance<'a>,
    /// Which tables there are.
    pub coverage: GpuCoverage,
    /// Which ranges are which spans.
    pub correlation: GpuCorrelation<'a>,
    /// Files that could not be read, and why.
    #[serde(default)]
    pub diagnostics: Vec<Cow<'a, str>>,
    /// How many rows of each table are here, by file name.
    #[serde(default)]
    pub limits: BTreeMap<Cow<'a, str>, GpuReportLimit>,
    /// Kernels.
    #[serde(default)]
    pub kernels: Vec<GpuSummaryRow<'a>>,
    /// Calls of the runtime.
    #[serde(default)]
    pub runtime_calls: Vec<GpuSummaryRow<'a>>,
    /// Copies and sets.
    #[serde(default)]
    pub memory_operations: Vec<GpuSummaryRow<'a>>,
    /// Ranges, as projected on the GPU.
    #[serde(default)]
    pub nvtx_ranges: Vec<GpuTimelineRow<'a>>,
    /// Work on the GPU.
    #[serde(default)]
    pub gpu_timeline: Vec<GpuTimelineRow<'a>>,
    /// Work on the GPU, by range.
    #[serde(default)]
    pub phase_attribution: Vec<GpuPhase<'a>>,
}

words! {
    /// Whether Nsight's reports are there.
    GpuStatus {
        /// At least one was read.
        Available "available",
        /// None was asked for, or none was there.
        Unavailable "unavailable",
        /// The directory could not be read.
        Failed "failed",
    }
}

/// Which of Nsight's tables were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCoverage {
    /// Kernels.
    pub kernel_summary: bool,
    /// Calls of the runtime.
    pub runtime_summary: bool,
    /// Copies and sets.
    pub memory_summary: bool,
    /// Ranges, as projected on the GPU.
    pub nvtx_projection: bool,
    /// Work on the GPU.
    pub gpu_timeline: bool,
}
