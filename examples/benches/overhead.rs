//! `cargo bench -p tmrun-examples --bench overhead`: what the probe costs the demo's training step,
//! level by level, counted and timed.
//!
//! Counted: the records of a step times what one costs, as the recorder measured it when it began.
//! Timed: two builds of `examples/steps.rs`, one of them with the probe compiled out, take turns; each
//! round's times are divided by that one's. The median over the rounds, and the interval that holds the
//! true median with 95 % confidence (order statistics). On a busy machine the interval is wide: that is
//! what the timing has to say then. The build without the probe runs in two processes: what they
//! differ by is what the timing cannot tell.

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROUNDS: usize = 61;

/// What is timed: its name, which process does it, and what that is asked for.
const ROWS: [(&str, usize, &str); 7] = [
    ("compiled out", 0, "nothing"),
    ("compiled out, another process", 1, "nothing"),
    ("nothing recorded", 2, "nothing"),
    ("level 0", 2, "0"),
    ("level 1", 2, "1"),
    ("level 2", 2, "2"),
    ("level 3", 2, "3"),
];

/// Of each row, round by round.
#[derive(Default)]
struct Measured {
    /// Nanoseconds a step.
    ns: Vec<f64>,
    /// Records of a step, and what they cost in nanoseconds.
    counted: (f64, f64),
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let off = build(&["--features", "off"], &dir.path().join("off"))?;
    let on = build(&[], &dir.path().join("on"))?;
    let mut trainings = [Training::start(&off)?, Training::start(&off)?, Training::start(&on)?];

    let mut rows: [Measured; ROWS.len()] = Default::default();
    for round in 0..ROUNDS {
        // Whoever comes first in one round comes last in another.
        for turn in 0..ROWS.len() {
            let row = (round + turn) % ROWS.len();
            let (_, process, request) = ROWS[row];
            let (ns, counted) = trainings[process].ask(request)?;
            rows[row].ns.push(ns);
            rows[row].counted = counted;
        }
    }

    println!("| | records a step | their cost | of the step | timed | with 95 % confidence |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let off = &rows[0].ns;
    let step = median(off.clone());
    println!("| {} | | | | {:.2} ms | |", ROWS[0].0, step / 1e6);
    for ((name, _, _), Measured { ns, counted: (records, cost) }) in ROWS.iter().zip(&rows).skip(1)
    {
        let ratios: Vec<f64> = ns.iter().zip(off).map(|(ns, off)| ns / off).collect();
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let (least, greatest) = interval(ratios.clone());
        println!(
            "| {name} | {records:.0} | {:.2} µs | {:.4} % | {:+.2} % | {:+.2} to {:+.2} % |",
            cost / 1e3,
            cost / step * 100.0,
            percent(median(ratios)),
            percent(least),
            percent(greatest),
        );
    }
    Ok(())
}

/// Builds `examples/steps.rs` and puts it there.
fn build(features: &[&str], to: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().ok_or("no target folder")?;
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--release", "-p", "tmrun-examples", "--example", "steps"])
        .args(features)
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    if !status.success() {
        return Err("examples/steps.rs was not built".into());
    }
    std::fs::copy(target.join("release/examples/steps"), to)?;
    Ok(to.to_owned())
}

/// A process that trains on request.
struct Training {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Training {
    fn start(program: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
        Ok(Self { child, requests, answers })
    }

    /// Nanoseconds a step; the records of a step and their cost.
    fn ask(&mut self, request: &str) -> Result<(f64, (f64, f64)), Box<dyn Error>> {
        writeln!(self.requests, "{request}")?;
        let answer = self.answers.next().ok_or("a training has ended")??;
        let numbers: Vec<f64> = answer.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        match numbers[..] {
            [ns, records, cost] => Ok((ns, (records, cost))),
            _ => Err(format!("a training answers {answer:?}").into()),
        }
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
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
