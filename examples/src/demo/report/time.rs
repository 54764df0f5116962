//! Where the time went.

use std::io::{self, Write};

use tmrun_formats::Level;

use super::{Asked, ms};
use crate::evidence::{Evidence, StepTime};
use crate::table::{Heading, Table};

/// The slowest layers that are listed.
const LAYERS: usize = 10;

/// The times of the steps.
pub(super) fn steps(evidence: &Evidence, out: &mut dyn Write) -> io::Result<()> {
    let mut sorted: Vec<u64> = evidence.steps.iter().map(|step| step.ns).collect();
    sorted.sort_unstable();
    let (Some(least), Some(middle), Some(StepTime { number, ns })) =
        (sorted.first(), sorted.get(sorted.len() / 2), evidence.slowest_step())
    else {
        return writeln!(out, "\nstep time: no step is in it");
    };
    writeln!(
        out,
        "\nstep time: min {}, median {}, max {} (step {number}); {} steps",
        ms(*least),
        ms(*middle),
        ms(ns),
        sorted.len()
    )?;
    match evidence.measured_ns {
        Some(ns) => writeln!(out, "measured region: {}", ms(ns)),
        None => Ok(()),
    }
}

/// The parts of a step. Layers and statistics lie within forward.
pub(super) fn parts(evidence: &Evidence, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    if evidence.parts.is_empty() {
        return writeln!(out, "\nparts of a step: {}", asked.nothing(Level::TIMING));
    }
    let steps = evidence.steps.len().max(1) as u64;
    let mut table = Table::new([
        Heading::Left("parts of a step"),
        Heading::Right("calls"),
        Heading::Right("total"),
        Heading::Right("a step"),
    ]);
    let mut parts: Vec<_> = evidence.parts.iter().collect();
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.total_ns));
    for (name, part) in parts {
        let times = [part.total_ns, part.total_ns / steps].map(ms);
        table.row([name.clone(), part.calls.to_string()].into_iter().chain(times));
    }
    writeln!(out)?;
    write!(out, "{table}")
}

/// The layers by the time in each alone: what a layer calls has a line of its own.
pub(super) fn layers(evidence: &Evidence, asked: Asked, out: &mut dyn Write) -> io::Result<()> {
    if evidence.layers.is_empty() {
        return writeln!(out, "\nslowest layers: {}", asked.nothing(Level::TIMING));
    }
    let is_of_focus = asked.is_of_focus(Level::TIMING);
    let heading = if is_of_focus { "slowest layers in focus" } else { "slowest layers" };
    let mut layers: Vec<_> = evidence.layers.iter().collect();
    layers.sort_by_key(|(_, time)| std::cmp::Reverse(time.own_ns));
    let mut table = Table::new([
        Heading::Left(heading),
        Heading::Left("type"),
        Heading::Right("calls"),
        Heading::Right("total"),
        Heading::Right("mean"),
        Heading::Right("alone"),
    ]);
    for (name, time) in layers.iter().take(LAYERS) {
        table.row([
            (*name).clone(),
            time.kind.clone(),
            time.calls.to_string(),
            ms(time.total_ns),
            ms(time.total_ns / time.calls.max(1)),
            ms(time.own_ns),
        ]);
    }
    writeln!(out)?;
    write!(out, "{table}")?;
    match layers.len().checked_sub(LAYERS) {
        Some(more @ 1..) => writeln!(out, "  and {more} more"),
        _ => Ok(()),
    }
}
