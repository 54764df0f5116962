//! How far each question can be answered.

use super::health;
use crate::trace::{Refuted, Told};
use std::borrow::Cow;
use tmrun_formats::evidence::{
    Capabilities, Capability, CapabilityLevel, Gpu, GpuBinding, GpuStatus, Health, HealthCode,
    HealthSeverity,
};
use tmrun_formats::trace::{CoverageLevel, SCHEMA, TraceDocument};

/// Judges every capability: what was declared against what was seen, then both against the trace's
/// health. `activations` is how many operations were found to produce an activation. What was refuted of
/// what was declared, as is `told`, is in the contract already, and here the reason says so.
#[must_use]
pub fn of<'d>(
    trace: &'d TraceDocument<'_>,
    health: &Health<'_>,
    activations: usize,
    gpu: &Gpu<'d>,
    told: Option<&Told>,
) -> Capabilities<'d> {
    let contract = &trace.run.capture_contract;
    let mut capabilities = Capabilities {
        structural_trace: structural_trace(health),
        outer_wall_time: outer_wall_time(trace, health),
        nested_host_time: nested_host_time(health, told),
        nested_device_time: observed(
            contract.device_timing,
            trace.device_intervals.len(),
            "device intervals",
            "device_interval events",
        ),
        operation_coverage: observed(
            contract.operations,
            trace.ops.len(),
            "trace op events",
            "op events",
        ),
        activation_coverage: match contract.activations_fault() {
            Some(fault) => at(CapabilityLevel::Invalid, "capture contract", fault.to_string()),
            None => observed(
                contract.activations,
                activations,
                "activation category links",
                "operations with an activation",
            ),
        },
        tensor_coverage: observed(
            contract.tensors,
            trace.tensors.len(),
            "trace tensor events",
            "tensor events",
        ),
        gradient_coverage: gradient_coverage(trace, health),
        logical_memory_coverage: observed(
            contract.logical_memory,
            trace.memory.len(),
            "storage lifetime events",
            "memory events",
        ),
        physical_memory_coverage: observed(
            contract.physical_memory,
            trace.device_memory.len(),
            "device memory samples",
            "device_memory events",
        ),
        gpu_correlation: gpu_correlation(health, gpu),
        provenance_binding: provenance_binding(gpu),
    };
    let refuted = told.into_iter().flat_map(|told| &told.refuted);
    refuted.for_each(|refuted| tell(&mut capabilities, refuted));
    if !health.structurally_valid {
        refuse(&mut capabilities);
    }
    if !health.capture_complete {
        cut_short(&mut capabilities);
    }
    capabilities
}

/// Says what was declared of a plane and why that does not hold.
fn tell(capabilities: &mut Capabilities<'_>, refuted: &Refuted) {
    let capability = match refuted.plane {
        "operations" => &mut capabilities.operation_coverage,
        "activations" => &mut capabilities.activation_coverage,
        "tensors" => &mut capabilities.tensor_coverage,
        "gradients" => &mut capabilities.gradient_coverage,
        "logical_memory" => &mut capabilities.logical_memory_coverage,
        "physical_memory" => &mut capabilities.physical_memory_coverage,
        "device_timing" => &mut capabilities.nested_device_time,
        _ => return,
    };
    let Refuted { plane, declared, because, .. } = refuted;
    capability.reason = format!("{plane}: declared {}, but {because}", declared.name()).into();
}

fn at<'d>(
    level: CapabilityLevel,
    source: impl Into<Cow<'d, str>>,
    reason: impl Into<Cow<'d, str>>,
) -> Capability<'d> {
    Capability { level, source: source.into(), reason: reason.into() }
}

/// What invalidates the rest: the rules of the trace's own schema.
fn validation() -> String {
    format!("{SCHEMA} validation")
}

fn structural_trace<'d>(health: &Health<'_>) -> Capability<'d> {
    match health.structurally_valid {
        true => at(CapabilityLevel::Complete, validation(), "no issue of the trace is an error"),
        false => at(
            CapabilityLevel::Invalid,
            validation(),
            "the trace has issues that are errors; health lists them",
        ),
    }
}

