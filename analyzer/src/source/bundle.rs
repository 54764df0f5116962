//! A bundle, as far as questions need it: its trace, its slice of the recording, and what Nsight saw.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tmrun_formats::bundle::{EVIDENCE, MANIFEST, NSIGHT, TRACE};
use tmrun_formats::evidence::Gpu;
use tmrun_formats::trace::TraceDocument;

use super::SourceError;
use crate::bundle::{Content, RECORDING, content};
use crate::input::Input;

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
    /// Opens a bundle whose every file is what the manifest says.
    pub(super) fn open(root: &Path) -> Result<Self, SourceError> {
        let Content { manifest, problems, more, .. } = content(root);
        let mut problems = problems.into_iter();
        if let Some(first) = problems.next() {
            let more = more.saturating_add(problems.len() as u64);
            return Err(SourceError::Bundle { path: root.to_owned(), first, more });
        }
        let manifest = manifest.unwrap_or_default();
        let declares = |name: &str| manifest.files.iter().any(|file| file.path == name);
        let open = |name: &str| {
            declares(name)
                .then(|| Input::open(&root.join(name)))
                .transpose()
                .map_err(SourceError::from)
        };
        let path = root.to_owned();
        let trace = open(TRACE)?.ok_or(SourceError::NoTrace { path })?;
        // Evidence without Nsight is derived again from the trace.
        let has_nsight = root.join(NSIGHT).is_dir();
        let gpu = match open(EVIDENCE)? {
            Some(evidence) if has_nsight => Some(published_gpu(&root.join(EVIDENCE), &evidence)?),
            _ => None,
        };
        let slice = open(RECORDING)?;
        let run_id = manifest.run_id.into_owned();
        Ok(Self { root: root.to_owned(), run_id, trace, slice, gpu })
    }

    /// Holds that the manifest is of this trace.
    pub(super) fn check_run(&self, trace: &TraceDocument<'_>) -> Result<(), SourceError> {
        if self.run_id == trace.run.run_id {
            return Ok(());
        }
        Err(SourceError::OtherRun {
            path: self.root.join(TRACE),
            expected: self.run_id.clone(),
            found: trace.run.run_id.clone(),
        })
    }
}

fn published_gpu(path: &Path, evidence: &[u8]) -> Result<Gpu<'static>, SourceError> {
    #[derive(Deserialize)]
    struct Published {
        gpu: Gpu<'static>,
    }
    let published: Result<Published, _> = serde_json::from_slice(evidence);
    published
        .map(|published| published.gpu)
        .map_err(|error| SourceError::Evidence { path: path.to_owned(), error })
}
