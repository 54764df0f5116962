//! The values: loss, gradients, and what was not finite.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tmrun_formats::Level;

use super::not_at;
use crate::evidence::{Evidence, GradientCounts};
use crate::table::{Heading, Table};

/// Parameters that are named one by one.
const NAMED: usize = 8;

/// The first and the last value of each scalar.
pub(super) fn scalars(evidence: &Evidence, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for (label, series) in &evidence.scalars {
        if let (Some((_, first)), Some((_, last))) = (series.first(), series.last()) {
            writeln!(out, "{label}: {first:.6} first, {last:.6} last; {} values", series.len())?;
        }
    }
    Ok(())
}

/// What became of the gradients: a line for all parameters of the same story.
pub(super) fn gradients(evidence: &Evidence, level: Level, out: &mut dyn Write) -> io::Result<()> {
    if evidence.gradients.is_empty() {
        return writeln!(out, "\ngradients: {}", not_at(level, Level::METADATA));
    }
    let mut alike: BTreeMap<[u64; 4], Vec<&str>> = BTreeMap::new();
    for (name, counts) in &evidence.gradients {
        let GradientCounts { present, missing, zero, non_finite } = *counts;
        alike.entry([missing, non_finite, zero, present]).or_default().push(name);
    }
    let mut table = Table::new([
        Heading::Left("gradients of"),
        Heading::Right("present"),
        Heading::Right("missing"),
        Heading::Right("zero"),
        Heading::Right("not finite"),
    ]);
    for ([missing, non_finite, zero, present], names) in alike.iter().rev() {
        let counts = [present, missing, zero, non_finite].map(u64::to_string);
        table.row([whose(names, evidence.gradients.len())].into_iter().chain(counts));
    }
    writeln!(out)?;
    write!(out, "{table}")?;
    let none: Vec<&str> = evidence
        .gradients
        .iter()
        .filter(|(_, counts)| counts.missing > 0 && counts.present + counts.zero == 0)
        .map(|(name, _)| name.as_str())
        .collect();
    match none[..] {
        [] => writeln!(out, "  parameters that never had a gradient: none"),
        _ => writeln!(out, "  parameters that never had a gradient: {}", few(&none)),
    }
}

fn whose(names: &[&str], all: usize) -> String {
    match names {
        [name] => (*name).to_owned(),
        names if names.len() == all => format!("all {all} parameters"),
        names => format!("{} parameters: {}", names.len(), few(&names[..names.len().min(2)])),
    }
}

/// The names, or the first few of them.
fn few(names: &[&str]) -> String {
    match names.split_at_checked(NAMED) {
        Some((first, rest @ [_, ..])) => format!("{} and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

/// What can be said of NaN and infinities: the more was recorded, the nearer to where they began.
pub(super) fn non_finite(evidence: &Evidence, level: Level, out: &mut dyn Write) -> io::Result<()> {
    let loss = evidence.first_non_finite("loss");
    match (&evidence.bad_tensor, &evidence.bad_gradient, loss) {
        (Some(tensor), ..) => writeln!(
            out,
            "\nnot finite first: the output of {} in step {}",
            tensor.name, tensor.step
        ),
        (None, Some(gradient), _) => writeln!(
            out,
            "\nnot finite first: gradients in step {} ({} among them); which layer it began in is \
             seen at level 3",
            gradient.step, gradient.name
        ),
        (None, None, Some(step)) => writeln!(
            out,
            "\nnot finite first: the loss of step {step}; gradients are seen at level 2, layers at \
             level 3"
        ),
        (None, None, None) if level >= Level::NUMERICS => {
            writeln!(out, "\nnot finite: nothing that was looked at")
        }
        (None, None, None) => {
            writeln!(out, "\nnot finite: nothing that was looked at; layers are seen at level 3")
        }
    }
}
