//! Trains a small transformer on a CPU, in seconds.
//!
//! `cargo demo` prints the loss as it falls and writes it to `DIR/losses.csv`. With
//! `--plant-nan`, one element of one layer's output becomes NaN halfway through. The loss of that
//! update is NaN and, because the optimizer carries the damage into the weights, so is every
//! later one: finding the layer where it began takes more than the loss curve.

mod args;
mod block;
mod layer;
mod model;
mod text;
mod train;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::time::Instant;

use clap::Parser;

use crate::args::Args;
use crate::layer::Fault;
use crate::train::Trainer;

/// The layer that `--plant-nan` breaks: in the first block, so that the damage spreads through
/// attention and nearly every later layer shows it.
const BROKEN_LAYER: &str = "blocks.0.mlp.up";

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let steps = args.steps.get();
    fs::create_dir_all(&args.out)?;
    let path = args.out.join("losses.csv");
    let mut losses = std::io::BufWriter::new(fs::File::create(&path)?);
    writeln!(losses, "step,loss")?;

    let fault = args.plant_nan.then(|| Fault { step: steps.div_ceil(2), layer: BROKEN_LAYER });
    let mut trainer = Trainer::new(args.seed, fault)?;
    println!("{} parameters, {steps} steps", trainer.parameter_count());

    let start = Instant::now();
    for number in 1..=steps {
        let loss = trainer.step(number)?;
        writeln!(losses, "{number},{loss}")?;
        if number == 1 || number % 10 == 0 || number == steps {
            println!("step {number:>4}  loss {loss:.4}");
        }
    }
    losses.flush()?;
    println!("{:.1} s; losses in {}", start.elapsed().as_secs_f64(), path.display());
    Ok(())
}
