//! `tmrun query INPUT --kind KIND`: one question.

mod text;

use std::io;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tmrun::evidence::{derive, graph_despite_gradients};
use tmrun::query::{
    Answer, Envelope, Kind, LabelFilter, Needs, Page, QueryError, Question, gaps_of_recording,
    of_trace, slow_steps,
};
use tmrun::source::{Opened, Source, SourceKind, SubjectInput};
use tmrun_formats::evidence::Capabilities;

use super::loss::Loss;
use super::output::OutputArgs;
use super::{Failure, Outcome, open};

/// Ask one question of a recording, a trace or a bundle
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
A table on a terminal, one JSON document (schema tmrun/query/1) elsewhere or with --json. Its
`result` is that of candle-graph/trace-query/7 for all kinds but slow-steps and gaps.

Exit codes:
  0  done
  1  the input is unreadable, has no such step, or is too broken for this question
  2  the command line is wrong; also when the recording has several invocations and no --step chose
     one
  3  done, but evidence was lost inside what was asked; standard error says what

Examples:
  tmrun query run.tmrun --kind slow-steps
  tmrun query run.tmrun --step 4711 --kind slowest-host
  tmrun query bundle --kind gradients --label-prefix encoder. --all --json | jq '.result.rows[]'")]
pub(super) struct QueryArgs {
    /// A recording (.tmrun), a trace (JSONL) or a bundle; - reads standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// What to ask
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: Kind,
    /// The step of a recording that has several
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Only rows of this label
    #[arg(long, value_name = "LABEL", conflicts_with = "label_prefix")]
    label: Option<String>,
    /// Only rows whose label begins so
    #[arg(long, value_name = "PREFIX")]
    label_prefix: Option<String>,
    /// So many rows at most, 1 to 1000 [default: 50]
    #[arg(long, value_name = "N", value_parser = limit, conflicts_with = "all")]
    limit: Option<usize>,
    /// Rows behind so many [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    offset: Option<usize>,
    /// All rows
    #[arg(long)]
    all: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::ALL.iter().map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(kinds).try_map(|name| Kind::of(&name).ok_or("no such kind"))
}

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=Page::MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| format!("expected 1 to {}; --all is all of them", Page::MAX_LIMIT))
}

impl QueryArgs {
    fn question(&self) -> Question {
        let exact = self.label.clone().map(LabelFilter::Exact);
        let filter = exact.or_else(|| self.label_prefix.clone().map(LabelFilter::Prefix));
        let is_paged = self.all || self.limit.is_some() || self.offset.is_some();
        let page = is_paged.then(|| Page {
            limit: self.limit.unwrap_or(Page::DEFAULT_LIMIT),
            offset: self.offset.unwrap_or(0),
            all: self.all,
        });
        Question { kind: self.kind, filter, page }
    }
}

pub(super) fn run(args: &QueryArgs) -> Result<Outcome, Failure> {
    let question = args.question();
    question.check()?;
    args.output.check(&args.input)?;
    let source = Source::open(&args.input)?;
    let opened = open::source(&source)?;
    if matches!(args.kind.needs(), Needs::Recording | Needs::Either)
        && let Some(outcome) = of_recording(args, &question, &opened)?
    {
        return Ok(outcome);
    }
    let part = opened.part(args.step)?;
    let subject = part.subject();
    let name = source.name();
    open::say_if_several_steps(name, subject.several_steps);
    let evidence = open::told(name, derive(subject.trace(), subject.gpu.clone(), subject.told()))?;
    let despite = open::told(name, graph_despite_gradients(subject.trace(), &evidence.health))?;
    let graph = evidence.graph.as_ref().or(despite.as_ref());
    let answer = of_trace(&question, &subject, &evidence, graph)?;
    let mut notes = Vec::new();
    if !evidence.health.structurally_valid {
        notes.push(match despite {
            Some(_) => "the trace is invalid for its gradients alone: all else is given as of a valid one",
            None => "the trace is structurally invalid: rows are as recorded, and nothing vouches for them",
        });
    }
    if !evidence.health.capture_complete {
        notes.push("the capture failed: what came behind that is not there");
    }
    if args.kind == Kind::Gaps && subject.told.is_none() {
        notes.push("nobody has the recording: which records are missing is not known");
    }
    let capabilities = Some(&evidence.capabilities);
    write(args, &question, subject.input, capabilities, &notes, &answer)?;
    Ok(Loss::of_gaps(subject.lost()).outcome(name))
}

/// Asks a recording as a whole, where that is what is asked.
fn of_recording(
    args: &QueryArgs,
    question: &Question,
    opened: &Opened<'_>,
) -> Result<Option<Outcome>, Failure> {
    let source = opened.source();
    let whole = opened.recording().filter(|_| source.kind() == SourceKind::Recording);
    let kind = question.kind;
    let page = question.page.unwrap_or_default();
    let (recording, answer) = match (kind, args.step, whole) {
        (Kind::SlowSteps, Some(_), _) => return Err(QueryError::NoStep { kind }.into()),
        (Kind::SlowSteps, None, None) => {
            return Err(QueryError::NoRecording { name: source.name().to_owned(), kind }.into());
        }
        (Kind::SlowSteps, None, Some(whole)) => (whole, Answer::SlowSteps(slow_steps(page, whole))),
        (_, None, Some(whole)) => (whole, Answer::Gaps(gaps_of_recording(page, whole))),
        _ => return Ok(None),
    };
    let path = source.name();
    let input = SubjectInput { kind: source.kind(), path, step: None, region: None };
    write(args, question, input, None, &[], &answer)?;
    open::say_if_not_finished(recording);
    Ok(Some(Loss::of(recording).outcome(path)))
}

fn write(
    args: &QueryArgs,
    question: &Question,
    input: SubjectInput<'_>,
    capabilities: Option<&Capabilities<'_>>,
    notes: &[&str],
    answer: &Answer<'_>,
) -> Result<(), Failure> {
    if !args.json && args.output.is_terminal() {
        let answer = serde_json::to_value(answer).map_err(io::Error::from)?;
        return args.output.write_text(&text::page(question.kind, notes, &answer));
    }
    args.output.write_json(&Envelope::of(question, input, capabilities, notes, answer))
}
