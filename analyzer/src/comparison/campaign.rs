//! A plan of captures held against what lies where it says.

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tmrun_formats::comparison::{
    CampaignPlan, CampaignStatus, CampaignStatusSchema, CaptureState, CaptureStatus, PlanFault,
};
use tmrun_formats::trace::RunOutcome;

use super::load::{Bundle, LoadError, bundle};
use crate::input::document;

/// A plan that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no plan.
    #[error("{}: {error}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// It is one that contradicts itself.
    #[error("{}: {fault}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// How.
        fault: PlanFault,
    },
    /// A series was asked for, and bundles are not there.
    #[error("{}: not published: {}", path.display(), states.join(", "))]
    Unpublished {
        /// The file.
        path: PathBuf,
        /// Each of them, with what is there instead.
        states: Vec<String>,
    },
}

/// What became of each capture of a plan. Bundles lie where the plan says, from its own directory.
///
/// # Errors
/// A plan that cannot be followed.
pub fn campaign_status(path: &Path) -> Result<CampaignStatus<'static>, CampaignError> {
    let named = || path.to_owned();
    let text = document(path).map_err(|source| CampaignError::File { path: named(), source })?;
    let plan: CampaignPlan<'static> = serde_json::from_slice(&text)
        .map_err(|error| CampaignError::Json { path: named(), error })?;
    plan.check().map_err(|fault| CampaignError::Plan { path: named(), fault })?;
    let CampaignPlan { campaign_id, entrypoint, planned, .. } = plan;
    let captures = planned.into_par_iter().map(|planned| {
        let root = folder(path).join(&*planned.bundle);
        let state = state(&root, &entrypoint, planned.capture_step);
        CaptureStatus { capture_step: planned.capture_step, bundle: planned.bundle, state }
    });
    let mut captures: Vec<_> = captures.collect();
    captures.sort_by_key(|capture| capture.capture_step);
    let count = |is: fn(&CaptureState<'_>) -> bool| {
        captures.iter().filter(|capture| is(&capture.state)).count() as u64
    };
    let missing = count(|state| matches!(state, CaptureState::Missing));
    let published = count(|state| matches!(state, CaptureState::Published { .. }));
    let planned = captures.len() as u64;
    Ok(CampaignStatus {
        schema: CampaignStatusSchema,
        campaign_id,
        entrypoint,
        planned,
        published,
        missing,
        failed: planned.saturating_sub(published).saturating_sub(missing),
        captures,
    })
}

/// The bundles of a plan, by step.
///
/// # Errors
/// A plan that cannot be followed, and one of which not everything is published.
pub fn published(path: &Path) -> Result<Vec<PathBuf>, CampaignError> {
    let status = campaign_status(path)?;
    let is_published =
        |capture: &&CaptureStatus<'_>| matches!(capture.state, CaptureState::Published { .. });
    let others = status.captures.iter().filter(|capture| !is_published(capture));
    let states: Vec<_> = others
        .map(|CaptureStatus { capture_step, bundle, state }| {
            format!("step {capture_step} ({bundle}: {})", word(state))
        })
        .collect();
    if !states.is_empty() {
        return Err(CampaignError::Unpublished { path: path.to_owned(), states });
    }
    Ok(status.captures.iter().map(|capture| folder(path).join(&*capture.bundle)).collect())
}

/// What a state is called in JSON.
#[must_use]
pub const fn word(state: &CaptureState<'_>) -> &'static str {
    match state {
        CaptureState::Missing => "missing",
        CaptureState::Published { .. } => "published",
        CaptureState::FailedRun { .. } => "failed_run",
        CaptureState::VerificationFailed { .. } => "verification_failed",
        CaptureState::IdentityMismatch { .. } => "identity_mismatch",
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new("."))
}

fn state(root: &Path, entrypoint: &str, capture_step: u64) -> CaptureState<'static> {
    if !root.exists() {
        return CaptureState::Missing;
    }
    let found = bundle(root, |bundle| Ok(judge(bundle, entrypoint, capture_step)));
    found.unwrap_or_else(|error: LoadError| CaptureState::VerificationFailed {
        message: error.to_string().into(),
    })
}

fn judge(bundle: &Bundle<'_>, entrypoint: &str, capture_step: u64) -> CaptureState<'static> {
    let (run, terminal) = (&bundle.trace.run, &bundle.trace.terminal);
    let message = if run.entrypoint != entrypoint {
        format!("entrypoint is {:?}: expected {entrypoint:?}, as planned", run.entrypoint)
    } else if run.capture_step != capture_step {
        format!("capture_step is {}: expected {capture_step}, as planned", run.capture_step)
    } else {
        let run_id = run.run_id.clone().into();
        return match terminal.outcome {
            RunOutcome::Complete => CaptureState::Published {
                run_id,
                manifest_sha256: bundle.receipt.manifest_sha256.clone(),
            },
            RunOutcome::Failed => CaptureState::FailedRun {
                run_id,
                reason: terminal.reason.as_deref().map(|reason| reason.to_owned().into()),
            },
        };
    };
    CaptureState::IdentityMismatch { message: message.into() }
}