fn outer_wall_time<'d>(trace: &TraceDocument<'_>, health: &Health<'_>) -> Capability<'d> {
    let closed = trace.spans.iter().filter(|span| span.measured && span.duration_ns.is_some());
    match (health.structurally_valid, health.capture_complete, closed.count()) {
        (false, _, _) => at(
            CapabilityLevel::Invalid,
            validation(),
            "a structurally invalid trace gives no wall time",
        ),
        (true, false, _) => Capability::unavailable("the capture failed: there is no wall time"),
        (true, true, 1) => at(
            CapabilityLevel::Complete,
            "measured span",
            "there is one measured span, and it ended",
        ),
        (true, true, closed) => at(
            CapabilityLevel::Invalid,
            "measured span",
            format!("{closed} measured spans ended: expected exactly one"),
        ),
    }
}

/// The host times of the spans that there are. The level is the format's: it does not fall when spans are
/// lost, and the reason says so.
fn nested_host_time<'d>(health: &Health<'_>, told: Option<&Told>) -> Capability<'d> {
    let lost = told.and_then(|told| told.host_time.as_deref());
    match (health.structurally_valid, health.capture_complete) {
        (false, _) => at(
            CapabilityLevel::Invalid,
            validation(),
            "a structurally invalid trace gives no host times of spans",
        ),
        (true, false) => {
            Capability::unavailable("the capture failed: there are no host times of spans")
        }
        (true, true) => {
            let ended = "every span ended inside its parent";
            let reason = match lost {
                Some(lost) => format!("{ended}, of those that were kept: {lost}").into(),
                None => Cow::Borrowed(ended),
            };
            at(CapabilityLevel::Complete, "span wall intervals", reason)
        }
    }
}

/// A plane of which there are `seen` events, by what was declared of it.
fn observed<'d>(
    declared: CoverageLevel,
    seen: usize,
    source: &'static str,
    what: &str,
) -> Capability<'d> {
    use CapabilityLevel::{Complete, Invalid, Partial};
    match (declared, seen) {
        (CoverageLevel::Complete, 0) => {
            at(Invalid, source, format!("declared complete: expected {what}, found none"))
        }
        (CoverageLevel::Complete, _) => at(Complete, source, format!("{what}: declared complete")),
        (CoverageLevel::Partial, 0) => {
            Capability::unavailable(format!("{what}: declared partial, found none"))
        }
        (CoverageLevel::Partial, _) => at(Partial, source, format!("{what}: declared partial")),
        (CoverageLevel::None, 0) => {
            Capability::unavailable(format!("{what}: none declared, none found"))
        }
        (CoverageLevel::None, _) => {
            at(Partial, source, format!("{what}: found some, though none are declared"))
        }
    }
}

fn gradient_coverage<'d>(trace: &TraceDocument<'_>, health: &Health<'_>) -> Capability<'d> {
    const SOURCE: &str = "exact gradient contract";
    let contract = &trace.run.capture_contract;
    if contract.gradients != CoverageLevel::Complete {
        let seen = trace.gradients.len();
        return observed(contract.gradients, seen, "trace gradient events", "gradient events");
    }
    let Some(exact) = &contract.gradient_contract else {
        let reason = "gradients are declared complete: expected a gradient_contract";
        return at(CapabilityLevel::Invalid, SOURCE, reason);
    };
    let mut level = CapabilityLevel::Complete;
    for (code, severity) in health::codes(health) {
        match (code, severity) {
            (HealthCode::GradientContractInvalid, _) => {
                let reason = "the gradient_contract breaks its own rules; health says which";
                return at(CapabilityLevel::Invalid, SOURCE, reason);
            }
            (code, HealthSeverity::Error) if speaks_of_contract(code) => {
                level = CapabilityLevel::Invalid;
            }
            (code, HealthSeverity::Warning)
                if speaks_of_contract(code) && level == CapabilityLevel::Complete =>
            {
                level = CapabilityLevel::Partial;
            }
            _ => {}
        }
    }
    let reason = match level {
        CapabilityLevel::Complete => format!(
            "{} parameters of {} families, as in gradient_contract {}",
            exact.expected.len(),
            exact.families.len(),
            exact.manifest_sha256
        ),
        CapabilityLevel::Partial => {
            "the capture ended before every parameter of the gradient_contract was seen".to_owned()
        }
        _ => "the gradients are not those of the gradient_contract; health says why".to_owned(),
    };
    at(level, SOURCE, reason)
}

