//! What a recording starts with: the level and the foci that the environment asks for, else the run.

use std::env::VarError;

use tmrun_formats::{Level, NameId};

use super::{ProfileRun, RecordError};
use crate::clock::Clock;
use crate::probe::ProbeRef;

/// TMRUN_LEVEL, else what the run asks for, else timing.
pub(super) fn level(run: &ProfileRun) -> Result<Level, RecordError> {
    match variable("TMRUN_LEVEL") {
        Ok(Some(text)) => text.parse().map_err(|_| RecordError::Level { found: text }),
        Ok(None) => Ok(run.level.unwrap_or(Level::TIMING)),
        Err(found) => Err(RecordError::Level { found }),
    }
}

/// TMRUN_FOCUS (`pattern=level`, more of them behind commas), else what the run asks for.
pub(super) fn foci<C: Clock>(
    probe: &ProbeRef<'_, C>,
    run: &ProfileRun,
) -> Result<Vec<(NameId, Level)>, RecordError> {
    let of_run = run.foci.iter().map(|(pattern, level)| (pattern.as_str(), *level));
    let Some(text) = variable("TMRUN_FOCUS").map_err(|found| RecordError::FocusList { found })?
    else {
        return probe.foci(of_run).map_err(RecordError::Focus);
    };
    let items = text.split(',').filter(|item| !item.is_empty());
    let pair = |item: &'_ str| {
        let (pattern, level) = item.rsplit_once('=')?;
        Some((pattern.to_owned(), level.parse().ok()?))
    };
    let foci: Option<Vec<(String, Level)>> = items.map(pair).collect();
    let foci = foci.ok_or_else(|| RecordError::FocusList { found: text.clone() })?;
    let foci = foci.iter().map(|(pattern, level)| (pattern.as_str(), *level));
    probe.foci(foci).map_err(RecordError::Focus)
}

/// A variable of the environment; the error is what it is when it is no text.
fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => Err(text.to_string_lossy().into_owned()),
    }
}
