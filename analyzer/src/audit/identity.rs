//! Whether a trace belongs to the analysis and the build it is held against.

use serde::Serialize;
use std::fmt;
use tmrun_formats::runtime::RuntimeDocument;

/// What the trace should carry. A field is compared when both sides have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedIdentity {
    /// The static analysis.
    pub analysis_id: Option<String>,
    /// The build.
    pub build_id: Option<String>,
}

/// Which identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityField {
    /// The static analysis.
    AnalysisId,
    /// The build.
    BuildId,
}

impl fmt::Display for IdentityField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentityField::AnalysisId => "analysis_id",
            IdentityField::BuildId => "build_id",
        })
    }
}

/// An identity that is another than the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdentityMismatch {
    /// Which.
    pub field: IdentityField,
    /// What was expected.
    pub expected: String,
    /// What the trace carries.
    pub observed: String,
}

/// Both fields: which one, what is expected, what the trace has.
fn fields<'a>(
    trace: &'a RuntimeDocument,
    expected: &'a ExpectedIdentity,
) -> [(IdentityField, Option<&'a str>, Option<&'a str>); 2] {
    [
        (
            IdentityField::AnalysisId,
            expected.analysis_id.as_deref(),
            trace.run.analysis_id.as_deref(),
        ),
        (IdentityField::BuildId, expected.build_id.as_deref(), trace.run.build_id.as_deref()),
    ]
}

/// The identities that both sides have and that differ.
#[must_use]
pub fn check_identity(
    trace: &RuntimeDocument,
    expected: &ExpectedIdentity,
) -> Vec<IdentityMismatch> {
    fields(trace, expected)
        .into_iter()
        .filter_map(|(field, expected, observed)| {
            let (expected, observed) = (expected?, observed?);
            (expected != observed).then(|| IdentityMismatch {
                field,
                expected: expected.to_owned(),
                observed: observed.to_owned(),
            })
        })
        .collect()
}

/// The identities that were expected and that the trace does not carry.
pub(super) fn unchecked(
    trace: &RuntimeDocument,
    expected: &ExpectedIdentity,
) -> Vec<IdentityField> {
    fields(trace, expected)
        .into_iter()
        .filter_map(|(field, expected, observed)| {
            (expected.is_some() && observed.is_none()).then_some(field)
        })
        .collect()
}
