//! The `tmrun` command.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Where that is refused, a file that is cut short ends the command all the same.
    let _ = tmrun::input::exit_when_cut("tmrun");
    let answer = cli::Cli::parse().run();
    cli::exit_code(answer)
}
