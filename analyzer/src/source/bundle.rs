//! A bundle, as far as questions need it: its trace, its slice of the recording, and what Nsight saw.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tmrun_formats::bundle::{BundleManifest, EVIDENCE, MANIFEST, NSIGHT, TRACE};
use tmrun_formats::evidence::Gpu;
use tmrun_formats::trace::TraceDocument;

use super::SourceError;
use crate::input::Input;

/// The slice's file name.
const RECORDING: &str = "recording.tmrun";

/// A bundle's files.
#[derive(Debug)]
pub(super) struct Bundle {
    root: PathBuf,
    run_id: String,
    pub(super) trace: Input,
    pub(super) slice: Option<Input>,
    pub(super) gpu: Option<Gpu<'static>>,
}

/// The bundle that a path stands for: itself, or the one that it is the trace of.
pub(super) fn place(path: &Path) -> Result<Option<PathBuf>, SourceError> {
    let root = match (path.is_dir(), path.file_name()) {
        (true, _) => path,
        (false, Some(name)) if name == TRACE => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        },
        _ => return Ok(None),
    };
    if root.join(MANIFEST).exists() {
        return Ok(Some(root.to_owned()));
    }
    // What is published beside a trace belongs to it, and cannot be told from what somebody put there.
    for found in [EVIDENCE, NSIGHT] {
        if root.join(TRACE).is_file() && root.join(found).exists() {
            return Err(SourceError::Unbound { path: root.to_owned(), found });
        }
    }
    Ok(None)
}

/// The trace that a path stands for where there is no bundle.
pub(super) fn trace_in(path: &Path) -> Result<PathBuf, SourceError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let trace = path.join(TRACE);
    if trace.is_file() { Ok(trace) } else { Err(SourceError::NoBundle { path: path.to_owned() }) }
}

impl Bundle {
    pub(super) fn open(root: &Path) -> Result<Self, SourceError> {
        let path = root.join(MANIFEST);
        let bytes = Input::open(&path)?;
        let manifest: BundleManifest<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| SourceError::Manifest { path: path.clone(), error })?;
        manifest.check().map_err(|fault| SourceError::Fault { path, fault })?;
        let open = |name: &str| declared(root, &manifest, name);
        let trace = open(TRACE)?.ok_or_else(|| SourceError::Content {
            path: root.join(MANIFEST),
            what: "declared files",
            expected: TRACE.to_owned(),
            found: "none of that name".to_owned(),
        })?;
        // Evidence without Nsight is derived again from the trace.
        let has_nsight = root.join(NSIGHT).is_dir();
        let gpu = match open(EVIDENCE)? {
            Some(evidence) if has_nsight => Some(published_gpu(&root.join(EVIDENCE), &evidence)?),
            _ => None,
        };
        let slice = open(RECORDING)?;
        let run_id = manifest.run_id.clone().into_owned();
        Ok(Self { root: root.to_owned(), run_id, trace, slice, gpu })
    }

    /// Holds that the manifest is of this trace.
    pub(super) fn check_run(&self, trace: &TraceDocument<'_>) -> Result<(), SourceError> {
        if self.run_id == trace.run.run_id {
            return Ok(());
        }
        Err(SourceError::Content {
            path: self.root.join(TRACE),
            what: "run id",
            expected: format!("{:?}, which the manifest is of", self.run_id),
            found: format!("{:?}", trace.run.run_id),
        })
    }
}

/// A file of the bundle, as long as the manifest says; `None` where it declares none of the name.
fn declared(
    root: &Path,
    manifest: &BundleManifest<'_>,
    name: &str,
) -> Result<Option<Input>, SourceError> {
    let Some(file) = manifest.files.iter().find(|file| file.path == name) else { return Ok(None) };
    let path = root.join(name);
    let bytes = fs::symlink_metadata(&path).map_or(0, |found| found.len());
    let input = Input::open(&path)?;
    if input.len() as u64 == file.bytes && bytes == file.bytes {
        return Ok(Some(input));
    }
    Err(SourceError::Content {
        path,
        what: "bytes",
        expected: file.bytes.to_string(),
        found: input.len().to_string(),
    })
}

fn published_gpu(path: &Path, evidence: &[u8]) -> Result<Gpu<'static>, SourceError> {
    #[derive(Deserialize)]
    struct Published {
        gpu: Gpu<'static>,
    }
    let published: Result<Published, _> = serde_json::from_slice(evidence);
    published
        .map(|published| published.gpu)
        .map_err(|error| SourceError::Manifest { path: path.to_owned(), error })
}
