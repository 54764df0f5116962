//! The run as a whole.

use super::{HealthCode, Issues, Subject};
use tmrun_formats::trace::RunOutcome;

/// Where the run comes from, how it ended, and what there is to be one of.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    let Subject { trace, coverage, .. } = subject;
    if let Err(error) = trace.run.check_provenance() {
        issues.add(HealthCode::RunProvenanceInvalid, format!("meta: {error}"));
    }
    let terminal = &trace.terminal;
    let failed = terminal.outcome == RunOutcome::Failed;
    let blank = terminal.reason.as_deref().is_none_or(|reason| reason.trim().is_empty());
    if !failed && terminal.reason.is_some() {
        let message = "terminal: outcome is complete: expected no reason";
        issues.add(HealthCode::CompleteWithFailureReason, message);
    }
    if failed && blank {
        let message = "terminal: outcome is failed: expected a reason that is not blank";
        issues.add(HealthCode::FailedWithoutReason, message);
    }
    let (ended, latest) = (terminal.timestamp_ns, trace.latest_ns());
    if ended < latest {
        let message = format!(
            "terminal: timestamp_ns is {ended}: expected at least {latest}, when the last event ends"
        );
        issues.add(HealthCode::TerminalPrecedesEvidence, message);
    }
    if failed {
        let reason = terminal.reason.as_deref().unwrap_or("no reason is given");
        issues.add(HealthCode::CaptureFailed, format!("the capture failed: {reason}"));
    }
    let ids = trace.by_id.iter().filter_map(|&span| trace.spans.get(span));
    if let Some((span, _)) = ids.clone().zip(ids.skip(1)).find(|(span, next)| span.id == next.id) {
        let message = format!("span {:?} is there twice: expected an id of its own", span.id);
        issues.add(HealthCode::DuplicateSpanId, message);
    }
    if coverage.root_spans != 1 {
        let message =
            format!("{} spans without parent_id: expected exactly one", coverage.root_spans);
        issues.add(HealthCode::RootCount, message);
    }
    if coverage.measured_spans != 1 && !failed {
        let message = format!("{} measured spans: expected exactly one", coverage.measured_spans);
        issues.add(HealthCode::MeasurementCount, message);
    }
}
