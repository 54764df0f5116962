//! Memory, the recorder's own cost, and what is missing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tmrun::scan::Recording;
use tmrun_formats::Level;
use tmrun_formats::wire::Kind;

use super::{Asked, mib, ms};
use crate::evidence::Evidence;
use crate::table::{Heading, Table};

/// What was seen of memory: two planes, never added up.
pub(super) fn memory(evidence: &Evidence, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    if asked.in_focus < Level::METADATA {
        return writeln!(out, "memory: {}", asked.nothing(Level::METADATA));
    }
    let parameters = asked.which("parameters", Level::METADATA);
    write!(out, "memory: {} of {parameters}", mib(evidence.allocated))?;
    match evidence.resident {
        Some((least, most)) => {
            writeln!(out, "; the process had {} to {}", mib(least), mib(most))
        }
        None => writeln!(out),
    }
}

/// What recording took of each step, from the cost of a record that was measured at the start.
pub(super) fn cost(
    recording: &Recording<'_>,
    evidence: &Evidence,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(cost) = recording.meta().cost else {
        return writeln!(out, "recorder: its cost was not measured");
    };
    let tick_ns = 1e9 / recording.header().ticks_per_second.max(1) as f64;
    let ns = |thousandths: u64| thousandths as f64 / 1e3 * tick_ns;
    let counts = recording.counts();
    let spans = counts.of(Kind::Span);
    let others = counts.total().saturating_sub(spans);
    let all = spans as f64 * ns(cost.span) + others as f64 * ns(cost.record);
    let steps = evidence.steps.len().max(1) as f64;
    let time: u64 = evidence.steps.iter().map(|step| step.ns).sum();
    writeln!(
        out,
        "recorder: {:.1} ns a record, {:.1} ns a span; {:.0} records and {:.1} µs a step, {:.4} % of it",
        ns(cost.record),
        ns(cost.span),
        counts.total() as f64 / steps,
        all / steps / 1e3,
        all / (time.max(1) as f64) * 100.0
    )?;
    // What was computed for the record only; it has spans of its own.
    for name in ["gradients", "statistics"] {
        if let Some(part) = evidence.parts.get(name) {
            let a_step = part.total_ns / evidence.steps.len().max(1) as u64;
            writeln!(out, "  and {} a step to look at {name}", ms(a_step))?;
        }
    }
    Ok(())
}

/// What is missing: gaps of one reason and the same kinds of evidence are one line.
pub(super) fn gaps(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<()> {
    if recording.gaps().is_empty() {
        return writeln!(out, "\ngaps: none");
    }
    let mut alike: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for gap in recording.gaps() {
        let sums = alike.entry((gap.class, gap.reason, gap.planes)).or_default();
        *sums = (sums.0 + 1, sums.1.saturating_add(gap.records));
    }
    let mut table = Table::new([
        Heading::Left("gaps"),
        Heading::Left("reason"),
        Heading::Right("count"),
        Heading::Right("records"),
        Heading::Left("of"),
    ]);
    for ((class, reason, planes), (count, records)) in alike {
        table.row([
            class.name().replace('_', " "),
            reason.name().unwrap_or("unknown").to_owned(),
            count.to_string(),
            records.to_string(),
            planes.names().collect::<Vec<_>>().join(", "),
        ]);
    }
    writeln!(out)?;
    write!(out, "{table}")?;
    match recording.lost().count() {
        0 => writeln!(out, "  nothing was lost"),
        lost => writeln!(out, "  lost evidence: {lost} gaps"),
    }
}
