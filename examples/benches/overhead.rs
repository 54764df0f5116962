//! `cargo bench -p tmrun-examples --bench overhead`: what recording costs the demo's training step,
//! level by level, counted and timed.
//!
//! Counted: the records of a step times what one costs, as the recorder measured it when it began.
//! Timed: steps with nothing recorded and steps of every level by turns, each round's times divided
//! by the one with nothing recorded; the median over the rounds, and the interval that holds the
//! true median with 95 % confidence (order statistics). On a busy machine the interval is wide: that
//! is what the timing has to say then. A disarmed site is some instructions (see the benchmark
//! `ratios`), so nothing recorded stands for the probe compiled out.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use tmrun::input::Input;
use tmrun::scan::Recording;
use tmrun_demo::{PROBE, Trainer};
use tmrun_formats::wire::Kind;
use tmrun_probe_core::{Level, ProfileRun};

const ROUNDS: usize = 41;
/// Steps that are timed of each level in each round, behind one that warms up.
const STEPS: u64 = 3;

/// What a level cost.
#[derive(Default)]
struct Measured {
    /// Records of a step, and what they cost, in nanoseconds.
    records: f64,
    counted_ns: f64,
    /// The times of a step, round by round.
    ns: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut trainer = Trainer::new(1, None)?;
    let mut number = 0;
    let mut steps = |trainer: &mut Trainer| -> Result<f64, Box<dyn Error>> {
        number += 1;
        trainer.step(number)?;
        let start = Instant::now();
        for _ in 0..STEPS {
            number += 1;
            trainer.step(number)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / STEPS as f64)
    };
    let mut off = Vec::new();
    let mut levels: [Measured; 4] = Default::default();
    for round in 0..ROUNDS {
        // Whoever comes first in one round comes last in another.
        for turn in 0..5 {
            match (round + turn) % 5 {
                4 => off.push(steps(&mut trainer)?),
                level => {
                    let path = dir.path().join("run.tmrun");
                    let run = ProfileRun::training("demo::overhead", 1, "cpu");
                    let run = run.level(Level(level as u8)).replace(true);
                    let recording = PROBE.record(&path, run)?;
                    levels[level].ns.push(steps(&mut trainer)?);
                    recording.finish()?;
                    count(&path, &mut levels[level])?;
                }
            }
        }
    }

    println!(
        "| level | records a step | their cost | of the step | timed | with 95 % confidence |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let step = median(off.clone());
    println!("| nothing recorded | 0 | 0 | 0 | {:.2} ms | |", step / 1e6);
    for (level, measured) in levels.iter().enumerate() {
        let ratios: Vec<f64> = measured.ns.iter().zip(&off).map(|(ns, off)| ns / off).collect();
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let (least, greatest) = interval(ratios.clone());
        println!(
            "| {level} | {:.0} | {:.2} µs | {:.4} % | {:+.2} % | {:+.2} to {:+.2} % |",
            measured.records,
            measured.counted_ns / 1e3,
            measured.counted_ns / step * 100.0,
            percent(median(ratios)),
            percent(least),
            percent(greatest),
        );
    }
    Ok(())
}

/// The records of a recording's steps, and what they cost.
fn count(path: &Path, measured: &mut Measured) -> Result<(), Box<dyn Error>> {
    let input = Input::open(path)?;
    let recording = Recording::open(&input, input.name())?;
    let cost = recording.meta().cost.ok_or("the recorder did not measure its cost")?;
    let ns = |millis: u64| millis as f64 * 1e6 / recording.header().ticks_per_second as f64;
    let spans = recording.counts().of(Kind::Span) as f64;
    let others = recording.counts().total() as f64 - spans;
    let steps = (STEPS + 1) as f64;
    measured.records = (spans + others) / steps;
    measured.counted_ns = (spans * ns(cost.span) + others * ns(cost.record)) / steps;
    Ok(())
}

fn median(values: Vec<f64>) -> f64 {
    let (middle, _) = at(values, 0.0);
    middle
}

/// Of so many values the median lies between these two of them, 95 times in 100.
fn interval(values: Vec<f64>) -> (f64, f64) {
    at(values, 0.98)
}

/// The values so many square roots of their number below and above the middle.
fn at(mut values: Vec<f64>, roots: f64) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let (middle, away) = (values.len() / 2, (values.len() as f64).sqrt() * roots);
    let away = away.ceil() as usize;
    let value = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
    (value(middle.saturating_sub(away)), value((middle + away).min(values.len() - 1)))
}
