//! The `tmrun` command.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Where that is refused, a file that is cut short ends the command all the same.
    let _ = tmrun::input::exit_when_cut("tmrun");
    match cli::parse() {
        Ok(cli) => cli::exit_code(cli.run()),
        Err(code) => code,
    }
}
