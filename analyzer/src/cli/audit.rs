//! `tmrun audit TRACE`: runtime JSON from anyone, held against its own rules and against itself.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tmrun::audit::{AuditReport, ExpectedIdentity, audit};
use tmrun_formats::json::Object;
use tmrun_formats::runtime::{RuntimeDocument, read};

/// Check a candle-graph runtime trace: duplicates, contradictions, conflicts, identity
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit code: 0 the trace is accepted; 1 it is rejected (unreadable, a duplicate id, a gradient whose
norm contradicts its state), or with --strict anything was found; 2 usage.

Examples:
  tmrun audit run.runtime.jsonl
  tmrun audit --json --analysis-id \"$ID\" run.runtime.json | jq .gradient_conflicts
  producer | tmrun audit --strict -")]
pub struct AuditArgs {
    /// The trace, document or JSONL; - reads standard input
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The analysis this trace should belong to
    #[arg(long, value_name = "ID")]
    pub analysis_id: Option<String>,
    /// The build this trace should belong to
    #[arg(long, value_name = "ID")]
    pub build_id: Option<String>,
    /// Exit with 1 on findings too
    #[arg(long)]
    pub strict: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// The trace is valid and, with `--strict`, without findings.
    Accepted,
    /// It is not.
    Rejected,
}

impl AuditOutcome {
    /// 0 or 1.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            AuditOutcome::Accepted => 0,
            AuditOutcome::Rejected => 1,
        }
    }
}

/// Audits one trace. The answer goes to `stdout`, why a trace was rejected also to `stderr`.
///
/// # Errors
/// The trace could not be opened, or the answer not written. What is wrong with the trace itself is
/// an answer.
pub fn run(
    args: &AuditArgs,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<AuditOutcome> {
    let bytes = load(&args.trace)?;
    let trace = match read(&bytes) {
        Ok(trace) => trace,
        Err(error) => {
            if args.json {
                let mut out = rejection(&error.to_string());
                out.push(b'\n');
                stdout.write_all(&out)?;
            }
            writeln!(stderr, "{}: rejected: {error}", args.trace.display())?;
            return Ok(AuditOutcome::Rejected);
        }
    };
    let expected =
        ExpectedIdentity { analysis_id: args.analysis_id.clone(), build_id: args.build_id.clone() };
    let report = audit(&trace, Some(&expected));
    if args.json {
        stdout.write_all(&as_json(&trace, &report)?)?;
    } else {
        write!(stdout, "{}", summary(&trace))?;
        write!(stdout, "{report}")?;
    }
    if args.strict && report.has_findings() {
        writeln!(stderr, "{}: refused by --strict: it has findings", args.trace.display())?;
        return Ok(AuditOutcome::Rejected);
    }
    Ok(AuditOutcome::Accepted)
}

fn load(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn rejection(error: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.bool("accepted", false);
    object.string("error", error);
    object.end();
    out
}

/// The report's keys at the top level, as the neighbour has them, and ours beside them.
fn as_json(trace: &RuntimeDocument, report: &AuditReport) -> io::Result<Vec<u8>> {
    #[derive(serde::Serialize)]
    struct Answer<'a> {
        accepted: bool,
        schema: &'a str,
        records: usize,
        clean: bool,
        findings: bool,
        #[serde(flatten)]
        report: &'a AuditReport,
    }
    let answer = Answer {
        accepted: true,
        schema: &trace.schema,
        records: trace.len(),
        clean: report.is_clean(),
        findings: report.has_findings(),
        report,
    };
    let mut out = serde_json::to_vec_pretty(&answer)?;
    out.push(b'\n');
    Ok(out)
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
