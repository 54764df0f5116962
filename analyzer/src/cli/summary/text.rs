//! The answer for people: the verdict first, then what is wrong, then what can be said.

use std::borrow::Cow;
use std::fmt::Write;

use tmrun::source::Subject;
use tmrun_formats::evidence::{
    CapabilityKind, Evidence, FactValue, Health, HealthIssue, HealthSeverity,
};

use super::super::text::{Table, duration, number, plain, plural, steps};

/// The most rows of one table; `--json` has all.
const ROWS: usize = 12;

pub(super) fn page(name: &str, subject: &Subject<'_>, evidence: &Evidence<'_>) -> String {
    let mut out = String::new();
    let run = &evidence.provenance;
    field(&mut out, "trace", &plain(name));
    field(&mut out, "verdict", &verdict(&evidence.health));
    let line = format!("{}, {}, {}", run.entrypoint, run.phase, steps(subject));
    field(&mut out, "run", &format!("{} on {}", plain(&line), plain(&run.device)));
    field(&mut out, "run id", &plain(&run.run_id));
    field(&mut out, "events", &events(&evidence.health));
    issues(&mut out, &evidence.health.issues);
    capabilities(&mut out, evidence);
    findings(&mut out, evidence);
    out
}

fn field(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "{name:<9} {value}");
}

fn verdict(health: &Health<'_>) -> Cow<'static, str> {
    let count =
        |severity| health.issues.iter().filter(|issue| issue.severity == severity).count() as u64;
    let counts = format!(
        "{}, {}",
        plural(count(HealthSeverity::Error), "error"),
        plural(count(HealthSeverity::Warning), "warning")
    );
    let verdict = match (health.structurally_valid, health.capture_complete) {
        (true, true) => "valid, complete",
        (true, false) => "valid, of a failed capture",
        (false, true) => "STRUCTURALLY INVALID",
        (false, false) => "STRUCTURALLY INVALID, of a failed capture",
    };
    format!("{verdict}; {counts}").into()
}

fn events(health: &Health<'_>) -> String {
    let coverage = &health.coverage;
    let counts = [
        (coverage.spans, "span"),
        (coverage.operations, "operation"),
        (coverage.tensors, "tensor"),
        (coverage.memory_events, "memory event"),
        (coverage.device_memory_samples, "device memory sample"),
        (coverage.device_intervals, "device interval"),
        (coverage.gradients, "gradient"),
        (coverage.call_edges, "call edge"),
        (coverage.data_edges, "data edge"),
    ];
    let there = counts.into_iter().filter(|(count, _)| *count > 0);
    let there: Vec<_> = there.map(|(count, noun)| plural(count, noun)).collect();
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

/// Issues, errors first, one row a code with the first of it.
fn issues(out: &mut String, issues: &[HealthIssue<'_>]) {
    let mut codes: Vec<(&HealthIssue<'_>, u64)> = Vec::new();
    for issue in issues {
        let same = |(other, _): &&mut (&HealthIssue<'_>, u64)| other.code == issue.code;
        match codes.iter_mut().find(same) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => codes.push((issue, 1)),
        }
    }
    if codes.is_empty() {
        return;
    }
    codes.sort_by_key(|(issue, _)| issue.severity);
    let mut table = Table::new(&["issue", "", "count", "the first"]).right(&[2]);
    for (issue, count) in codes {
        let (code, message) = (plain(issue.code.as_str()), plain(&issue.message));
        let severity = issue.severity.to_string();
        table.row([code.into_owned(), severity, number(count), message.into_owned()]);
    }
    out.push('\n');
    table.write(out);
}

fn capabilities(out: &mut String, evidence: &Evidence<'_>) {
    let mut table = Table::new(&["capability", "level", "because"]);
    for &kind in CapabilityKind::ALL {
        let capability = evidence.capabilities.get(kind);
        let reason = plain(&capability.reason).into_owned();
        table.row([kind.to_string(), capability.level.to_string(), reason]);
    }
    out.push('\n');
    table.write(out);
}

fn findings(out: &mut String, evidence: &Evidence<'_>) {
    if !evidence.facts.is_empty() {
        let mut table = Table::new(&["fact", "value"]);
        for fact in &evidence.facts {
            let value = match &fact.value {
                #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
                FactValue::DurationNs(ns) => duration(*ns as f64),
                FactValue::Bytes(bytes) => plural(*bytes, "byte"),
                FactValue::Count(count) => number(*count),
                FactValue::Text(text) => plain(text).into_owned(),
            };
            table.row([plain(&fact.label).into_owned(), value]);
        }
        out.push('\n');
        table.write(out);
    }
    if !evidence.findings.is_empty() {
        out.push('\n');
    }
    for finding in &evidence.findings {
        let _ = writeln!(out, "  {} ({})", plain(&finding.summary), finding.qualification);
    }
    let hosts = evidence.graph.iter().flat_map(|graph| &graph.summary.slowest_host_spans);
    let mut table =
        Table::new(&["slowest on the host", "own time", "span", "scope"]).right(&[1, 2]);
    let mut rows = 0_usize;
    for span in hosts.take(ROWS) {
        #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
        let [own, whole] = [span.measured_overlap_self_time_ns, span.full_duration_ns]
            .map(|ns| duration(ns as f64));
        table.row([plain(&span.name).into_owned(), own, whole, span.scope.to_string()]);
        rows = rows.saturating_add(1);
    }
    if rows > 0 {
        out.push('\n');
        table.write(out);
    }
}