/// Whether an issue is of gradients under a contract. That nothing was seen in training is said of
/// any run.
fn speaks_of_contract(code: HealthCode) -> bool {
    use HealthCode as Code;
    matches!(
        code,
        Code::EmptyGradientEventId
            | Code::DuplicateGradientEventId
            | Code::GradientStateNormInconsistent
            | Code::GradientContractMissing
            | Code::GradientContractWithoutCompleteCoverage
            | Code::GradientContractInvalid
            | Code::GradientManifestDuplicateKey
            | Code::GradientManifestUndeclaredKey
            | Code::GradientManifestMissingKey
            | Code::GradientFamilyNonFinite
            | Code::GradientActiveFamilyBelowMinimum
            | Code::GradientInactiveFamilyLeakage
            | Code::GradientConditionalFamilyBelowMinimum
    )
}

fn gpu_correlation<'d>(health: &Health<'_>, gpu: &Gpu<'d>) -> Capability<'d> {
    let unmet = |code| {
        matches!(
            code,
            HealthCode::DuplicateRequiredSemanticLabel
                | HealthCode::RequiredSemanticLabelCardinality
        )
    };
    if health::codes(health).any(|(code, _)| unmet(code)) {
        return at(
            CapabilityLevel::Invalid,
            "trace semantic labels",
            "required_semantic_labels: expected each to name exactly one span; health says which does \
             not",
        );
    }
    let reason = |reason: &Option<Cow<'d, str>>, otherwise: &'static str| {
        reason.clone().unwrap_or(Cow::Borrowed(otherwise))
    };
    let projection = "Nsight NVTX projection";
    match gpu.status {
        GpuStatus::Available if gpu.correlation.complete => at(
            CapabilityLevel::Complete,
            projection,
            "each label that the GPU is expected to show is projected once",
        ),
        GpuStatus::Available => {
            let reason = reason(&gpu.correlation.reason, "not every label is projected once");
            at(CapabilityLevel::Partial, projection, reason)
        }
        GpuStatus::Unavailable => {
            Capability::unavailable(reason(&gpu.reason, "there are no reports of Nsight"))
        }
        GpuStatus::Failed => {
            let reason = reason(&gpu.reason, "Nsight's reports could not be read");
            at(CapabilityLevel::Invalid, "Nsight normalization", reason)
        }
    }
}

fn provenance_binding<'d>(gpu: &Gpu<'_>) -> Capability<'d> {
    use CapabilityLevel::{Complete, Invalid, Partial};
    match (gpu.status, gpu.provenance.binding) {
        (GpuStatus::Unavailable, _) => {
            Capability::unavailable("no files of Nsight were given, so none are bound")
        }
        (GpuStatus::Failed, _) => {
            at(Invalid, "Nsight artifact manifest", "the files of Nsight could not be loaded")
        }
        (_, GpuBinding::Bound) => at(
            Complete,
            "capture-manifest.json",
            "run, correlation and digests are those of this trace",
        ),
        (_, GpuBinding::Partial) => at(
            Partial,
            "Nsight artifact hashes",
            "the files have digests, but no manifest says that they are of this trace",
        ),
        (_, GpuBinding::Mismatch) => at(
            Invalid,
            "capture-manifest.json",
            "run, correlation, labels or digests are not those of this trace",
        ),
    }
}

/// An invalid trace vouches for nothing that is linked to it: neither memory of the device nor the
/// origin of Nsight's files is.
fn refuse(capabilities: &mut Capabilities<'_>) {
    for capability in [
        &mut capabilities.nested_device_time,
        &mut capabilities.operation_coverage,
        &mut capabilities.activation_coverage,
        &mut capabilities.tensor_coverage,
        &mut capabilities.gradient_coverage,
        &mut capabilities.logical_memory_coverage,
        &mut capabilities.gpu_correlation,
    ] {
        if capability.level.is_available() {
            let reason = "a structurally invalid trace vouches for no event of it";
            *capability = at(CapabilityLevel::Invalid, validation(), reason);
        }
    }
}

/// A failed capture is complete in nothing.
fn cut_short(capabilities: &mut Capabilities<'_>) {
    for capability in [
        &mut capabilities.nested_device_time,
        &mut capabilities.operation_coverage,
        &mut capabilities.activation_coverage,
        &mut capabilities.tensor_coverage,
        &mut capabilities.gradient_coverage,
        &mut capabilities.logical_memory_coverage,
        &mut capabilities.physical_memory_coverage,
        &mut capabilities.gpu_correlation,
        &mut capabilities.provenance_binding,
    ] {
        if capability.level == CapabilityLevel::Complete {
            capability.level = CapabilityLevel::Partial;
            capability.reason = format!("{}, but the capture failed", capability.reason).into();
        }
    }
}
