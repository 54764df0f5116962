//! `tmrun bundle FILE -o DIR`: one step's evidence, published whole or not at all.

use std::path::PathBuf;

use tmrun::bundle::{Request, leftovers, publish};
use tmrun::input::Input;
use tmrun::slice::Region;
use tmrun_formats::bundle::PublicationStatus;

use super::loss::Loss;
use super::output::{OutputArgs, is_stdio};
use super::{Failure, Outcome, open, say};

/// Publish the evidence of one step as a bundle: a directory that appears whole or not at all
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the bundle are trace.jsonl (candle-graph/trace/10), evidence.json (candle-graph/evidence/5),
report.md, tmrun.json (what those have no place for: gaps, levels, clock, NaN against infinities),
recording.tmrun (the part of the recording that all of it is derived from), nsight/ if given, and
bundle.json, which declares them. The receipt (candle-graph/publication/1) goes to standard output.

When the same planned capture is published there already (entry point, correlation id, phase, step
and device), it is verified anew and the status is already_published. Anything else that is there
stays.

A trace that does not hold together (a gradient that is not finite under a contract that wants all,
say) is published as it is: it is evidence that something is wrong. Standard error says so in one
line.

Exit codes:
  0  published, or published already; whether its trace is valid or not: ask
     `tmrun summary --require-valid DIR`
  1  not published: something else is there, or something cannot be read or written
  2  the command line is wrong, or the file makes --step necessary
  3  published, and evidence was lost inside the step: standard error says what, the bundle too

Examples:
  tmrun bundle run.tmrun --step 4711 -o profiles/step-4711
  tmrun bundle session.tmrun -o update-2 | jq -r .verification.manifest_sha256")]
pub(super) struct BundleArgs {
    /// The recording; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The step that is measured; without, the only span that says that it is
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// The directory to publish; nothing may be there but the same capture
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// A flat directory of what Nsight left, to be kept in the bundle
    #[arg(long, value_name = "DIR")]
    nsight: Option<PathBuf>,
}

pub(super) fn run(args: &BundleArgs) -> Result<Outcome, Failure> {
    if is_stdio(&args.output) {
        return Err(Failure::Usage(
            "-o - is standard output, and a bundle is a directory: name one (./- if it is called \
             so)",
        ));
    }
    let input = Input::open(&args.file)?;
    let recording = open::recording(&input, input.name())?;
    let region = Region::of(&recording, args.step)?;
    open::say_if_several_steps(input.name(), region.several_steps());
    for left in leftovers(&args.output) {
        let left = left.display();
        say(format_args!(
            "{left}: left by an earlier publication that did not end; it is no bundle"
        ));
    }
    let request = Request {
        recording: &recording,
        region: &region,
        destination: &args.output,
        nsight: args.nsight.as_deref(),
    };
    let published = publish(&request, &mut |_| Ok(()))?;
    let receipt = &published.receipt;
    if receipt.status == PublicationStatus::AlreadyPublished {
        for differing in &published.differing {
            say(format_args!(
                "{}: was published before, and stays: its {} is {}, not {}",
                receipt.bundle_path.display(),
                differing.field,
                differing.published,
                differing.planned
            ));
        }
    }
    if let Some(invalid) = &published.invalid {
        say(format_args!("{}: its trace is {invalid}", receipt.bundle_path.display()));
    }
    OutputArgs::stdout().write_json(receipt)?;
    open::say_if_not_finished(&recording);
    Ok(Loss::of_gaps(published.lost.iter()).outcome(input.name()))
}
