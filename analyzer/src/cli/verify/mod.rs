//! `tmrun verify`: every CRC and every sequence number of a file, every digest of a bundle.

mod directory;

use std::fmt::Write as _;
use std::path::PathBuf;

use tmrun::escape::escaped;
use tmrun::input::Input;
use tmrun::scan::{Finding, Recording};
use tmrun_formats::DecodeError;
use tmrun_formats::json::{self, Object};

use super::loss::Loss;
use super::output::OutputArgs;
use super::text::plural;
use super::{Failure, Outcome, open, schemas};

/// Check every byte of a recording, or every file of a bundle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a recording the CRCs, sequence numbers, structure, index and trailer are checked. Of a bundle, a
directory, the receipt goes to standard output as JSON: links, special files, undeclared, missing,
changed files and unsafe paths are problems, all of them listed. With --semantic its documents are
derived from its recording once more, and every value compared.

Exit codes:
  0  every byte holds; a file without trailer is whole too, and standard error says so
  1  something does not hold, or the file is no recording: each place is listed with its offset,
     what was expected and what was found
  2  the command line is wrong
  3  every byte holds, and the recording says that evidence was lost while it was made; not of a
     bundle, which has declared its gaps

Examples:
  tmrun verify run.tmrun
  tmrun verify --json run.tmrun | jq '.findings[] | {offset, what}'
  ssh trainer cat run.tmrun | tmrun verify - && echo intact
  tmrun verify --semantic profiles/step-4711 | jq .semantic.status")]
pub(crate) struct VerifyArgs {
    /// The recording, or the directory of a bundle; - reads standard input
    #[arg(value_name = "INPUT")]
    file: PathBuf,
    /// Of a bundle, derive its documents once more and compare every value
    #[arg(long)]
    semantic: bool,
    /// Print one JSON document, as is always done of a bundle
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// So many findings are listed, and the others counted.
const LISTED: usize = 10_000;

pub(super) fn run(args: &VerifyArgs) -> Result<Outcome, Failure> {
    args.output.check(&args.file)?;
    if args.file.is_dir() {
        return directory::run(&args.file, args.semantic, &args.output);
    }
    if args.semantic {
        return Err(Failure::Usage("--semantic is for a bundle, which is a directory"));
    }
    let input = Input::open(&args.file)?;
    let recording = open::recording(&input, input.name())?;
    let findings = recording.verify();
    let loss = Loss::of(&recording);
    match args.json {
        true => args.output.write_json_text(&as_json(&recording, &findings, &loss))?,
        false => args.output.write_text(&as_text(&recording, &findings))?,
    }
    if !findings.is_empty() {
        return Ok(Outcome::No);
    }
    open::say_if_not_finished(&recording);
    Ok(loss.outcome(input.name()))
}

fn as_text(recording: &Recording<'_>, findings: &[Finding]) -> String {
    let name = escaped(recording.name());
    let mut out = String::new();
    for finding in findings.iter().take(LISTED) {
        let _ = writeln!(out, "{name}: {finding}");
    }
    if let Some(more) = findings.len().checked_sub(LISTED).filter(|&more| more > 0) {
        let _ = writeln!(out, "{name}: … and {more} more");
    }
    let whole = format!(
        "{} and {}",
        plural(recording.chunk_counts().all, "chunk"),
        plural(recording.counts().total(), "record")
    );
    let _ = match findings.len() as u64 {
        0 => writeln!(out, "{name}: intact: {whole}"),
        n => writeln!(
            out,
            "{name}: damaged: {}; {} of records still hold and can be used",
            plural(n, "finding"),
            plural(recording.chunk_counts().records, "chunk")
        ),
    };
    out
}

fn as_json(recording: &Recording<'_>, findings: &[Finding], loss: &Loss) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.string("schema", schemas::VERIFY);
    object.string("file", recording.name());
    object.bool("intact", findings.is_empty());
    object.string("status", recording.status().name());
    object.u64("bytes", recording.bytes().len() as u64);
    object.u64("chunks", recording.chunk_counts().all);
    object.u64("records", recording.counts().total());
    object.u64("lost_records", loss.records);
    object.u64("lost_gaps", loss.gaps);
    json::push_array(object.value("findings"), findings.iter().take(LISTED), push_finding);
    object.u64("more_findings", findings.len().saturating_sub(LISTED) as u64);
    object.end();
    out.push(b'\n');
    out
}

/// Both numbers are strings: they can be any 64 bits.
fn push_finding(out: &mut Vec<u8>, finding: &Finding) {
    let (class, what, expected, found) = match finding.error {
        DecodeError::Truncated { what, expected, found, .. } => {
            ("truncated", what, expected.to_string(), found.to_string())
        }
        DecodeError::Malformed { what, expected, found, .. } => {
            ("malformed", what, format!("{expected:#x}"), format!("{found:#x}"))
        }
        DecodeError::Unsupported { what, expected, found, .. } => {
            ("unsupported", what, expected.to_string(), found.to_string())
        }
        _ => ("unknown", "", String::new(), String::new()),
    };
    let mut object = Object::begin(out);
    object.u64("offset", finding.error.offset());
    object.string("class", class);
    object.string("what", what);
    object.string("expected", &expected);
    object.string("found", &found);
    match finding.chunk {
        Some(chunk) => object.string("chunk", &chunk.to_string()),
        None => object.null("chunk"),
    }
    match finding.lane {
        Some(lane) => object.u64("lane", lane.0.into()),
        None => object.null("lane"),
    }
    object.string("message", &finding.to_string());
    object.end();
}
