//! Single numbers and texts.

use tmrun_formats::evidence::{
    Activations, Capabilities, CapabilityKind, Fact, FactCode, FactValue, Health, Memory,
};
use tmrun_formats::trace::{GradientState, TraceDocument};

/// What may be said, in the order of [`FactCode`]; nothing of a capability that has no evidence.
#[must_use]
pub fn of<'d>(
    trace: &'d TraceDocument<'_>,
    health: &Health<'_>,
    capabilities: &Capabilities<'_>,
    memory: &Memory<'_>,
    activations: &Activations<'_>,
) -> Vec<Fact<'d>> {
    let mut facts = Vec::new();
    let mut add = |code: FactCode, value, source: &'static str, capability| {
        let label = label(code).into();
        facts.push(Fact { code: code.into(), label, value, source: source.into(), capability });
    };
    let count = |length: usize| FactValue::Count(u64::try_from(length).unwrap_or(u64::MAX));

    if capabilities.outer_wall_time.level.is_available() {
        let mut spans = trace.by_id.iter().filter_map(|&span| trace.spans.get(span));
        if let Some(wall) = spans.find_map(|span| span.duration_ns.filter(|_| span.measured)) {
            let (value, kind) = (FactValue::DurationNs(wall), CapabilityKind::OuterWallTime);
            add(FactCode::OuterWallTime, value, "measured_span", kind);
        }
    }
    if let Some(contract) = &trace.run.capture_contract.gradient_contract
        && capabilities.gradient_coverage.level.is_available()
    {
        let (source, kind) = ("capture_contract.gradient_contract", CapabilityKind::Gradients);
        let digest = FactValue::Text((&*contract.manifest_sha256).into());
        add(FactCode::GradientManifestSha256, digest, source, kind);
        add(FactCode::GradientManifestEntries, count(contract.expected.len()), source, kind);
        add(FactCode::GradientFamilyExpectations, count(contract.families.len()), source, kind);
    }
    if health.capture_complete && health.structurally_valid && !trace.gradients.is_empty() {
        let absent = trace.gradients.iter().filter(|one| one.state != GradientState::Present);
        let (value, kind) = (count(absent.count()), CapabilityKind::Gradients);
        add(FactCode::GradientObservations, value, "trace.gradient", kind);
    }
    if let Some(peak) = memory.logical.as_ref().and_then(|logical| logical.peak.as_ref())
        && capabilities.logical_memory_coverage.level.is_available()
    {
        let (value, kind) = (FactValue::Bytes(peak.live_bytes), CapabilityKind::LogicalMemory);
        add(FactCode::LogicalPeakLiveBytes, value, "logical_storage_lifetimes", kind);
    }
    if capabilities.activation_coverage.level.is_available() {
        let (value, kind) = (count(activations.operations.len()), CapabilityKind::Activations);
        add(FactCode::ActivationOperations, value, "trace activation category links", kind);
    }
    facts
}

const fn label(code: FactCode) -> &'static str {
    match code {
        FactCode::OuterWallTime => "Time of the measured region",
        FactCode::GradientManifestSha256 => "Digest of the gradient contract",
        FactCode::GradientManifestEntries => "Parameters of the gradient contract",
        FactCode::GradientFamilyExpectations => "Families of the gradient contract",
        FactCode::GradientObservations => "Gradients that are not present",
        FactCode::LogicalPeakLiveBytes => "Most storage live at once",
        FactCode::ActivationOperations => "Operations that produce an activation",
    }
}
