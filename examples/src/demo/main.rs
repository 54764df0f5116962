//! `cargo demo`: see the library beside it.

use std::error::Error;

use clap::Parser;
use tmrun_demo::Args;

fn main() -> Result<(), Box<dyn Error>> {
    tmrun_demo::run(&Args::parse(), &mut std::io::stdout().lock())
}
