//! `tmrun compare`: two cohorts of runs, and whether one is faster.

mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use tmrun::comparison::{Run, bundles, compare, traces, unverified, verified};
use tmrun_formats::comparison::{ComparisonInputs, ComparisonVerdict};

use super::output::OutputArgs;
use super::{Failure, Outcome, say};

/// Compare the runs of a candidate with those of a baseline: times, with a confidence interval, and
/// tensor statistics
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  compared, whatever the verdict
  1  a run is unreadable or its bundle does not verify, or with --require-eligible something speaks
     against comparing
  2  the command line is wrong

Examples:
  tmrun compare --baseline before-* --candidate after-*
  tmrun compare --require-eligible --json --baseline a/* --candidate b/* | jq .verdict
  tmrun compare --unverified-traces --baseline old.jsonl --candidate new.jsonl")]
pub(super) struct CompareArgs {
    /// The baseline's bundles, one for each run
    #[arg(long, value_name = "BUNDLE", required = true, num_args = 1..)]
    baseline: Vec<PathBuf>,
    /// The candidate's bundles
    #[arg(long, value_name = "BUNDLE", required = true, num_args = 1..)]
    candidate: Vec<PathBuf>,
    /// Take traces instead of bundles; nothing vouches for them, so that they are never eligible
    #[arg(long)]
    unverified_traces: bool,
    /// Exit with 1 where something speaks against comparing
    #[arg(long)]
    require_eligible: bool,
    /// Print one JSON document, as is printed where standard output is no terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Compares. The answer goes to the output, why it is refused to standard error.
pub(super) fn run(args: &CompareArgs) -> Result<Outcome, Failure> {
    args.output.check_all(args.baseline.iter().chain(&args.candidate))?;
    let (baseline, candidate, inputs) = load(args)?;
    let comparison = compare(&baseline, &candidate, inputs);
    args.output.write_document(args.json, &comparison, text::page)?;
    if !args.require_eligible || comparison.verdict != ComparisonVerdict::Ineligible {
        return Ok(Outcome::Done);
    }
    let codes: BTreeSet<_> = comparison.reasons.iter().map(|reason| reason.code.name()).collect();
    let codes = codes.into_iter().collect::<Vec<_>>().join(", ");
    say(format_args!("refused by --require-eligible: {codes}"));
    Ok(Outcome::No)
}

/// The runs of both sides, and whether they were verified.
type Loaded = (Vec<Run>, Vec<Run>, ComparisonInputs<'static>);

fn load(args: &CompareArgs) -> Result<Loaded, Failure> {
    let CompareArgs { baseline, candidate, .. } = args;
    if args.unverified_traces {
        return Ok((traces(baseline)?, traces(candidate)?, unverified()));
    }
    let (baseline, before) = bundles(baseline)?;
    let (candidate, after) = bundles(candidate)?;
    Ok((baseline, candidate, verified(before, after)))
}
