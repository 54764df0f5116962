//! What a writer refuses before it opens a trace.

use super::CoverageLevel;
use std::fmt;
use thiserror::Error;

/// Whether a text says nothing.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Why no trace is opened for a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A text that says nothing.
    #[error("{field} is blank: expected a text")]
    Blank {
        /// The field.
        field: &'static str,
    },
    /// The captured step is counted from one.
    #[error("capture_step is 0: steps are counted from 1")]
    CaptureStep,
    /// More steps before the captured one than there can be.
    #[error(
        "warmup_steps is {warmup_steps}: expected fewer than capture_step, which is {capture_step}"
    )]
    Warmup {
        /// How many are said to have run before it.
        warmup_steps: u64,
        /// The captured step.
        capture_step: u64,
    },
    /// Its identity.
    #[error("comparison_identity: {0}")]
    Identity(#[from] IdentityError),
    /// Its contract.
    #[error("capture_contract: {0}")]
    Contract(#[from] ContractError),
}

/// Why an identity identifies nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A text that says nothing.
    #[error("{field} is blank: expected a text, or nothing where it is optional")]
    Blank {
        /// The field.
        field: &'static str,
    },
    /// A count of nothing.
    #[error("{field} is 0: expected at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
}

/// What is wrong with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelFault {
    /// It says nothing.
    Blank,
    /// It is there twice.
    Twice,
    /// It is none of the required ones.
    NotRequired,
    /// It is in the other class as well.
    InBoth,
}

impl fmt::Display for LabelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabelFault::Blank => "is blank: expected the name of a span",
            LabelFault::Twice => "is there twice: expected it once",
            LabelFault::NotRequired => "is not among required_semantic_labels",
            LabelFault::InBoth => "is in gpu_expected_semantic_labels too: expected it in one list",
        })
    }
}

/// Why a contract cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContractError {
    /// A label that cannot be held against the spans.
    #[error("{list}: {label:?} {fault}")]
    Label {
        /// The list.
        list: &'static str,
        /// The label.
        label: String,
        /// What is wrong with it.
        fault: LabelFault,
    },
    /// A label of no class, where others have one.
    #[error(
        "required_semantic_labels: {label:?} is in neither gpu_expected_semantic_labels nor \
         cpu_only_semantic_labels: expected it in one of them, or both lists empty"
    )]
    Unclassified {
        /// The label.
        label: String,
    },
    /// All activations, but not all operations.
    #[error("activations are complete, operations {operations}: expected complete operations")]
    ActivationsWithoutOperations {
        /// How many operations.
        operations: CoverageLevel,
    },
    /// All activations, and nothing that says which outputs are some.
    #[error(
        "activations are complete, tensors and logical_memory none: expected one of them at least \
         partial"
    )]
    ActivationsWithoutTensors,
    /// All gradients, and nobody says which these are.
    #[error("gradients are complete: expected a gradient_contract, found none")]
    NoGradientContract,
    /// A contract of gradients that are not all observed.
    #[error("gradients are {gradients}: expected complete ones with a gradient_contract")]
    UnusedGradientContract {
        /// How many gradients.
        gradients: CoverageLevel,
    },
    /// The gradients' contract.
    #[error("gradient_contract: {0}")]
    Gradients(#[from] GradientContractError),
}

/// Why a gradients' contract cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GradientContractError {
    /// No parameters.
    #[error("expected is empty: expected at least one parameter")]
    NoParameters,
    /// No families.
    #[error("families is empty: expected at least one family")]
    NoFamilies,
    /// The digest of another manifest.
    #[error("manifest_sha256 is {found:?}: expected {expected}, the digest of what is declared")]
    Digest {
        /// The digest.
        expected: String,
        /// What is declared to be it.
        found: String,
    },
    /// A parameter whose text says nothing.
    #[error("expected[{index}].{field} is blank: expected a text")]
    BlankParameter {
        /// Which parameter, from zero.
        index: usize,
        /// The field.
        field: &'static str,
    },
    /// A parameter that is there twice.
    #[error("expected holds root {root:?}, key {key:?} twice: expected it once")]
    ParameterTwice {
        /// Its root.
        root: String,
        /// Its key.
        key: String,
    },
    /// A family without a name.
    #[error("a family's name is blank: expected a text")]
    BlankFamily,
    /// A family that is there twice.
    #[error("families holds {family:?} twice: expected it once")]
    FamilyTwice {
        /// Its name.
        family: String,
    },
    /// A family without parameters.
    #[error("family {family:?} has no parameter: expected at least one")]
    EmptyFamily {
        /// Its name.
        family: String,
    },
    /// Parameters of a family that is not declared.
    #[error("family {family:?} has parameters: expected it among families")]
    UnknownFamily {
        /// Its name.
        family: String,
    },
    /// A minimum of what must not be there.
    #[error("family {family:?} is inactive with min_present {min_present}: expected 0")]
    InactiveMinimum {
        /// Its name.
        family: String,
        /// The minimum.
        min_present: usize,
    },
    /// A minimum that says nothing, or is more than there can be.
    #[error("family {family:?} has min_present {min_present}: expected 1 to {members}")]
    Minimum {
        /// Its name.
        family: String,
        /// The minimum.
        min_present: usize,
        /// How many parameters the family has.
        members: usize,
    },
}
