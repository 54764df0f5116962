//! What is worth saying of a trace, and on what it rests.

use super::{CapabilityKind, CapabilityLevel};
use crate::published::Coded;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One number or text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<'a> {
    /// Which.
    pub code: Coded<'a, FactCode>,
    /// For people.
    pub label: Cow<'a, str>,
    /// The value.
    pub value: FactValue<'a>,
    /// Where in the trace it is from.
    pub source: Cow<'a, str>,
    /// What it rests on.
    pub capability: CapabilityKind,
}

/// The value of a fact, with its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum FactValue<'a> {
    /// Nanoseconds.
    DurationNs(u64),
    /// Bytes.
    Bytes(u64),
    /// How many.
    Count(u64),
    /// A text.
    Text(Cow<'a, str>),
}

words! {
    /// The facts, in the order in which a packet holds them.
    FactCode {
        /// The duration of the measured span.
        OuterWallTime "outer_wall_time",
        /// The digest of the gradient contract.
        GradientManifestSha256 "gradient_manifest_sha256",
        /// How many parameters the gradient contract expects.
        GradientManifestEntries "gradient_manifest_entries",
        /// How many families it has.
        GradientFamilyExpectations "gradient_family_expectations",
        /// How many gradients of the graph are not present.
        GradientObservations "gradient_observations",
        /// The greatest sum of live storage.
        LogicalPeakLiveBytes "logical_peak_live_bytes",
        /// How many operations produce an activation.
        ActivationOperations "activation_operations",
    }
}

/// One thing that stands out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding<'a> {
    /// Which.
    pub code: Coded<'a, FindingCode>,
    /// For people.
    pub summary: Cow<'a, str>,
    /// The span, operation or report it is about.
    pub source: Cow<'a, str>,
    /// What it rests on.
    pub requires: Vec<CapabilityKind>,
    /// The weakest of these.
    pub qualification: CapabilityLevel,
}

words! {
    /// The findings, in the order in which a packet holds them.
    FindingCode {
        /// The span with the most host time of its own inside the measured region.
        LargestObservedHostSelfTime "largest_observed_host_self_time",
        /// The span that kept a device busy longest.
        LargestObservedDeviceBusyTime "largest_observed_device_busy_time",
        /// The activation whose operation took the most host time.
        LargestActivationHostTime "largest_activation_host_time",
        /// The kernel with the most time in Nsight's summary.
        LargestNsightKernelTotal "largest_nsight_kernel_total",
    }
}
