//! A bundle, as far as questions need it: its trace, its slice of the recording, and what Nsight saw.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tmrun_formats::bundle::{EVIDENCE, MANIFEST, NSIGHT, TRACE};
use tmrun_formats::evidence::Gpu;
use tmrun_formats::trace::TraceDocument;

use super::SourceError;
use crate::bundle::{self, RECORDING, is_staging};
use crate::input::{Input, InputError};

/// A bundle's files.
#[derive(Debug)]
pub(super) struct Bundle {
    bundle: bundle::Bundle,
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
    // What was being put together is the bundle that it did not become, and nothing else either.
    if root.join(MANIFEST).exists() || is_staging(root) {
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
    match fs::metadata(&trace) {
        Ok(found) if found.is_file() => Ok(trace),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(InputError::File { path: trace, source }.into())
        }
        _ => Err(SourceError::NoBundle { path: path.to_owned() }),
    }
}

impl Bundle {
    /// Opens a bundle whose every file is what the manifest says.
    pub(super) fn open(root: &Path) -> Result<Self, SourceError> {
        let bundle = bundle::Bundle::open(root)?;
        let trace = bundle.trace_file()?;
        // Evidence without Nsight is derived again from the trace.
        let has_nsight = root.join(NSIGHT).is_dir();
        let evidence = if has_nsight { bundle.file(EVIDENCE)? } else { None };
        let gpu = evidence.map(|evidence| published_gpu(&root.join(EVIDENCE), &evidence));
        let (gpu, slice) = (gpu.transpose()?, bundle.file(RECORDING)?);
        Ok(Self { bundle, trace, slice, gpu })
    }

    /// What its trace says.
    pub(super) fn parse(&self) -> Result<TraceDocument<'_>, SourceError> {
        Ok(self.bundle.trace(&self.trace)?)
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
