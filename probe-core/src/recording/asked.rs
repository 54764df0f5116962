//! What a recording starts with: the level and the foci that the environment asks for, else the run.

use std::env::VarError;

use tmrun_formats::Level;

use super::{ProfileRun, RecordError};

impl ProfileRun {
    /// The level and the foci (patterns, and what they ask for) that a recording of this run starts with:
    /// those of TMRUN_LEVEL and TMRUN_FOCUS, where they are set, else the run's own. Of a pattern that is
    /// there twice the last holds. What a run promises of itself has to be built from these.
    ///
    /// # Errors
    ///
    /// TMRUN_LEVEL is no level, or TMRUN_FOCUS no list of foci.
    pub fn asked_for(&self) -> Result<(Level, Vec<(String, Level)>), RecordError> {
        Ok((level(self)?, foci(self)?))
    }
}

/// TMRUN_LEVEL, else what the run asks for, else timing.
fn level(run: &ProfileRun) -> Result<Level, RecordError> {
    match variable("TMRUN_LEVEL") {
        Ok(Some(text)) => text.parse().map_err(|_| RecordError::Level { found: text }),
        Ok(None) => Ok(run.level.unwrap_or(Level::TIMING)),
        Err(found) => Err(RecordError::Level { found }),
    }
}

/// TMRUN_FOCUS (`pattern=level`, more of them behind commas), else what the run asks for.
fn foci(run: &ProfileRun) -> Result<Vec<(String, Level)>, RecordError> {
    let Some(text) = variable("TMRUN_FOCUS").map_err(|found| RecordError::FocusList { found })?
    else {
        return Ok(run.foci.clone());
    };
    let items = text.split(',').filter(|item| !item.is_empty());
    let pair = |item: &'_ str| {
        let (pattern, level) = item.rsplit_once('=')?;
        Some((pattern.to_owned(), level.parse().ok()?))
    };
    let foci: Option<Vec<(String, Level)>> = items.map(pair).collect();
    foci.ok_or(RecordError::FocusList { found: text })
}

/// A variable of the environment; the error is what it is when it is no text.
fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => Err(text.to_string_lossy().into_owned()),
    }
}
