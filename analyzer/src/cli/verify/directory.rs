//! `tmrun verify DIR`: a bundle, file by file, and on demand value by value.

use std::path::Path;

use serde::Serialize;
use tmrun::bundle::{Content, Mismatch, Problem, Semantic, SemanticError, semantic, verify};
use tmrun_formats::bundle::{BundleReceipt, Tool};

use super::super::output::OutputArgs;
use super::super::{Failure, Outcome, say, schemas};

/// So many lines go to standard error; the receipt has more.
const LINES: usize = 20;

/// The receipt. Where everything holds it has what the neighbour's has, at the same places.
#[derive(Serialize)]
struct Receipt<'r> {
    schema: &'static str,
    tool: Tool<'static>,
    bundle: String,
    intact: bool,
    receipt: Option<&'r BundleReceipt<'static>>,
    problems: &'r [Problem],
    more_problems: u64,
    semantic: Option<Derived<'r>>,
}

#[derive(Serialize)]
struct Derived<'r> {
    status: &'static str,
    source: Option<&'static str>,
    mismatches: &'r [Mismatch],
    more_mismatches: u64,
    reason: Option<String>,
}

pub(super) fn run(
    root: &Path,
    wants_semantic: bool,
    output: &OutputArgs,
) -> Result<Outcome, Failure> {
    let Content { receipt, problems, more, .. } = verify(root);
    // Of what does not hold nothing is derived.
    let derived = (wants_semantic && receipt.is_some()).then(|| semantic(root));
    let intact = receipt.is_some();
    let document = Receipt {
        schema: schemas::VERIFY_BUNDLE,
        tool: Tool { package: "tmrun".into(), version: env!("CARGO_PKG_VERSION").into() },
        bundle: root.display().to_string(),
        intact,
        receipt: receipt.as_ref(),
        problems: &problems,
        more_problems: more,
        semantic: derived.as_ref().map(of_semantic),
    };
    let matches = document.semantic.as_ref().is_none_or(|d| d.status == "rederived_match");
    output.write_json(&document)?;

    let name = root.display();
    say_first(problems.iter().map(ToString::to_string), problems.len(), more, &name);
    match &derived {
        Some(Ok(found)) => {
            let lines = found.mismatches.iter().map(line);
            say_first(lines, found.mismatches.len(), found.more, &name);
        }
        Some(Err(error)) => say(format_args!("{name}: nothing could be derived: {error}")),
        None => {}
    }
    Ok(if intact && matches { Outcome::Done } else { Outcome::No })
}

fn of_semantic(derived: &Result<Semantic, SemanticError>) -> Derived<'_> {
    match derived {
        Ok(found) => Derived {
            status: match found.mismatches.is_empty() {
                true => "rederived_match",
                false => "mismatch",
            },
            source: Some(found.source.name()),
            mismatches: &found.mismatches,
            more_mismatches: found.more,
            reason: None,
        },
        Err(error) => Derived {
            status: "not_derived",
            source: None,
            mismatches: &[],
            more_mismatches: 0,
            reason: Some(error.to_string()),
        },
    }
}

fn line(mismatch: &Mismatch) -> String {
    let nothing = "nothing".to_owned();
    let line = mismatch.line.map(|line| format!(" line {line}")).unwrap_or_default();
    let at = match mismatch.at.is_empty() {
        true => String::new(),
        false => format!(" {}", mismatch.at),
    };
    format!(
        "{}{line}{at}: derived {}, published {}",
        mismatch.file,
        mismatch.derived.as_ref().unwrap_or(&nothing),
        mismatch.published.as_ref().unwrap_or(&nothing)
    )
}

fn say_first(
    lines: impl Iterator<Item = String>,
    listed: usize,
    more: u64,
    name: &std::path::Display<'_>,
) {
    lines.take(LINES).for_each(|line| say(format_args!("{name}: {line}")));
    let more = more.saturating_add(listed.saturating_sub(LINES) as u64);
    if more > 0 {
        say(format_args!("{name}: … and {more} more"));
    }
}
