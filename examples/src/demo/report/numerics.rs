//! The values: loss, gradients, and what was not finite.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tmrun_formats::Level;

use super::Asked;
use crate::evidence::{Evidence, GradientCounts, NonFinite};
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
pub(super) fn gradients(evidence: &Evidence, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    if evidence.gradients.is_empty() {
        return writeln!(out, "\ngradients: {}", asked.nothing(Level::METADATA));
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
    let parameters = asked.which("parameters", Level::METADATA);
    let all = format!("all {} {parameters}", evidence.gradients.len());
    for ([missing, non_finite, zero, present], names) in alike.iter().rev() {
        let counts = [present, missing, zero, non_finite].map(u64::to_string);
        let whose = match names.len() == evidence.gradients.len() && names.len() > 1 {
            true => all.clone(),
            false => whose(names),
        };
        table.row([whose].into_iter().chain(counts));
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
        [] => writeln!(out, "  {parameters} that never had a gradient: none"),
        _ => writeln!(out, "  {parameters} that never had a gradient: {}", few(&none)),
    }?;
    evidence.severed.iter().try_for_each(|severed| writeln!(out, "  {severed}"))
}

fn whose(names: &[&str]) -> String {
    match names {
        [name] => (*name).to_owned(),
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
pub(super) fn non_finite(evidence: &Evidence, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    let loss = evidence.first_non_finite("loss");
    let layers = asked.elsewhere("layers", Level::NUMERICS);
    let gradients = asked.elsewhere("gradients", Level::METADATA);
    writeln!(out)?;
    match (&evidence.bad_tensor, &evidence.bad_gradient, loss) {
        (Some(NonFinite { step, name }), ..) => {
            writeln!(out, "not finite first: the output of {name} in step {step}{layers}")
        }
        (None, Some(NonFinite { step, name }), _) => {
            writeln!(out, "not finite first: gradients in step {step} ({name} among them){layers}")
        }
        (None, None, Some(step)) => {
            writeln!(out, "not finite first: the loss of step {step}{gradients}{layers}")
        }
        (None, None, None) => writeln!(out, "not finite: nothing that was looked at{layers}"),
    }
}
