//! A trace that does not hold together, in one line.

use std::fmt;

use tmrun_formats::evidence::{Health, HealthSeverity};

/// Why a published trace is structurally invalid. It is published all the same: that something is wrong
/// is evidence too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// How many errors there are.
    pub errors: u64,
    /// The code of the first.
    pub code: String,
    /// What it says.
    pub message: String,
}

impl Invalid {
    pub(super) fn of(health: &Health<'_>) -> Option<Self> {
        let is_error = |severity| severity == HealthSeverity::Error;
        let mut errors = health.issues.iter().filter(|issue| is_error(issue.severity));
        let first = errors.next()?;
        Some(Self {
            errors: (errors.count() as u64).saturating_add(1),
            code: first.code.as_str().to_owned(),
            message: first.message.clone().into_owned(),
        })
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errors, code, message } = self;
        match errors {
            1 => write!(f, "structurally invalid: 1 error, {code}: {message}"),
            _ => write!(f, "structurally invalid: {errors} errors, the first {code}: {message}"),
        }
    }
}
