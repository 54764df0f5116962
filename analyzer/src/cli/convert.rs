//! `tmrun convert FILE`: a recording as candle-graph runtime JSON.

use std::path::PathBuf;

use clap::ValueEnum;
use tmrun::convert::{Form, Options, Plan, Schema};
use tmrun::escape::JsonWriter;
use tmrun::input::Input;
use tmrun_formats::Phase;

use super::loss::Loss;
use super::output::OutputArgs;
use super::progress::Progress;
use super::{Failure, Outcome, open, say};

/// Convert a recording to candle-graph/runtime JSON: tensors, operations, gradients, value ranges
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What the schema has no place for is counted in `not_represented`, what the recording lacks is listed
in `gaps`: two extra keys of the document, or of JSONL's meta line.

Exit codes:
  0  done
  1  the file is no recording, or has no such step or phase
  2  the command line is wrong; also when the recording has several phases and none was chosen, or
     several steps and --schema 1, which has none
  3  done, but evidence was lost inside what was converted; standard error says what

Examples:
  tmrun convert run.tmrun -o run.runtime.json
  tmrun convert --format jsonl --phase train run.tmrun | grep '\"kind\":\"gradient\"'
  tmrun convert --step 12 run.tmrun | tmrun audit -")]
pub(crate) struct ConvertArgs {
    /// The recording; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Version of candle-graph/runtime
    #[arg(long, value_name = "N", default_value = "3")]
    schema: SchemaArg,
    /// One document, or a line for each observation
    #[arg(long, value_name = "FORM", default_value = "json")]
    format: FormatArg,
    /// Only what belongs to this phase; a recording of both needs it
    #[arg(long, value_name = "PHASE")]
    phase: Option<PhaseArg>,
    /// Only what belongs to this step
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SchemaArg {
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
    #[value(name = "3")]
    V3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PhaseArg {
    Train,
    Infer,
}

impl ConvertArgs {
    fn options(&self) -> Options {
        Options {
            schema: match self.schema {
                SchemaArg::V1 => Schema::V1,
                SchemaArg::V2 => Schema::V2,
                SchemaArg::V3 => Schema::V3,
            },
            form: match self.format {
                FormatArg::Json => Form::Document,
                FormatArg::Jsonl => Form::Lines,
            },
            phase: self.phase.map(|phase| match phase {
                PhaseArg::Train => Phase::TRAIN,
                PhaseArg::Infer => Phase::INFER,
            }),
            step: self.step,
        }
    }
}

pub(super) fn run(args: &ConvertArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.file)?;
    let input = Input::open(&args.file)?;
    let recording = open::recording(&input, input.name())?;
    let plan = Plan::of(&recording, args.options())?;
    if plan.form() != args.options().form {
        say(format_args!(
            "{}: nothing to convert: written as a document, because readers take a JSONL stream \
             that holds only its meta line for a broken one",
            input.name()
        ));
    }
    let progress = Progress::new(plan.work(), "converting");
    let is_terminal = args.output.is_terminal();
    let written = args.output.write(|out| {
        let add = |more| progress.add(more);
        match is_terminal {
            true => plan.write(&mut JsonWriter(out), &add)?,
            false => plan.write(out, &add)?,
        }
        Ok(())
    });
    progress.finish();
    written?;
    if let Some(step) = args.step.filter(|_| plan.is_gone()) {
        say(format_args!(
            "{}: step {step} is not in what is left of it, and may be in what was lost",
            input.name()
        ));
    }
    open::say_if_not_finished(&recording);
    Ok(Loss::of_gaps(plan.lost()).outcome(input.name()))
}
