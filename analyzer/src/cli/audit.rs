//! `tmrun audit TRACE`: runtime JSON from anyone, held against its own rules and against itself.

use std::path::PathBuf;

use tmrun::audit::{AuditReport, ExpectedIdentity, audit};
use tmrun::input::Input;
use tmrun_formats::json::Object;
use tmrun_formats::runtime::{RuntimeDocument, read};

use super::output::OutputArgs;
use super::{Failure, Outcome, say, schemas};

/// Check a candle-graph runtime trace: duplicates, contradictions, conflicts, identity
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the trace is accepted
  1  it is rejected (unreadable, a duplicate id, a gradient whose norm contradicts its state), or
     with --strict anything was found
  2  the command line is wrong

Examples:
  tmrun audit run.runtime.jsonl
  tmrun audit --json --analysis-id \"$ID\" run.runtime.json | jq .gradient_conflicts
  producer | tmrun audit --strict -")]
pub(super) struct AuditArgs {
    /// The trace, document or JSONL; - reads standard input
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The analysis this trace should belong to
    #[arg(long, value_name = "ID")]
    analysis_id: Option<String>,
    /// The build this trace should belong to
    #[arg(long, value_name = "ID")]
    build_id: Option<String>,
    /// Exit with 1 on findings too
    #[arg(long)]
    strict: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Audits one trace. The answer goes to the output, why a trace was rejected to standard error too.
pub(super) fn run(args: &AuditArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.trace)?;
    let input = Input::open(&args.trace)?;
    let trace = match read(&input) {
        Ok(trace) => trace,
        Err(error) => {
            if args.json {
                args.output.write_json_text(&rejection(&error.to_string()))?;
            }
            say(format_args!("{}: rejected: {error}", input.name()));
            return Ok(Outcome::No);
        }
    };
    let expected =
        ExpectedIdentity { analysis_id: args.analysis_id.clone(), build_id: args.build_id.clone() };
    let report = audit(&trace, Some(&expected));
    match args.json {
        true => write_json(args, &trace, &report)?,
        false => args.output.write_text(&format!("{}{report}", summary(&trace)))?,
    }
    if args.strict && report.has_findings() {
        say(format_args!("{}: refused by --strict: it has findings", input.name()));
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

fn rejection(error: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.string("schema", schemas::AUDIT);
    object.bool("accepted", false);
    object.string("error", error);
    object.end();
    out.push(b'\n');
    out
}

/// The report's keys at the top level, as the neighbour has them, and ours beside them.
fn write_json(
    args: &AuditArgs,
    trace: &RuntimeDocument,
    report: &AuditReport,
) -> Result<(), Failure> {
    #[derive(serde::Serialize)]
    struct Answer<'a> {
        schema: &'a str,
        accepted: bool,
        input_schema: &'a str,
        records: usize,
        clean: bool,
        findings: bool,
        #[serde(flatten)]
        report: &'a AuditReport,
    }
    args.output.write_json(&Answer {
        schema: schemas::AUDIT,
        accepted: true,
        input_schema: &trace.schema,
        records: trace.len(),
        clean: report.is_clean(),
        findings: report.has_findings(),
        report,
    })
}

fn summary(trace: &RuntimeDocument) -> String {
    format!(
        "accepted: {}, {} tensors, {} operations, {} gradients, {} value ranges, {} edge timings\n",
        trace.schema,
        trace.tensors.len(),
        trace.operations.len(),
        trace.gradients.len(),
        trace.values.len(),
        trace.edge_timings.len()
    )
}
