//! `cargo demo`: see the library beside it.

use std::process::ExitCode;

use clap::Parser;
use tmrun_demo::Args;

fn main() -> ExitCode {
    match tmrun_demo::run(&Args::parse(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}
