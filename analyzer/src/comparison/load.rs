//! Where runs come from: bundles, each held against its manifest, and traces.

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tmrun_formats::bundle::{BundleFile, BundleReceipt, TRACE};
use tmrun_formats::comparison::ComparisonInput;
use tmrun_formats::trace::{ReadError, TraceDocument};

use super::Run;
use crate::bundle::{ANNEX, AnnexRefuted, Content, Problem, content};
use crate::evidence::{EvidenceError, read};
use crate::input::{Input, InputError};

/// A run that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory that is no bundle.
    #[error("{}: does not verify: {}", root.display(), shown(problems))]
    Bundle {
        /// The directory.
        root: PathBuf,
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// A bundle without a trace.
    #[error("{}: has no {TRACE}: expected a bundle of a run", root.display())]
    NoTrace {
        /// The bundle.
        root: PathBuf,
    },
    /// A bundle's trace is of another run than its manifest.
    #[error("{}: run_id of the manifest is {manifest:?}, of the trace {trace:?}: expected one", root.display())]
    OtherRun {
        /// The bundle.
        root: PathBuf,
        /// What the manifest says.
        manifest: String,
        /// What the trace says.
        trace: String,
    },
    /// A file that changed while it was read.
    #[error("{}: changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file that cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A trace that is none.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// A trace that says nothing.
    #[error("{}: {error}", path.display())]
    Evidence {
        /// The file.
        path: PathBuf,
        /// Why.
        error: EvidenceError,
    },
}

/// The first thing that is wrong, and that there is more.
fn shown(problems: &[Problem]) -> String {
    let mut problems = problems.iter();
    let first = problems.next().map_or_else(String::new, ToString::to_string);
    match problems.count() {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// A verified bundle.
#[derive(Debug)]
pub(super) struct Bundle<'b> {
    pub(super) receipt: BundleReceipt<'static>,
    pub(super) trace: &'b TraceDocument<'b>,
    /// What the trace would have declared, had all of it been kept.
    pub(super) refuted: Vec<AnnexRefuted<'static>>,
}

/// Verifies a bundle and reads its trace. The trace is gone when `with` is through with it.
pub(super) fn bundle<T>(
    root: &Path,
    with: impl FnOnce(&Bundle<'_>) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let root_named = || root.to_owned();
    let Content { manifest, receipt, problems, .. } = content(root);
    let (Some(manifest), Some(receipt)) = (manifest, receipt) else {
        return Err(LoadError::Bundle { root: root_named(), problems });
    };
    let declared = |name: &str| manifest.files.iter().find(|file| file.path == name);
    let Some(BundleFile { sha256, .. }) = declared(TRACE) else {
        return Err(LoadError::NoTrace { root: root_named() });
    };
    let path = root.join(TRACE);
    let input = Input::open(&path)?;
    let trace = read(&input).map_err(|error| LoadError::Read { path: path.clone(), error })?;
    // What was read is what was verified, also where somebody wrote in between.
    if !format!("{:x}", Sha256::digest(&*input)).eq_ignore_ascii_case(sha256) {
        return Err(LoadError::Changed { path });
    }
    if trace.run.run_id != receipt.run_id {
        let (manifest, trace) = (receipt.run_id.into_owned(), trace.run.run_id);
        return Err(LoadError::OtherRun { root: root_named(), manifest, trace });
    }
    let refuted = match declared(ANNEX) {
        Some(_) => refuted(&root.join(ANNEX))?,
        None => Vec::new(),
    };
    with(&Bundle { receipt, trace: &trace, refuted })
}

/// The refutations of a bundle of ours. They are for messages alone, so that a document of a version
/// that has them elsewhere is one that has none.
fn refuted(path: &Path) -> Result<Vec<AnnexRefuted<'static>>, LoadError> {
    #[derive(Deserialize)]
    struct Told {
        #[serde(default)]
        refuted: Vec<AnnexRefuted<'static>>,
    }
    let text =
        std::fs::read(path).map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    Ok(serde_json::from_slice(&text).map_or_else(|_| Vec::new(), |told: Told| told.refuted))
}

/// One side's runs, in the order of their names. Several are read at a time.
pub(super) fn each<T: Send>(
    paths: &[PathBuf],
    load: impl Fn(&Path) -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let loaded: Vec<_> = paths.par_iter().map(|path| load(path)).collect();
    loaded.into_iter().collect()
}

/// The runs of bundles, and what they were verified to be.
///
/// # Errors
/// The first one that is no bundle of a run.
pub fn bundles(paths: &[PathBuf]) -> Result<(Vec<Run>, Vec<ComparisonInput<'static>>), LoadError> {
    let loaded = each(paths, |root| {
        bundle(root, |bundle| {
            let run = run(&root.join(TRACE), bundle.trace)?.with_refuted(bundle.refuted.clone());
            let BundleReceipt { run_id, manifest_sha256, .. } = bundle.receipt.clone();
            Ok((run, ComparisonInput { run_id, manifest_sha256 }))
        })
    });
    Ok(loaded?.into_iter().unzip())
}

/// The runs of traces.
///
/// # Errors
/// The first one that is none.
pub fn traces(paths: &[PathBuf]) -> Result<Vec<Run>, LoadError> {
    each(paths, |path| {
        let input = Input::open(path)?;
        let trace =
            read(&input).map_err(|error| LoadError::Read { path: path.to_owned(), error })?;
        run(path, &trace)
    })
}

fn run(path: &Path, trace: &TraceDocument<'_>) -> Result<Run, LoadError> {
    Run::of(trace).map_err(|error| LoadError::Evidence { path: path.to_owned(), error })
}
