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
    let asked = Asked::of(recording);
    head(recording, asked, out)?;
    numerics::scalars(&evidence, out)?;
    time::steps(&evidence, out)?;
    time::parts(&evidence, asked, out)?;
    time::layers(&evidence, asked, out)?;
    numerics::gradients(&evidence, asked, out)?;
    numerics::non_finite(&evidence, asked, out)?;
    health::memory(&evidence, asked, out)?;
    health::cost(recording, &evidence, out)?;
    health::gaps(recording, out)
}

fn head(recording: &Recording<'_>, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    let run = recording.meta().run;
    let (entrypoint, device) = run.map_or(("?", "?"), |run| (run.entrypoint, run.device));
    writeln!(
        out,
        "{entrypoint} on {device}, level {}, {}, {} bytes",
        asked.in_words(),
        recording.status().name().replace('_', " "),
        recording.bytes().len()
    )?;
    let kinds: Vec<String> =
        recording.counts().occurring().map(|(kind, count)| format!("{kind} {count}")).collect();
    writeln!(out, "{} records: {}", recording.counts().total(), kinds.join(", "))
}

/// What was asked for: of every node, and at most of those in focus.
#[derive(Debug, Clone, Copy)]
struct Asked {
    level: Level,
    in_focus: Level,
}

impl Asked {
    fn of(recording: &Recording<'_>) -> Self {
        let levels = recording.levels();
        let level = levels.last().unwrap_or(Level::PULSE);
        let in_focus = levels.foci().iter().map(|focus| focus.change.new).max();
        Self { level, in_focus: in_focus.map_or(level, |in_focus| in_focus.max(level)) }
    }

    fn in_words(self) -> String {
        let words = |level: Level| format!("{} ({})", level.0, level.name().unwrap_or("unknown"));
        match self.level < self.in_focus {
            true => format!("{}, in focus {}", words(self.level), words(self.in_focus)),
            false => words(self.level),
        }
    }

    /// Whether nodes in focus have what needs this level, and no others.
    fn is_of_focus(self, needed: Level) -> bool {
        self.level < needed && needed <= self.in_focus
    }

    /// Which of them were looked at: `parameters`, or `parameters in focus`.
    fn which(self, all: &str, needed: Level) -> String {
        let focus = if self.is_of_focus(needed) { " in focus" } else { "" };
        format!("{all}{focus}")
    }

    /// Why there is nothing to list.
    fn nothing(self, needed: Level) -> String {
        if self.level >= needed {
            return "none".to_owned();
        }
        let none = if self.is_of_focus(needed) { "none in focus; others " } else { "" };
        format!("{none}not recorded at level {}, level {} has them", self.level.0, needed.0)
    }

    /// Where more of it is to be seen, if anywhere.
    fn elsewhere(self, what: &str, needed: Level) -> String {
        if self.level >= needed {
            return String::new();
        }
        let others = if self.is_of_focus(needed) { " out of focus" } else { "" };
        format!("; {what}{others} are seen at level {}", needed.0)
    }
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
