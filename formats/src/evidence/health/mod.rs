//! Whether a trace holds together.

mod code;

pub use code::{HealthCode, SeverityRule};

use crate::published::Coded;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What was found out about the trace itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health<'a> {
    /// Whether no issue is an error.
    pub structurally_valid: bool,
    /// Whether the capture ended as `complete`.
    pub capture_complete: bool,
    /// What is wrong or missing, in the order of the checks.
    pub issues: Vec<HealthIssue<'a>>,
    /// How much there is of each kind.
    pub coverage: HealthCoverage,
}

/// One thing that is wrong or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthIssue<'a> {
    /// How bad it is here.
    pub severity: HealthSeverity,
    /// Which.
    pub code: Coded<'a, HealthCode>,
    /// For people.
    pub message: Cow<'a, str>,
}

words! {
    /// How bad an issue is.
    HealthSeverity {
        /// The trace is structurally invalid.
        Error "error",
        /// Something is missing.
        Warning "warning",
    }
}

/// How many events of each kind a trace has. Tensor statistics are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCoverage {
    /// Spans.
    pub spans: u64,
    /// Spans that ended.
    pub closed_spans: u64,
    /// Spans without parent.
    pub root_spans: u64,
    /// Spans of the measured region.
    pub measured_spans: u64,
    /// Operations.
    pub operations: u64,
    /// Tensors.
    pub tensors: u64,
    /// Allocations and frees.
    pub memory_events: u64,
    /// Samples of device memory.
    pub device_memory_samples: u64,
    /// Intervals on devices.
    pub device_intervals: u64,
    /// Gradients.
    pub gradients: u64,
    /// Recorded edges between spans.
    pub call_edges: u64,
    /// Recorded edges between tensors.
    pub data_edges: u64,
    /// Spans of a forward pass.
    pub forward_spans: u64,
    /// Spans of a backward pass.
    pub backward_spans: u64,
    /// Spans of an optimizer.
    pub optimizer_spans: u64,
}
