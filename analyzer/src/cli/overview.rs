//! `tmrun overview INPUT`: the first look, a page whatever is looked at.

use std::fmt::Write;
use std::path::PathBuf;

use tmrun::query::overview;
use tmrun::source::Subject;
use tmrun_formats::evidence::{CapabilityKind, Evidence, HealthSeverity};

use super::loss::Loss;
use super::output::OutputArgs;
use super::text::{duration, number, plain, plural, steps};
use super::{Failure, Outcome, open};

/// Show the first look at one invocation: a page, whatever it is of
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
A page on a terminal, one JSON document (schema tmrun/overview/1) elsewhere or with --json: 64 KiB
at most, whatever is looked at. Lists say how many there are, and texts are cut.

Exit codes:
  0  done
  1  the input is unreadable or has no such step
  2  the command line is wrong; also when the recording has several invocations and no --step chose
     one
  3  done, but evidence was lost inside what was looked at; standard error says what

Examples:
  tmrun overview bundle
  tmrun overview run.tmrun --step 4711 --json | jq .missing
  tmrun overview trace.jsonl | jq -r '.next_queries[].argv | @sh'")]
pub(super) struct OverviewArgs {
    /// A recording (.tmrun), a trace (JSONL) or a bundle; - reads standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The step of a recording that has several
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &OverviewArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.input)?;
    open::evidence(&args.input, args.step, |name, subject, evidence| {
        match !args.json && args.output.is_terminal() {
            true => args.output.write_text(&page(subject, evidence))?,
            false => args.output.write_json_text(overview(subject, evidence).as_bytes())?,
        }
        Ok(Loss::of_gaps(subject.lost()).outcome(name))
    })
}

/// The same for people, in a few lines.
fn page(subject: &Subject<'_>, evidence: &Evidence<'_>) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<9} {value}");
    };
    let run = &evidence.provenance;
    let what = format!("{}, {}, {}", run.entrypoint, run.phase, steps(subject));
    line("run", format!("{} on {}", plain(&what), plain(&run.device)));
    let issues = &evidence.health.issues;
    let count = |severity| issues.iter().filter(|one| one.severity == severity).count() as u64;
    let counts = format!(
        "{}, {}",
        plural(count(HealthSeverity::Error), "error"),
        plural(count(HealthSeverity::Warning), "warning")
    );
    let is = |good: bool, yes: &'static str, no: &'static str| if good { yes } else { no };
    let valid = is(evidence.health.structurally_valid, "valid", "STRUCTURALLY INVALID");
    let complete = is(evidence.health.capture_complete, "complete", "of a failed capture");
    line("verdict", format!("{valid}, {complete}; {counts}"));
    if subject.told.is_some() {
        line("missing", Loss::of_gaps(subject.lost()).words());
    }
    let levels = CapabilityKind::ALL
        .iter()
        .map(|&kind| format!("{kind} {}", evidence.capabilities.get(kind).level));
    line("can say", levels.collect::<Vec<_>>().join(", "));
    if let Some(graph) = &evidence.graph {
        #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
        let time = |ns: u64| duration(ns as f64);
        line("took", time(graph.summary.outer_wall_time_ns));
        for span in graph.summary.slowest_host_spans.iter().take(5) {
            let own = time(span.measured_overlap_self_time_ns);
            line("", format!("{own} of it in {}", plain(&span.name)));
        }
    }
    for finding in evidence.findings.iter().take(5) {
        line("", format!("{} ({})", plain(&finding.summary), finding.qualification));
    }
    let peak = evidence.memory.logical.as_ref().and_then(|memory| memory.peak.as_ref());
    if let Some(peak) = peak {
        line("memory", format!("{} live at most", plural(peak.live_bytes, "byte")));
    }
    let stats = &evidence.tensor_stats;
    let odd = stats.iter().filter(|one| one.non_finite > 0).count() as u64;
    if !stats.is_empty() {
        let all = plural(stats.len() as u64, "statistic");
        line("values", format!("{all}, {} not finite", number(odd)));
    }
    out
}
