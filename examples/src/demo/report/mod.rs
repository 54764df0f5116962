//! What a recording holds, for people.

mod health;
mod numerics;
mod time;

use std::io::{self, Write};

use tmrun::scan::Recording;
use tmrun_formats::Level;

use crate::evidence::Evidence;

/// Writes what a recording holds. Nothing but the recording is looked at.
///
/// # Errors
///
/// `out` did not take it.
pub fn write_report(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<()> {
    let evidence = Evidence::of(recording);
    let level = recording.levels().last().unwrap_or(Level::PULSE);
    head(recording, level, out)?;
    numerics::scalars(&evidence, out)?;
    time::steps(&evidence, out)?;
    time::parts(&evidence, level, out)?;
    time::layers(&evidence, level, out)?;
    numerics::gradients(&evidence, level, out)?;
    numerics::non_finite(&evidence, level, out)?;
    health::memory(&evidence, level, out)?;
    health::cost(recording, &evidence, out)?;
    health::gaps(recording, out)
}

fn head(recording: &Recording<'_>, level: Level, out: &mut dyn Write) -> io::Result<()> {
    let run = recording.meta().run;
    let (entrypoint, device) = run.map_or(("?", "?"), |run| (run.entrypoint, run.device));
    writeln!(
        out,
        "{entrypoint} on {device}, level {} ({}), {}, {} bytes",
        level.0,
        level.name().unwrap_or("unknown"),
        recording.status().name().replace('_', " "),
        recording.bytes().len()
    )?;
    let kinds: Vec<String> =
        recording.counts().occurring().map(|(kind, count)| format!("{kind} {count}")).collect();
    writeln!(out, "{} records: {}", recording.counts().total(), kinds.join(", "))
}

/// Why there is nothing to list.
fn not_at(level: Level, needed: Level) -> String {
    if level < needed {
        format!("not recorded at level {}, level {} has them", level.0, needed.0)
    } else {
        "none".to_owned()
    }
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
