//! Why a recording was not converted.

use std::io;

use tmrun_formats::Phase;
use tmrun_formats::runtime::{Refusal, WriteError};

use super::phase::{PhaseSet, phase_name};

/// Why a recording was not converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// One document has one phase, and the recording has several.
    #[error(
        "the recording has steps of the phases {found}, and a trace is of one: choose with --phase"
    )]
    SeveralPhases {
        /// Those that it has.
        found: PhaseSet,
    },
    /// Version 1 does not say which step an observation belongs to.
    #[error(
        "candle-graph/runtime/1 has no steps, and the recording has steps {first} to {last}: choose \
         one with --step, or a newer --schema"
    )]
    SeveralSteps {
        /// The least.
        first: u64,
        /// The greatest.
        last: u64,
    },
    /// There is no such step.
    #[error("no step {step}{}: {}", of_phase(*phase), steps(*found))]
    NoStep {
        /// The step.
        step: u64,
        /// The phase that was asked for as well.
        phase: Option<Phase>,
        /// The least and the greatest that there are.
        found: Option<(u64, u64)>,
    },
    /// There is nothing of this phase.
    #[error("nothing of phase {}: the recording has {found}", phase_name(*phase))]
    NoPhase {
        /// The phase.
        phase: Phase,
        /// Those that it has.
        found: PhaseSet,
    },
    /// The output could not be written.
    #[error("the trace could not be written: {0}")]
    Io(#[from] io::Error),
    /// An observation that no reader would take was about to be written.
    #[error("an observation breaks the rules of the format: {0}; this is an error of tmrun")]
    Refused(#[from] Refusal),
    /// The document could not be put together.
    #[error("the document could not be put together: {0}; this is an error of tmrun")]
    Assembly(WriteError),
}

impl ConvertError {
    /// Whether another command line would do: what was asked for does not determine one trace.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::SeveralPhases { .. } | Self::SeveralSteps { .. })
    }
}

fn of_phase(phase: Option<Phase>) -> String {
    phase.map_or_else(String::new, |phase| format!(" of phase {}", phase_name(phase)))
}

fn steps(found: Option<(u64, u64)>) -> String {
    match found {
        Some((first, last)) if first == last => format!("the only one is {first}"),
        Some((first, last)) => format!("they are {first} to {last}"),
        None => "there is none".to_owned(),
    }
}
