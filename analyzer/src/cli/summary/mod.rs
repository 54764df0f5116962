//! `tmrun summary INPUT`: what one trace says, and whether it can be believed.

mod text;

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use tmrun::evidence::{EvidenceError, derive, read};
use tmrun::input::Input;
use tmrun_formats::evidence::{
    Activations, Capabilities, Evidence, Fact, Finding, Gpu, GraphSummary, Health, Memory, Timing,
};
use tmrun_formats::trace::{ReadError, TraceRun};

use super::output::OutputArgs;
use super::{Failure, Outcome, say};

/// Show what a candle-graph trace says: its health, what it covers, what stands out
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  done
  1  the trace is unreadable, or with --require-valid it is structurally invalid or of a failed capture
  2  the command line is wrong

Examples:
  tmrun summary trace.jsonl
  tmrun summary --json trace.jsonl | jq '.health.issues[].code'
  tmrun summary --require-valid trace.jsonl > /dev/null")]
pub(super) struct SummaryArgs {
    /// The trace, JSONL; - reads standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Exit with 1 unless the trace is structurally valid and its capture complete
    #[arg(long)]
    require_valid: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// A trace of which nothing can be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    /// It is none.
    #[error("{name}: {error}")]
    Read {
        /// The input.
        name: String,
        /// Why.
        error: ReadError,
    },
    /// It is one, and says nothing.
    #[error("{name}: {error}")]
    Evidence {
        /// The input.
        name: String,
        /// Why.
        error: EvidenceError,
    },
}

/// Says what one trace says. The answer goes to the output, why it is refused to standard error.
pub(super) fn run(args: &SummaryArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.input)?;
    let input = Input::open(&args.input)?;
    let name = || input.name().to_owned();
    let trace = read(&input).map_err(|error| TraceError::Read { name: name(), error })?;
    let evidence =
        derive(&trace, None).map_err(|error| TraceError::Evidence { name: name(), error })?;
    args.output.write(|out| match args.json {
        true => write_json(input.name(), &evidence, out),
        false => Ok(out.write_all(text::page(input.name(), &evidence).as_bytes())?),
    })?;
    let Health { structurally_valid, capture_complete, .. } = evidence.health;
    let refusal = match (structurally_valid, capture_complete) {
        _ if !args.require_valid => return Ok(Outcome::Done),
        (true, true) => return Ok(Outcome::Done),
        (false, true) => "it is structurally invalid",
        (true, false) => "its capture failed",
        (false, false) => "it is structurally invalid, and its capture failed",
    };
    say(format_args!("{}: refused by --require-valid: {refusal}", input.name()));
    Ok(Outcome::No)
}

/// The evidence without graph and statistics, of which a summary and counts stand in their places.
#[derive(Serialize)]
struct Summary<'e, 'd> {
    schema: &'static str,
    input: &'e str,
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

fn write_json(
    input: &str,
    evidence: &Evidence<'_>,
    mut out: &mut dyn io::Write,
) -> Result<(), Failure> {
    let stats = &evidence.tensor_stats;
    let summary = Summary {
        schema: "tmrun/summary/1",
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
    };
    serde_json::to_writer_pretty(&mut out, &summary).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}
