//! Whether a trace holds together, and what it lacks.

mod coverage;
mod edges;
mod events;
mod gradients;
mod labels;
mod memory;
mod run;
mod spans;

use super::Index;
use rayon::prelude::*;
use std::borrow::Cow;
use tmrun_formats::evidence::{Health, HealthCode, HealthCoverage, HealthIssue, HealthSeverity};
use tmrun_formats::trace::{RunOutcome, TraceDocument};

/// One group of rules: what breaks them is added to the issues.
type Check = fn(&Subject<'_>, &mut Issues);

/// Every check, in the order in which issues are listed.
const CHECKS: [Check; 12] = [
    run::check,
    spans::check,
    events::name_spans,
    events::take_time,
    events::lie_in_spans,
    events::measure,
    edges::check,
    memory::check,
    gradients::check,
    coverage::check,
    labels::check_required,
    labels::check_classes,
];

/// What is checked.
struct Subject<'d> {
    trace: &'d TraceDocument<'d>,
    index: &'d Index<'d>,
    coverage: HealthCoverage,
}

/// What was found, in order.
struct Issues {
    failed: bool,
    found: Vec<HealthIssue<'static>>,
}

impl Issues {
    /// Adds an issue. Warnings become gaps, each of which is listed once: where several of one code
    /// are one gap, they say the same.
    fn add(&mut self, code: HealthCode, message: impl Into<Cow<'static, str>>) {
        let (severity, message) = (code.severity().of(self.failed), message.into());
        self.found.push(HealthIssue { severity, code: code.into(), message });
    }
}

/// Holds a trace against every rule.
#[must_use]
pub fn of(trace: &TraceDocument<'_>, index: &Index<'_>) -> Health<'static> {
    let failed = trace.terminal.outcome == RunOutcome::Failed;
    let coverage = coverage::of(trace, index);
    let subject = Subject { trace, index, coverage };
    let found = CHECKS.par_iter().map(|check| {
        let mut issues = Issues { failed, found: Vec::new() };
        check(&subject, &mut issues);
        issues.found
    });
    let found: Vec<_> = found.collect();
    let issues: Vec<_> = found.into_iter().flatten().collect();
    let structurally_valid = issues.iter().all(|issue| issue.severity != HealthSeverity::Error);
    Health { structurally_valid, capture_complete: !failed, issues, coverage }
}

/// What `code` is of an issue, if it is one of this version.
pub(crate) fn codes<'h>(
    health: &'h Health<'_>,
) -> impl Iterator<Item = (HealthCode, HealthSeverity)> + 'h {
    health.issues.iter().filter_map(|issue| Some((issue.code.known()?, issue.severity)))
}
