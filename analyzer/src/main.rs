//! The `tmrun` command.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let answer = cli::Cli::parse().run();
    cli::exit_code(answer)
}
