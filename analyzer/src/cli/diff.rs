//! `tmrun diff`: why one step took longer than another, and which statistics moved.

mod text;

use std::path::PathBuf;

use tmrun::diff::diff;
use tmrun::source::{Source, Subject};

use super::loss::Loss;
use super::output::OutputArgs;
use super::{Failure, Outcome, open, say};

/// Hold two invocations against each other: where the time went, which statistics moved
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Spans are aligned by the path of their names; siblings of one name are added up. What one side lacks
while evidence is missing there is said to be under that gap. Tables on a terminal, one JSON
document (schema tmrun/diff/1) elsewhere or with --json.

Exit codes:
  0  done, whatever the difference
  1  an input is unreadable or has no such step
  2  the command line is wrong; also when a recording has several invocations and no --step chose
     one
  3  done, but evidence was lost inside one of the two, or what has no path was left out; standard
     error says what

Examples:
  tmrun diff run.tmrun --step 4710 --step 4711
  tmrun diff before.tmrun after.tmrun --step 100
  tmrun diff bundle-a bundle-b --json | jq '.spans.rows[:5]'")]
pub(super) struct DiffArgs {
    /// A recording of which two steps are held against each other, or two of anything that can be asked:
    /// recordings (.tmrun), traces (JSONL), bundles
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    files: Vec<PathBuf>,
    /// The step of each; one is that of both
    #[arg(long, value_name = "N")]
    step: Vec<u64>,
    /// So many rows of a list at most
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    limit: usize,
    /// All rows
    #[arg(long)]
    all: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &DiffArgs) -> Result<Outcome, Failure> {
    args.output.check_all(&args.files)?;
    let sources: Result<Vec<_>, _> = args.files.iter().map(|file| Source::open(file)).collect();
    let sources = sources?;
    match (&*sources, &*args.step) {
        ([source], &[a, b]) => {
            let opened = open::source(source)?;
            let (a, b) = (opened.part(Some(a))?, opened.part(Some(b))?);
            write(args, [&a.subject(), &b.subject()])
        }
        ([_], _) => Err(Failure::Usage(
            "one file is held against itself by two of its steps: give --step A --step B, or two files",
        )),
        ([left, right], steps) => {
            let (a, b) = match *steps {
                [] => (None, None),
                [both] => (Some(both), Some(both)),
                [a, b] => (Some(a), Some(b)),
                _ => {
                    return Err(Failure::Usage(
                        "two are held against each other: give two steps at most",
                    ));
                }
            };
            let (left, right) = (open::source(left)?, open::source(right)?);
            let (a, b) = (left.part(a)?, right.part(b)?);
            write(args, [&a.subject(), &b.subject()])
        }
        _ => Err(Failure::Usage("two are held against each other: give one file or two")),
    }
}

fn write(args: &DiffArgs, subjects: [&Subject<'_>; 2]) -> Result<Outcome, Failure> {
    let [a, b] = subjects;
    for subject in subjects {
        open::say_if_several_steps(subject.input.path, subject.several_steps);
    }
    let limit = if args.all { usize::MAX } else { args.limit };
    let found =
        open::told(&format!("{} and {}", a.input.path, b.input.path), diff(subjects, limit))?;
    args.output.write_document(args.json, &found, text::page)?;
    let mut outcomes =
        subjects.map(|subject| Loss::of_gaps(subject.lost()).outcome(&name(subject)));
    for ((subject, side), outcome) in
        subjects.into_iter().zip([&found.a, &found.b]).zip(&mut outcomes)
    {
        if let Some(without) = text::without_path(side) {
            say(format_args!(
                "{}: {without}: their parents go in a circle, or their span is not there",
                name(subject)
            ));
            *outcome = Outcome::Lost;
        }
    }
    Ok(if outcomes.contains(&Outcome::Lost) { Outcome::Lost } else { Outcome::Done })
}

/// What to call one of two that may be of one file.
fn name(subject: &Subject<'_>) -> String {
    match subject.input.step {
        Some(step) => format!("{}, step {step}", subject.input.path),
        None => subject.input.path.to_owned(),
    }
}
