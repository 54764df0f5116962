//! `tmrun summary INPUT`: what one invocation's evidence says, and whether it can be believed.

mod text;

use std::path::PathBuf;

use serde::Serialize;
use tmrun::source::SubjectInput;
use tmrun_formats::evidence::{
    Activations, Capabilities, Evidence, Fact, Finding, Gpu, GraphSummary, Health, Memory, Timing,
};
use tmrun_formats::trace::TraceRun;

use super::loss::Loss;
use super::output::OutputArgs;
use super::{Failure, Outcome, open, say, schemas};

/// Show what one invocation's evidence says: its health, what it covers, what stands out
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  done
  1  the input is unreadable or has no such step, or with --require-valid it is structurally invalid
     or of a failed capture
  2  the command line is wrong; also when the recording has several invocations and no --step chose
     one
  3  done, but evidence was lost inside what it covers; standard error says what

Examples:
  tmrun summary run.tmrun --step 4711
  tmrun summary --json trace.jsonl | jq '.health.issues[].code'
  tmrun summary --require-valid trace.jsonl > /dev/null")]
pub(super) struct SummaryArgs {
    /// A recording (.tmrun), a trace (JSONL) or a bundle; - reads standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The step of a recording that has several
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Exit with 1 unless the trace is structurally valid and its capture complete
    #[arg(long)]
    require_valid: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Says what one invocation's evidence says. The answer goes to the output, why it is refused to
/// standard error.
pub(super) fn run(args: &SummaryArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.input)?;
    open::evidence(&args.input, args.step, |name, subject, evidence| {
        match args.json {
            true => args.output.write_json(&Summary::of(subject.input, evidence))?,
            false => args.output.write_text(&text::page(name, subject, evidence))?,
        }
        let lost = Loss::of_gaps(subject.lost()).outcome(name);
        let Health { structurally_valid, capture_complete, .. } = evidence.health;
        let refusal = match (structurally_valid, capture_complete) {
            _ if !args.require_valid => return Ok(lost),
            (true, true) => return Ok(lost),
            (false, true) => "it is structurally invalid",
            (true, false) => "its capture failed",
            (false, false) => "it is structurally invalid, and its capture failed",
        };
        say(format_args!("{name}: refused by --require-valid: {refusal}"));
        Ok(Outcome::No)
    })
}

/// The evidence without graph and statistics, of which a summary and counts stand in their places.
#[derive(Serialize)]
struct Summary<'e, 'd> {
    schema: &'static str,
    input: SubjectInput<'e>,
    provenance: &'e TraceRun,
    health: &'e Health<'d>,
    capabilities: &'e Capabilities<'d>,
    findings: &'e [Finding<'d>],
    facts: &'e [Fact<'d>],
    gaps: &'e [std::borrow::Cow<'d, str>],
    summary: Option<&'e GraphSummary<'d>>,
    tensor_stats: StatsCount,
    timing: &'e Timing<'d>,
    memory: &'e Memory<'d>,
    activations: &'e Activations<'d>,
    gpu: &'e Gpu<'d>,
}

#[derive(Serialize)]
struct StatsCount {
    events: usize,
    non_finite_events: usize,
}

impl<'e, 'd> Summary<'e, 'd> {
    fn of(input: SubjectInput<'e>, evidence: &'e Evidence<'d>) -> Self {
        let stats = &evidence.tensor_stats;
        Self {
            schema: schemas::SUMMARY,
            input,
            provenance: &evidence.provenance,
            health: &evidence.health,
            capabilities: &evidence.capabilities,
            findings: &evidence.findings,
            facts: &evidence.facts,
            gaps: &evidence.gaps,
            summary: evidence.graph.as_ref().map(|graph| &graph.summary),
            tensor_stats: StatsCount {
                events: stats.len(),
                non_finite_events: stats.iter().filter(|stats| stats.non_finite > 0).count(),
            },
            timing: &evidence.timing,
            memory: &evidence.memory,
            activations: &evidence.activations,
            gpu: &evidence.gpu,
        }
    }
}
