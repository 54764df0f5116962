//! Whether a bundle is whole: its files, and what trace and evidence say.

use std::path::Path;

use serde_json::Value;
use tmrun_formats::bundle::{BundleReceipt, EVIDENCE, TRACE};
use tmrun_formats::evidence::Evidence;
use tmrun_formats::trace::TraceRun;

use super::bundled::Bundle;
use super::content::{Content, published};
use super::invalid::Invalid;
use super::problem::{Problem, ProblemKind};

/// A bundle that is whole.
pub(super) struct Verified {
    content: Content,
    pub(super) receipt: BundleReceipt<'static>,
    /// What its trace says of its run.
    pub(super) run: TraceRun,
    /// Why its trace is structurally invalid, by its evidence.
    pub(super) invalid: Option<Invalid>,
}

/// [`content`](super::content), and that it was published, has a trace and evidence, both of which can
/// be read to their ends, and that those and the manifest are of one run.
pub fn verify(root: &Path) -> Content {
    verified(root).map_or_else(|found| *found, |verified| verified.content)
}

/// The same, with what others ask of a bundle that holds.
pub(super) fn verified(root: &Path) -> Result<Verified, Box<Content>> {
    let mut found = published(root);
    for path in [TRACE, EVIDENCE] {
        if found.manifest.is_some() && found.declared(path).is_none() {
            found.problem(Problem::of(ProblemKind::Incomplete, path));
        }
    }
    let bundle = Bundle::of(root, found)?;
    match (trace(&bundle), evidence(&bundle)) {
        (Ok(run), Ok((provenance, invalid))) if run == provenance => {
            let receipt = bundle.receipt().clone();
            Ok(Verified { content: bundle.into_content(), receipt, run, invalid })
        }
        (Ok(run), Ok((provenance, _))) => {
            let problem = Problem::of(ProblemKind::Provenance, EVIDENCE);
            Err(with(bundle, [Some(problem.found(other_fields(&run, &provenance))), None]))
        }
        (trace, evidence) => Err(with(bundle, [trace.err(), evidence.err()])),
    }
}

fn with(bundle: Bundle, problems: [Option<Problem>; 2]) -> Box<Content> {
    let mut found = bundle.into_content();
    problems.into_iter().flatten().for_each(|problem| found.problem(problem));
    Box::new(found)
}

fn trace(bundle: &Bundle) -> Result<TraceRun, Problem> {
    let missing = || Problem::of(ProblemKind::Missing, TRACE);
    let text = bundle.checked(TRACE)?.ok_or_else(missing)?;
    Ok(bundle.parsed(&text)?.run)
}

fn evidence(bundle: &Bundle) -> Result<(TraceRun, Option<Invalid>), Problem> {
    let missing = || Problem::of(ProblemKind::Missing, EVIDENCE);
    let text = bundle.checked(EVIDENCE)?.ok_or_else(missing)?;
    let bad = |error| Problem::of(ProblemKind::BadEvidence, EVIDENCE).found(error);
    let evidence: Evidence<'_> = serde_json::from_slice(&text).map_err(bad)?;
    Ok((evidence.provenance, Invalid::of(&evidence.health)))
}

/// The names of the fields in which two runs differ.
fn other_fields(run: &TraceRun, other: &TraceRun) -> String {
    let fields = |run| serde_json::to_value(run).unwrap_or_default();
    let (run, other) = (fields(run), fields(other));
    let names = |run: &Value| run.as_object().map(|run| run.keys().cloned().collect::<Vec<_>>());
    let names = names(&run).into_iter().chain(names(&other)).flatten();
    let mut names: Vec<_> = names.filter(|name| run.get(name) != other.get(name)).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}
