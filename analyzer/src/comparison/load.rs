//! Where runs come from: bundles, each held against its manifest, and traces.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use tmrun_formats::bundle::{BundleReceipt, TRACE};
use tmrun_formats::comparison::ComparisonInput;
use tmrun_formats::trace::{ReadError, TraceDocument};

use super::Run;
use crate::bundle::{self, ANNEX, AnnexRefuted, BundleError};
use crate::evidence::{EvidenceError, read};
use crate::input::{Input, InputError};

/// A run that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory that is no bundle of a run.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A file that cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
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
    pub(super) refuted: Vec<AnnexRefuted<'static>>,
}

/// Verifies a bundle and reads its trace. The trace is gone when `with` is through with it.
pub(super) fn bundle<T>(
    root: &Path,
    with: impl FnOnce(&Bundle<'_>) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let bundle = bundle::Bundle::open(root)?;
    let text = bundle.trace_file()?;
    let trace = bundle.trace(&text)?;
    let refuted = bundle.file(ANNEX)?.map(|text| refuted(&text)).unwrap_or_default();
    with(&Bundle { receipt: bundle.receipt().clone(), trace: &trace, refuted })
}

/// The refutations of a bundle of ours. They are for messages alone, so that a document of a version
/// that has them elsewhere is one that has none.
fn refuted(annex: &[u8]) -> Vec<AnnexRefuted<'static>> {
    #[derive(Default, Deserialize)]
    struct Told {
        #[serde(default)]
        refuted: Vec<AnnexRefuted<'static>>,
    }
    serde_json::from_slice::<Told>(annex).unwrap_or_default().refuted
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
