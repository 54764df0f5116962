//! A plan of captures, and what became of it.

use crate::published::is_safe_path;
use crate::published::label::label;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use thiserror::Error;

label! {
    /// The schema of a [`CampaignPlan`].
    CampaignSchema = "candle-graph/campaign/1"
}

label! {
    /// The schema of a [`CampaignStatus`].
    CampaignStatusSchema = "candle-graph/campaign-status/1"
}

/// Which steps of one training are to be captured, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignPlan<'a> {
    /// The label.
    pub schema: CampaignSchema,
    /// The caller's name for it.
    pub campaign_id: Cow<'a, str>,
    /// What every capture runs.
    pub entrypoint: Cow<'a, str>,
    /// The captures.
    pub planned: Vec<PlannedCapture<'a>>,
}

/// One capture of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCapture<'a> {
    /// The step to capture.
    pub capture_step: u64,
    /// Its bundle, relative to the plan's directory.
    pub bundle: Cow<'a, str>,
}

/// Why a plan cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// A field with nothing but white space.
    #[error("{field} is blank: expected a name")]
    Blank {
        /// The field.
        field: &'static str,
    },
    /// No captures.
    #[error("planned is empty: expected at least one capture")]
    Empty,
    /// A step that stands there before.
    #[error("capture_step {capture_step} is planned twice")]
    StepTwice {
        /// The step.
        capture_step: u64,
    },
    /// A path that leaves the plan's directory, or is not written as one is.
    #[error(
        "bundle {bundle:?}: expected a relative path below the plan's directory, with forward slashes and without `.` and `..`"
    )]
    Path {
        /// The path.
        bundle: String,
    },
    /// A path that stands there before.
    #[error("bundle {bundle:?} is planned twice")]
    BundleTwice {
        /// The path.
        bundle: String,
    },
}

impl CampaignPlan<'_> {
    /// Whether the plan can be followed.
    ///
    /// # Errors
    ///
    /// The first rule of [`PlanFault`] that is broken.
    pub fn check(&self) -> Result<(), PlanFault> {
        for (field, value) in [("campaign_id", &self.campaign_id), ("entrypoint", &self.entrypoint)]
        {
            if value.trim().is_empty() {
                return Err(PlanFault::Blank { field });
            }
        }
        if self.planned.is_empty() {
            return Err(PlanFault::Empty);
        }
        let (mut steps, mut bundles) = (HashSet::new(), HashSet::new());
        for &PlannedCapture { capture_step, ref bundle } in &self.planned {
            if !steps.insert(capture_step) {
                return Err(PlanFault::StepTwice { capture_step });
            }
            if !is_safe_path(bundle) {
                return Err(PlanFault::Path { bundle: bundle.to_string() });
            }
            if !bundles.insert(bundle.as_ref()) {
                return Err(PlanFault::BundleTwice { bundle: bundle.to_string() });
            }
        }
        Ok(())
    }
}

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignStatus<'a> {
    /// The label.
    pub schema: CampaignStatusSchema,
    /// The plan's name.
    pub campaign_id: Cow<'a, str>,
    /// What every capture runs.
    pub entrypoint: Cow<'a, str>,
    /// How many captures there are.
    pub planned: u64,
    /// How many are published.
    pub published: u64,
    /// How many are missing.
    pub missing: u64,
    /// All others.
    pub failed: u64,
    /// Each of them, by step.
    pub captures: Vec<CaptureStatus<'a>>,
}

/// What became of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatus<'a> {
    /// The planned step.
    pub capture_step: u64,
    /// The planned bundle.
    pub bundle: Cow<'a, str>,
    /// What lies there.
    pub state: CaptureState<'a>,
}

/// What lies where a bundle was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CaptureState<'a> {
    /// Nothing.
    Missing,
    /// A verified bundle of a complete capture; whether it is structurally valid is not asked.
    Published {
        /// Its run.
        run_id: Cow<'a, str>,
        /// The SHA-256 of its manifest.
        manifest_sha256: Cow<'a, str>,
    },
    /// A verified bundle of a failed capture.
    FailedRun {
        /// Its run.
        run_id: Cow<'a, str>,
        /// Why it failed.
        reason: Option<Cow<'a, str>>,
    },
    /// Something that does not verify, or whose trace cannot be read.
    VerificationFailed {
        /// Why.
        message: Cow<'a, str>,
    },
    /// A verified bundle of another entrypoint or step.
    IdentityMismatch {
        /// What differs.
        message: Cow<'a, str>,
    },
}
