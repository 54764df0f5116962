//! The whole demo: train under a recording, convert the recording, say what is in it.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use tmrun::convert::{Options, Plan};
use tmrun::input::Input;
use tmrun::scan::Recording;
use tmrun_probe_core::measured;

use crate::args::Args;
use crate::layer::{Fault, Heads};
use crate::record::{PROBE, contract_of, run_of};
use crate::report::write_report;
use crate::train::Trainer;

/// The layer that `--plant-nan` breaks: in the first block, so that the damage spreads through
/// attention and nearly every later layer shows it.
pub const BROKEN_LAYER: &str = "blocks.0.mlp.up";
/// The recording's name in the demo's directory.
pub const RECORDING: &str = "run.tmrun";
/// The name of what the recording is converted to.
pub const RUNTIME: &str = "run.runtime.json";

/// Trains, records, converts and reports.
///
/// # Errors
///
/// A file could not be written or read, or an operation of the model failed.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let steps = args.steps.get();
    let fault = args.plant_nan.then(|| Fault { step: steps.div_ceil(2), layer: BROKEN_LAYER });
    let mut trainer = Trainer::new(args.seed, fault)?;
    if args.heads_in_turn {
        trainer.set_heads(Heads::InTurn);
    }
    fs::create_dir_all(&args.out)?;
    writeln!(out, "{} parameters, {steps} steps", trainer.parameter_count())?;

    let path = args.out.join(RECORDING);
    let run = run_of(args);
    // The environment goes before the command line, in what is recorded and so in what is promised.
    let (level, foci) = run.asked_for()?;
    let in_focus = foci.iter().map(|&(_, level)| level).max().unwrap_or(level);
    let contract = contract_of(level, in_focus, trainer.parameter_names())?;
    let recording = PROBE.record(&path, run.capture_contract(contract))?;
    let start = Instant::now();
    match train(&mut trainer, args, out) {
        Ok(()) => recording.finish()?,
        Err(error) => {
            recording.finish_failed(&error.to_string())?;
            return Err(error);
        }
    };
    writeln!(out, "{:.1} s", start.elapsed().as_secs_f64())?;

    // From here on everything is read from the file.
    let input = Input::open(&path)?;
    let recording = Recording::open(&input, input.name())?;
    convert(&recording, &args.out.join(RUNTIME))?;
    writeln!(out, "\nwhat {} holds:\n", path.display())?;
    write_report(&recording, out)?;
    writeln!(out, "\n{RECORDING}, {RUNTIME} and losses.csv are in {}", args.out.display())?;
    Ok(())
}

fn train(trainer: &mut Trainer, args: &Args, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut losses = BufWriter::new(File::create(args.out.join("losses.csv"))?);
    writeln!(losses, "step,loss")?;
    let steps = args.steps.get();
    let _region = measured!(PROBE, "train");
    trainer.record_parameters();
    for number in 1..=steps {
        let loss = trainer.step(number)?;
        writeln!(losses, "{number},{loss}")?;
        if number == 1 || number % 10 == 0 || number == steps {
            writeln!(out, "step {number:>4}  loss {loss:.4}")?;
        }
    }
    losses.flush()?;
    Ok(())
}

/// Writes a recording as runtime JSON: beside its place first, so that it appears whole.
fn convert(recording: &Recording<'_>, path: &Path) -> Result<(), Box<dyn Error>> {
    let beside = path.with_extension("json.part");
    let mut file = BufWriter::new(File::create(&beside)?);
    Plan::of(recording, Options::default())?.write(&mut file, &|_| ())?;
    file.into_inner()?.sync_all()?;
    fs::rename(&beside, path)?;
    Ok(())
}
