//! Where runs come from: bundles, each held against its manifest, and traces.

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use tmrun_formats::bundle::{BundleReceipt, TRACE};
use tmrun_formats::comparison::ComparisonInput;
use tmrun_formats::trace::{ReadError, TraceDocument};

use super::content::{self, ContentFault};
use super::{Refuted, Run};
use crate::evidence::{EvidenceError, read};
use crate::input::{Input, InputError};

/// The file of a bundle in which its publisher says what the trace has no place for.
const TOLD: &str = "tmrun.json";

/// A run that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory that is no bundle.
    #[error("{}: does not verify: {fault}", root.display())]
    Bundle {
        /// The directory.
        root: PathBuf,
        /// Why.
        fault: ContentFault,
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

/// A verified bundle.
#[derive(Debug)]
pub(super) struct Bundle<'b> {
    pub(super) receipt: BundleReceipt<'static>,
    pub(super) trace: &'b TraceDocument<'b>,
    /// What the trace would have declared, had all of it been kept.
    pub(super) refuted: Vec<Refuted>,
}

/// Verifies a bundle and reads its trace. The trace is gone when `with` is through with it.
pub(super) fn bundle<T>(
    root: &Path,
    with: impl FnOnce(&Bundle<'_>) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let failed = |fault| LoadError::Bundle { root: root.to_owned(), fault };
    let (manifest, receipt) = content::check(root).map_err(failed)?;
    let declared = |name: &str| manifest.files.iter().find(|file| file.path == name);
    let digest = declared(TRACE).map(|file| &*file.sha256);
    let Some(digest) = digest else {
        return Err(failed(ContentFault::Missing { path: TRACE.to_owned() }));
    };
    let path = root.join(TRACE);
    let input = Input::open(&path)?;
    let trace = read(&input).map_err(|error| LoadError::Read { path: path.clone(), error })?;
    // What was read is what was verified, also where somebody wrote in between.
    if !content::digest(&input).eq_ignore_ascii_case(digest) {
        return Err(LoadError::Changed { path });
    }
    if trace.run.run_id != receipt.run_id {
        let (manifest, trace) = (receipt.run_id.into_owned(), trace.run.run_id);
        return Err(LoadError::OtherRun { root: root.to_owned(), manifest, trace });
    }
    let refuted = match declared(TOLD) {
        Some(_) => refuted(&root.join(TOLD))?,
        None => Vec::new(),
    };
    with(&Bundle { receipt, trace: &trace, refuted })
}

/// The refutations of a bundle of ours. They are for messages alone, so that a document of a version
/// that has them elsewhere is one that has none.
fn refuted(path: &Path) -> Result<Vec<Refuted>, LoadError> {
    #[derive(Deserialize)]
    struct Told {
        #[serde(default)]
        refuted: Vec<Refuted>,
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
