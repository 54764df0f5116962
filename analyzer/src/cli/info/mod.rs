//! `tmrun info FILE`: what is in a recording.

mod cost;
mod devices;
mod facts;
mod json;
mod ring;
mod text;

use std::path::PathBuf;

use tmrun::input::Input;

use super::loss::Loss;
use super::output::OutputArgs;
use super::{Failure, Outcome, open};

/// Show what is in a recording: run, levels, lanes, counts, gaps, clock, cost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  done; a file without trailer is said so on standard error
  1  the file cannot be read, or is no recording
  2  the command line is wrong
  3  done, and evidence was lost: the first line and standard error say what

Examples:
  tmrun info run.tmrun
  tmrun info --json run.tmrun | jq .records
  tmrun info --json -o run.info.json run.tmrun
  ssh trainer cat run.tmrun | tmrun info -")]
pub(crate) struct InfoArgs {
    /// The recording; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON document (schema tmrun/info/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &InfoArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.file)?;
    let input = Input::open(&args.file)?;
    let recording = open::recording(&input, input.name())?;
    let loss = Loss::of(&recording);
    let facts = facts::Facts::of(&recording);
    match args.json {
        true => args.output.write_json_text(&json::document(&recording, &facts, &loss))?,
        false => args.output.write_text(&text::page(&recording, &facts, &loss))?,
    }
    open::say_if_not_finished(&recording);
    Ok(loss.outcome(input.name()))
}
