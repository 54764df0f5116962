//! What a trace may be asked about.

use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How far one question can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability<'a> {
    /// How far.
    pub level: CapabilityLevel,
    /// What the answer rests on; `none` where there is none.
    pub source: Cow<'a, str>,
    /// Why not further, or why so far.
    pub reason: Cow<'a, str>,
}

impl<'a> Capability<'a> {
    /// One without evidence.
    pub fn unavailable(reason: impl Into<Cow<'a, str>>) -> Self {
        let level = CapabilityLevel::Unavailable;
        Self { level, source: "none".into(), reason: reason.into() }
    }
}

impl Default for Capability<'_> {
    /// What a packet of before the capability is read as.
    fn default() -> Self {
        Self::unavailable("the packet does not speak of it")
    }
}

words! {
    /// How far a capability goes.
    CapabilityLevel {
        /// No evidence.
        Unavailable "unavailable",
        /// Some of what happened.
        Partial "partial",
        /// All of it.
        Complete "complete",
        /// Evidence that contradicts itself or what was declared.
        Invalid "invalid",
    }
}

impl CapabilityLevel {
    /// Whether there is evidence to show.
    #[must_use]
    pub const fn is_available(self) -> bool {
        matches!(self, Self::Partial | Self::Complete)
    }
}

words! {
    /// The capabilities, in the order of [`Capabilities`].
    CapabilityKind {
        /// The trace is a tree that holds together.
        StructuralTrace "structural_trace",
        /// The time of the measured region.
        OuterWallTime "outer_wall_time",
        /// Host times inside it.
        NestedHostTime "nested_host_time",
        /// Device times inside it.
        NestedDeviceTime "nested_device_time",
        /// Operations.
        Operations "operations",
        /// Operations that produce activations.
        Activations "activations",
        /// Tensors.
        Tensors "tensors",
        /// Gradients.
        Gradients "gradients",
        /// Storage as the program allocates it.
        LogicalMemory "logical_memory",
        /// Memory as the device reports it.
        PhysicalMemory "physical_memory",
        /// Which of Nsight's ranges are which spans.
        GpuCorrelation "gpu_correlation",
        /// Whether Nsight's files are of this run.
        ProvenanceBinding "provenance_binding",
    }
}

/// All capabilities of one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities<'a> {
    /// Of [`CapabilityKind::StructuralTrace`].
    pub structural_trace: Capability<'a>,
    /// Of [`CapabilityKind::OuterWallTime`].
    pub outer_wall_time: Capability<'a>,
    /// Of [`CapabilityKind::NestedHostTime`].
    pub nested_host_time: Capability<'a>,
    /// Of [`CapabilityKind::NestedDeviceTime`].
    pub nested_device_time: Capability<'a>,
    /// Of [`CapabilityKind::Operations`].
    pub operation_coverage: Capability<'a>,
    /// Of [`CapabilityKind::Activations`].
    #[serde(default)]
    pub activation_coverage: Capability<'a>,
    /// Of [`CapabilityKind::Tensors`].
    #[serde(default)]
    pub tensor_coverage: Capability<'a>,
    /// Of [`CapabilityKind::Gradients`].
    #[serde(default)]
    pub gradient_coverage: Capability<'a>,
    /// Of [`CapabilityKind::LogicalMemory`].
    pub logical_memory_coverage: Capability<'a>,
    /// Of [`CapabilityKind::PhysicalMemory`].
    pub physical_memory_coverage: Capability<'a>,
    /// Of [`CapabilityKind::GpuCorrelation`].
    pub gpu_correlation: Capability<'a>,
    /// Of [`CapabilityKind::ProvenanceBinding`].
    pub provenance_binding: Capability<'a>,
}

impl<'a> Capabilities<'a> {
    /// The capability of a kind.
    #[must_use]
    pub const fn get(&self, kind: CapabilityKind) -> &Capability<'a> {
        match kind {
            CapabilityKind::StructuralTrace => &self.structural_trace,
            CapabilityKind::OuterWallTime => &self.outer_wall_time,
            CapabilityKind::NestedHostTime => &self.nested_host_time,
            CapabilityKind::NestedDeviceTime => &self.nested_device_time,
            CapabilityKind::Operations => &self.operation_coverage,
            CapabilityKind::Activations => &self.activation_coverage,
            CapabilityKind::Tensors => &self.tensor_coverage,
            CapabilityKind::Gradients => &self.gradient_coverage,
            CapabilityKind::LogicalMemory => &self.logical_memory_coverage,
            CapabilityKind::PhysicalMemory => &self.physical_memory_coverage,
            CapabilityKind::GpuCorrelation => &self.gpu_correlation,
            CapabilityKind::ProvenanceBinding => &self.provenance_binding,
        }
    }
}
