//! The issues, one rule and one severity each.

use super::HealthSeverity;
use crate::words::words;

/// How bad an issue is, by how the capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeverityRule {
    /// An error of any capture.
    Error,
    /// A warning of any capture.
    Warning,
    /// An error of a complete capture, a warning of a failed one.
    ErrorUnlessFailed,
}

impl SeverityRule {
    /// The severity in a capture that `failed` or did not.
    #[must_use]
    pub const fn of(self, failed: bool) -> HealthSeverity {
        match self {
            Self::Error => HealthSeverity::Error,
            Self::Warning => HealthSeverity::Warning,
            Self::ErrorUnlessFailed if failed => HealthSeverity::Warning,
            Self::ErrorUnlessFailed => HealthSeverity::Error,
        }
    }
}

/// The vocabulary and its severities, from one table.
macro_rules! health_codes {
    ($($(#[$doc:meta])* $code:ident $text:literal $rule:ident,)*) => {
        words! {
            /// What can be wrong with a trace or missing from it, about in the order of the checks.
            ///
            /// *Blank* is empty or white space. A check that says *only when complete* is not made of a
            /// failed capture; everything else holds for both.
            HealthCode {
                $($(#[$doc])* $code $text,)*
            }
        }

        impl HealthCode {
            /// How bad it is.
            #[must_use]
            pub const fn severity(self) -> SeverityRule {
                match self {
                    $(Self::$code => SeverityRule::$rule,)*
                }
            }
        }
    };
}

health_codes! {
    /// A blank run id, correlation id, entrypoint, timestamp or device; capture step 0; as many warm-up
    /// steps as the capture step or more; in the comparison identity a blank string (also of an optional
    /// field that is there), or a batch or accumulation of 0.
    RunProvenanceInvalid "run_provenance_invalid" Error,
    /// The terminal says complete and gives a reason.
    CompleteWithFailureReason "complete_with_failure_reason" Error,
    /// The terminal says failed and gives no reason, or a blank one.
    FailedWithoutReason "failed_without_reason" Error,
    /// The terminal is earlier than something that the trace holds.
    TerminalPrecedesEvidence "terminal_precedes_evidence" Error,
    /// The terminal says failed.
    CaptureFailed "capture_failed" Warning,
    /// Two spans of one id.
    DuplicateSpanId "duplicate_span_id" Error,
    /// Not exactly one span has no parent.
    RootCount "root_count" Error,
    /// Not exactly one span is measured; only when complete.
    MeasurementCount "measurement_count" Error,
    /// A span did not end.
    OpenSpan "open_span" ErrorUnlessFailed,
    /// A span's parent is not there.
    UnknownParent "unknown_parent" Error,
    /// A span begins before its parent or ends after it, where both ended. No tolerance.
    ChildOutsideParent "child_outside_parent" Error,
    /// From a span upwards a span is met twice.
    SpanCycle "span_cycle" Error,
    /// An operation, tensor, tensor summary, allocation, free or device interval names no span.
    UnknownSpan "unknown_span" Error,
    /// A device interval of duration 0.
    EmptyDeviceInterval "empty_device_interval" Error,
    /// An operation begins before its span or ends after it, where the span ended.
    OperationOutsideSpan "operation_outside_span" Error,
    /// An allocation or free is before its span or after it, where the span ended.
    MemoryOutsideSpan "memory_outside_span" Error,
    /// A sample of device memory without a single number.
    EmptyDeviceMemorySample "empty_device_memory_sample" Error,
    /// A call edge names no span.
    UnknownCallEdgeSpan "unknown_call_edge_span" Error,
    /// A call edge that is not from a parent to its child.
    CallEdgeHierarchyMismatch "call_edge_hierarchy_mismatch" Error,
    /// A call edge whose duration is not the child's.
    CallEdgeDurationMismatch "call_edge_duration_mismatch" Error,
    /// A data edge with an empty end; white space is not empty here.
    EmptyDataEdgeEndpoint "empty_data_edge_endpoint" Error,
    /// A data edge with an end that no tensor and no operation has.
    UnknownDataEdgeTensor "unknown_data_edge_tensor" Error,
    /// Live storage that is allocated again or freed with another size.
    AllocationSizeMismatch "allocation_size_mismatch" Error,
    /// Live storage that the same tensor allocates again; another tensor's is an alias.
    DuplicateAllocation "duplicate_allocation" Error,
    /// A free of storage that is not live.
    UnpairedFree "unpaired_free" Error,
    /// Storage that is live at the end.
    RetainedAllocations "retained_allocations" Warning,
    /// A gradient with a blank event id.
    EmptyGradientEventId "empty_gradient_event_id" Error,
    /// A gradient with a blank root or key.
    EmptyGradientParameterKey "empty_gradient_parameter_key" Error,
    /// Two gradients of one event id.
    DuplicateGradientEventId "duplicate_gradient_event_id" Error,
    /// A gradient's norm does not go with its state: present has one that is finite and above zero, zero
    /// has `0.0` (not `-0.0`), missing and non-finite have none.
    GradientStateNormInconsistent "gradient_state_norm_inconsistent" Error,
    /// Gradients are declared complete without a gradient contract.
    GradientContractMissing "gradient_contract_missing" Error,
    /// A gradient contract where gradients are not declared complete.
    GradientContractWithoutCompleteCoverage "gradient_contract_without_complete_coverage" Error,
    /// A gradient contract that breaks its own rules.
    GradientContractInvalid "gradient_contract_invalid" Error,
    /// A gradient that was recorded more than once, where there is a contract.
    GradientManifestDuplicateKey "gradient_manifest_duplicate_key" Error,
    /// A gradient that the contract does not expect.
    GradientManifestUndeclaredKey "gradient_manifest_undeclared_key" Error,
    /// A gradient of the contract that was not recorded.
    GradientManifestMissingKey "gradient_manifest_missing_key" ErrorUnlessFailed,
    /// A family with a gradient that is not finite.
    GradientFamilyNonFinite "gradient_family_non_finite" Error,
    /// An active family with fewer present gradients than it must have; of a failed capture judged only
    /// where all of its members were recorded.
    GradientActiveFamilyBelowMinimum "gradient_active_family_below_minimum" Error,
    /// An inactive family with a gradient that is not missing; zero counts too.
    GradientInactiveFamilyLeakage "gradient_inactive_family_leakage" Error,
    /// A family that depends on data, with present gradients but fewer than it must have; of a failed
    /// capture judged only where all of its members were recorded.
    GradientConditionalFamilyBelowMinimum "gradient_conditional_family_below_minimum" Error,
    /// No operations.
    OperationsAbsent "operations_absent" Warning,
    /// No tensors.
    TensorsAbsent "tensors_absent" Warning,
    /// No allocations and frees.
    LogicalMemoryAbsent "logical_memory_absent" Warning,
    /// No samples of device memory.
    PhysicalMemoryAbsent "physical_memory_absent" Warning,
    /// No device intervals.
    DeviceTimingAbsent "device_timing_absent" Warning,
    /// No gradients, in training.
    GradientsAbsent "gradients_absent" Warning,
    /// No forward span, in training.
    ForwardAbsent "forward_absent" Warning,
    /// No backward span, in training.
    BackwardAbsent "backward_absent" Warning,
    /// No optimizer span, in training.
    OptimizerAbsent "optimizer_absent" Warning,
    /// A blank required label.
    EmptyRequiredSemanticLabel "empty_required_semantic_label" ErrorUnlessFailed,
    /// A label that is required twice.
    DuplicateRequiredSemanticLabel "duplicate_required_semantic_label" ErrorUnlessFailed,
    /// A required label that is not the name of exactly one span.
    RequiredSemanticLabelCardinality "required_semantic_label_cardinality" ErrorUnlessFailed,
    /// A blank label in a class, of the GPU or of the CPU.
    EmptySemanticLabelClassification "empty_semantic_label_classification" ErrorUnlessFailed,
    /// A label that stands in one class twice.
    DuplicateSemanticLabelClassification "duplicate_semantic_label_classification" ErrorUnlessFailed,
    /// A label of a class that is not required.
    UnrequiredSemanticLabelClassification "unrequired_semantic_label_classification" ErrorUnlessFailed,
    /// A label of both classes.
    OverlappingSemanticLabelClassification "overlapping_semantic_label_classification" ErrorUnlessFailed,
    /// There are classes, and a required label is in none or a label of them is not required.
    IncompleteSemanticLabelPartition "incomplete_semantic_label_partition" ErrorUnlessFailed,
}
