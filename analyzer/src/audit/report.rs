//! The report: the neighbour's keys, and [`Extra`] beside them.

use super::extra::Extra;
use super::identity::IdentityMismatch;
use serde::Serialize;
use tmrun_formats::runtime::GradientFact;

/// How far a fact may be built upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationConfidence {
    /// The observations agree.
    Proven,
    /// They do not, and none of them wins.
    Unknown,
}

/// A parameter: the variable builder it hangs under, and its key there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ParamIdentity {
    /// The variable builder.
    pub root: String,
    /// The key.
    pub key: String,
}

impl ParamIdentity {
    pub(super) fn of(fact: &GradientFact) -> Self {
        ParamIdentity { root: fact.root.clone(), key: fact.key.clone() }
    }
}

/// The attribute in which tensor observations differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorConflictKind {
    /// Element type.
    Dtype,
    /// Device.
    Device,
    /// Dimensions.
    Shape,
    /// Contiguity.
    Layout,
    /// Whether a gradient is tracked.
    RequiresGrad,
}

impl TensorConflictKind {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TensorConflictKind::Dtype => "dtype",
            TensorConflictKind::Device => "device",
            TensorConflictKind::Shape => "shape",
            TensorConflictKind::Layout => "layout",
            TensorConflictKind::RequiresGrad => "requires_grad",
        }
    }
}

/// One static tensor that was observed to be two things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorConflict {
    /// The static tensor.
    pub static_id: String,
    /// The attribute.
    pub kind: TensorConflictKind,
    /// Every value it was seen with, sorted.
    pub values: Vec<String>,
    /// Always unknown.
    pub confidence: ObservationConfidence,
}

/// One parameter whose facts contradict each other and are no series of steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GradientConflict {
    /// The parameter.
    pub identity: ParamIdentity,
    /// Every state it was seen in, sorted.
    pub states: Vec<String>,
    /// The facts, sorted.
    pub event_ids: Vec<String>,
    /// Always unknown.
    pub confidence: ObservationConfidence,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Parameters that last had no gradient.
    pub missing_gradients: Vec<ParamIdentity>,
    /// Parameters whose last gradient was not finite.
    pub non_finite_gradients: Vec<ParamIdentity>,
    /// Parameters whose last gradient was zero.
    pub zero_gradients: Vec<ParamIdentity>,
    /// Static tensors that were two things.
    pub tensor_conflicts: Vec<TensorConflict>,
    /// Parameters with contradictory facts.
    pub gradient_conflicts: Vec<GradientConflict>,
    /// Identities that are not the expected ones.
    pub identity_mismatches: Vec<IdentityMismatch>,
    /// The first step with a gradient that was not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_non_finite_step: Option<u64>,
    /// Where values were at the end of their range.
    pub saturating_activations: Vec<ParamIdentity>,
    /// What the neighbour does not look at.
    pub extra: Extra,
}

impl AuditReport {
    /// Whether the neighbour would call the trace clean: saturation and non-finite *values* do not
    /// count there.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.missing_gradients.is_empty()
            && self.non_finite_gradients.is_empty()
            && self.zero_gradients.is_empty()
            && !self.has_unknown_evidence_for_the_neighbour()
    }

    /// Whether some evidence contradicts itself or belongs to another run.
    #[must_use]
    pub fn has_unknown_evidence(&self) -> bool {
        self.has_unknown_evidence_for_the_neighbour()
            || !self.extra.same_step_gradient_conflicts.is_empty()
    }

    fn has_unknown_evidence_for_the_neighbour(&self) -> bool {
        !self.tensor_conflicts.is_empty()
            || !self.gradient_conflicts.is_empty()
            || !self.identity_mismatches.is_empty()
    }

    /// Whether there is anything at all that `--strict` refuses: everything but remarks.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        !self.is_clean() || !self.saturating_activations.is_empty() || self.extra.has_findings()
    }
}
