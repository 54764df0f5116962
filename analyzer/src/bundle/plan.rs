//! A capture that is planned and not made yet.

use std::path::{Path, PathBuf};

use tmrun_formats::trace::TraceRun;

use super::error::PublishError;
use super::place::Place;
use super::publish::Publication;
use super::retry::reconcile;

/// What there is of a planned capture.
#[derive(Debug)]
pub enum Planned {
    /// It is published.
    Published(Box<Publication>),
    /// Nothing is at its place.
    Free {
        /// A hidden file beside the destination that nobody else has the name of, to record it into.
        recording: PathBuf,
    },
}

/// Looks whether a planned capture is published, and makes the directories around its place if not.
///
/// # Errors
///
/// When something else is at the destination, or it lies in a bundle.
pub fn plan(destination: &Path, run: &TraceRun) -> Result<Planned, PublishError> {
    let place = Place::of(destination)?;
    place.refuse_nested()?;
    if let Some(mut found) = reconcile(&place, run)? {
        // A run that is not made yet has no identity to differ by.
        found.differing.retain(|field| field.field != "run_id");
        return Ok(Planned::Published(Box::new(Publication::found(found, Vec::new()))));
    }
    place.make_parents()?;
    Ok(Planned::Free { recording: place.captured() })
}
