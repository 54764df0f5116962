//! What the first line of a trace says of the run: where it comes from, and what it promises.

mod contract;
mod error;
mod gradients;
mod identity;

pub use contract::{CaptureContract, CoverageLevel, MeasurementScope};
pub use error::{ContractError, GradientContractError, IdentityError, LabelFault, RunError};
pub use gradients::{
    ExpectedGradient, GRADIENT_MANIFEST_SCHEMA, GradientContract, GradientFamilyContract,
    GradientFamilyExpectation,
};
pub use identity::ComparisonIdentity;

use crate::words::words;
use error::is_blank;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// What the captured step does.
    TracePhase {
        /// A training update.
        Train "train",
        /// An inference invocation.
        Infer "infer",
    }
}

words! {
    /// What the durations of spans are.
    TimingMode {
        /// Time on the host; what a device still does may go on behind it.
        Host "host",
        /// Time on the host between synchronizations with the device.
        DeviceSynchronized "device_synchronized",
    }
}

/// One run, of which one step was captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRun {
    /// This run and no other.
    pub run_id: String,
    /// Shared with range labels and artifacts of other tools.
    pub correlation_id: String,
    /// The function that was observed, such as `model::train_step`.
    pub entrypoint: String,
    /// What the captured step does.
    pub phase: TracePhase,
    /// When it was captured, as `YYYY-MM-DDTHH:MM:SS.mmmZ`.
    pub timestamp: String,
    /// The captured update or invocation, counted from one.
    pub capture_step: u64,
    /// How many ran before it.
    pub warmup_steps: u64,
    /// The device asked for, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Whether the device is synchronized with before and behind the measured region. What the spans
    /// inside it measure is the timing mode's.
    #[serde(default)]
    pub measured_region_device_synchronized: bool,
    /// What the durations of spans are.
    pub timing_mode: TimingMode,
    /// How much of each plane is observed.
    pub capture_contract: CaptureContract,
    /// What has to be equal for two runs to be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison_identity: Option<ComparisonIdentity>,
    /// The workload's own facts, such as batch size and source revision.
    pub tags: BTreeMap<String, String>,
    /// The version of candle that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candle_version: Option<String>,
}

impl TraceRun {
    /// Holds what a writer must hold before it opens a trace: where the run comes from, and its
    /// contract. Readers take a run that breaks these rules, and report them.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn check(&self) -> Result<(), RunError> {
        self.check_provenance()?;
        Ok(self.capture_contract.check()?)
    }

    /// The same without the contract.
    ///
    /// # Errors
    /// As [`check`](TraceRun::check).
    pub fn check_provenance(&self) -> Result<(), RunError> {
        let named = [
            ("run_id", &self.run_id),
            ("correlation_id", &self.correlation_id),
            ("entrypoint", &self.entrypoint),
            ("timestamp", &self.timestamp),
            ("device", &self.device),
        ];
        if let Some((field, _)) = named.into_iter().find(|(_, value)| is_blank(value)) {
            return Err(RunError::Blank { field });
        }
        if self.capture_step == 0 {
            return Err(RunError::CaptureStep);
        }
        if self.warmup_steps >= self.capture_step {
            let (warmup_steps, capture_step) = (self.warmup_steps, self.capture_step);
            return Err(RunError::Warmup { warmup_steps, capture_step });
        }
        if let Some(identity) = &self.comparison_identity {
            identity.check()?;
        }
        Ok(())
    }
}
