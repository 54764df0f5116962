//! What is asked for.

use tmrun_formats::Phase;
use tmrun_formats::runtime::{SCHEMA_V1, SCHEMA_V2, SCHEMA_V3, Section};

/// What to convert, and into what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The version of the schema.
    pub schema: Schema,
    /// One document, or a line for each observation.
    pub form: Form,
    /// Only observations of this phase. A recording of both phases needs it.
    pub phase: Option<Phase>,
    /// Only observations of this step.
    pub step: Option<u64>,
}

/// The versions of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Schema {
    /// Tensors, operations and gradients of one step.
    V1,
    /// Adds steps and value ranges.
    V2,
    /// Adds durations, edge timings and the phase.
    #[default]
    V3,
}

impl Schema {
    /// Its label in the output.
    pub const fn label(self) -> &'static str {
        match self {
            Self::V1 => SCHEMA_V1,
            Self::V2 => SCHEMA_V2,
            Self::V3 => SCHEMA_V3,
        }
    }

    /// Whether it has this collection.
    pub const fn has(self, section: Section) -> bool {
        match section {
            Section::Tensors | Section::Operations | Section::Gradients => true,
            Section::Values => matches!(self, Self::V2 | Self::V3),
            Section::EdgeTimings => matches!(self, Self::V3),
        }
    }

    /// Whether its observations say in which step they were made.
    pub const fn has_steps(self) -> bool {
        matches!(self, Self::V2 | Self::V3)
    }

    /// Whether its operations have durations, and its run a phase.
    pub const fn has_durations_and_phase(self) -> bool {
        matches!(self, Self::V3)
    }
}

/// The forms of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// One JSON document in one line.
    #[default]
    Document,
    /// JSONL: a meta line, and a line for each observation.
    Lines,
}
