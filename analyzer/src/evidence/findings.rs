//! What stands out.

use std::borrow::Cow;
use tmrun_formats::evidence::{
    Activation, Activations, Capabilities, CapabilityKind, CapabilityLevel, Finding, FindingCode,
    Gpu, Graph, Health,
};

/// What stands out, in the order of [`FindingCode`].
#[must_use]
pub fn of<'d>(
    health: &Health<'_>,
    capabilities: &Capabilities<'_>,
    graph: Option<&Graph<'d>>,
    activations: &Activations<'d>,
    gpu: &Gpu<'_>,
) -> Vec<Finding<'d>> {
    let mut findings = Vec::new();
    let mut add = |code: FindingCode, summary, source: Cow<'d, str>, requires, qualification| {
        findings.push(Finding {
            code: code.into(),
            summary: Cow::Owned(summary),
            source,
            requires,
            qualification,
        });
    };
    let summary = graph.map(|graph| &graph.summary);
    if let Some(span) = summary.and_then(|summary| summary.slowest_host_spans.first()) {
        let what = format!(
            "{:?}: most host time of its own in the measured region, {} ({} in all; {}, {} of {})",
            span.name,
            Ms(span.measured_overlap_self_time_ns),
            Ms(span.host_self_time_ns),
            span.scope,
            Ms(span.measured_overlap_duration_ns),
            Ms(span.full_duration_ns),
        );
        let level = capabilities.nested_host_time.level;
        let code = FindingCode::LargestObservedHostSelfTime;
        add(code, what, span.id.clone(), vec![CapabilityKind::NestedHostTime], level);
    }
    if let Some(span) = summary.and_then(|summary| summary.slowest_device_spans.first()) {
        let (name, device) = (&span.name, &span.device);
        let what = format!("{name:?}: kept {device:?} busy longest, {}", Ms(span.device_busy_ns));
        let level = capabilities.nested_device_time.level;
        let code = FindingCode::LargestObservedDeviceBusyTime;
        add(code, what, span.id.clone(), vec![CapabilityKind::NestedDeviceTime], level);
    }
    if let Some(operation) = slowest(activations)
        && capabilities.activation_coverage.level.is_available()
        && activations.host_time.level.is_available()
    {
        let what = format!(
            "{:?}: most host time of the operations that produce an activation, {}; not the device's",
            operation.name,
            Ms(operation.observed_host_duration_ns),
        );
        let requires = vec![CapabilityKind::Activations, CapabilityKind::NestedHostTime];
        let level = activations.host_time.level;
        let code = FindingCode::LargestActivationHostTime;
        add(code, what, operation.id.clone(), requires, level);
    }
    let (correlation, binding) = (&capabilities.gpu_correlation, &capabilities.provenance_binding);
    if let Some(kernel) = gpu.kernels.first()
        && (health.capture_complete && health.structurally_valid)
        && (correlation.level.is_available() && binding.level.is_available())
    {
        let what = format!(
            "{:?}: greatest total of Nsight's kernels, {}",
            kernel.name,
            Ms(kernel.total_ns)
        );
        let requires = vec![CapabilityKind::GpuCorrelation, CapabilityKind::ProvenanceBinding];
        let level = weaker(correlation.level, binding.level);
        let code = FindingCode::LargestNsightKernelTotal;
        add(code, what, "nsight.cuda_gpu_kern_sum".into(), requires, level);
    }
    findings
}

/// The activation whose operation took the most host time; of several the one with the least id.
fn slowest<'a, 'd>(activations: &'a Activations<'d>) -> Option<&'a Activation<'d>> {
    let operations = activations.operations.iter();
    operations.max_by(|left, right| {
        let by_time = left.observed_host_duration_ns.cmp(&right.observed_host_duration_ns);
        by_time.then_with(|| right.id.cmp(&left.id))
    })
}

/// The weaker of two levels, both with evidence.
fn weaker(left: CapabilityLevel, right: CapabilityLevel) -> CapabilityLevel {
    if left == CapabilityLevel::Complete { right } else { left }
}

/// Nanoseconds, in milliseconds.
struct Ms(u64);

impl std::fmt::Display for Ms {
    #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ms", self.0 as f64 / 1e6)
    }
}
