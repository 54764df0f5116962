//! Whether the directory is of the trace's run.

use super::files;
use crate::input::document;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Component, Path};
use tmrun_formats::evidence::{GpuArtifact, GpuBinding, GpuCapture, GpuProvenance};
use tmrun_formats::trace::{CaptureContract, TraceRun};

/// The file in which whoever ran Nsight says what was captured.
const MANIFEST: &str = "capture-manifest.json";

/// Reads the manifest and holds it against the run, its contract, and the files that were `read`.
pub(super) fn of(
    folder: &Path,
    run: &TraceRun,
    read: &[&GpuArtifact<'_>],
    has_report: bool,
) -> GpuProvenance<'static> {
    let manifest = match manifest(folder) {
        Ok(manifest) => manifest,
        Err(why) => {
            let then = "without a manifest, nothing says which trace the reports are of";
            let diagnostics = vec![why.into(), then.into()];
            return GpuProvenance { binding: GpuBinding::Partial, manifest: None, diagnostics };
        }
    };
    let mut faults = Vec::new();
    if manifest.schema != GpuCapture::SCHEMA {
        let (expected, found) = (GpuCapture::SCHEMA, &manifest.schema);
        faults.push(format!("{MANIFEST}: schema is {found:?}: expected {expected:?}"));
    }
    if !has_report {
        faults.push(
            "there is no .nsys-rep: expected the report that the tables were made from".into(),
        );
    }
    check_labels(&manifest, &run.capture_contract, &mut faults);
    check_files(folder, &manifest, read, &mut faults);
    for (field, found, expected) in [
        ("run.id", &manifest.run.id, &run.run_id),
        ("correlation.id", &manifest.correlation.id, &run.correlation_id),
    ] {
        if found != expected {
            faults.push(format!(
                "{MANIFEST}: {field} is {found:?}: expected {expected:?}, the trace's"
            ));
        }
    }
    GpuProvenance {
        binding: if faults.is_empty() { GpuBinding::Bound } else { GpuBinding::Mismatch },
        manifest: Some(manifest),
        diagnostics: faults.into_iter().map(Into::into).collect(),
    }
}

fn manifest(folder: &Path) -> Result<GpuCapture<'static>, String> {
    let text = document(&folder.join(MANIFEST)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no {MANIFEST}"),
        _ => format!("{MANIFEST}: cannot be read: {error}"),
    })?;
    serde_json::from_slice(&text).map_err(|error| format!("{MANIFEST}: {error}"))
}

fn check_labels(manifest: &GpuCapture<'_>, contract: &CaptureContract, faults: &mut Vec<String>) {
    let required = &manifest.required_semantic_labels;
    let (gpu, cpu) = (&manifest.gpu_expected_semantic_labels, &manifest.cpu_only_semantic_labels);
    let is_classified = !gpu.is_empty() || !cpu.is_empty();
    let lists = [
        ("required_semantic_labels", required, &*contract.required_semantic_labels),
        // Without classes, all of them are the GPU's.
        (
            "gpu_expected_semantic_labels",
            if is_classified { gpu } else { required },
            contract.gpu_expected(),
        ),
        ("cpu_only_semantic_labels", cpu, &*contract.cpu_only_semantic_labels),
    ];
    for (field, declared, expected) in lists {
        let found: BTreeSet<&str> = declared.iter().map(|label| &**label).collect();
        let expected: BTreeSet<&str> = expected.iter().map(|label| &**label).collect();
        let is_list = is_classified || field != "gpu_expected_semantic_labels";
        if is_list && found.len() != declared.len() {
            faults.push(format!("{MANIFEST}: {field} has labels twice: expected each once"));
        }
        if found != expected {
            faults.push(format!(
                "{MANIFEST}: {field} are {found:?}: expected {expected:?}, as the trace's contract has"
            ));
        }
    }
}

fn check_files(
    folder: &Path,
    manifest: &GpuCapture<'_>,
    read: &[&GpuArtifact<'_>],
    faults: &mut Vec<String>,
) {
    let known: HashMap<&str, &GpuArtifact<'_>> =
        read.iter().map(|artifact| (&*artifact.path, *artifact)).collect();
    let mut declared = BTreeSet::new();
    for GpuArtifact { path, size_bytes, sha256 } in &manifest.artifacts {
        let parts = Path::new(&**path).components();
        if !declared.insert(&**path) {
            faults.push(format!("{path:?} is declared twice"));
            continue;
        }
        if path.is_empty() || !parts.into_iter().all(|part| matches!(part, Component::Normal(_))) {
            faults.push(format!("{path:?}: expected a relative path inside the directory"));
            continue;
        }
        let found = known.get(&**path).map(|artifact| Cow::Borrowed(*artifact));
        let there = folder.join(&**path);
        let found = match found {
            None if there.is_file() => files::unread(&there).map(|found| Some(Cow::Owned(found))),
            found => Ok(found),
        };
        match found {
            Err(error) => faults.push(format!("{path:?}: cannot be read: {error}")),
            Ok(None) => faults.push(format!("{path:?} is declared and missing")),
            Ok(Some(found)) => {
                if found.size_bytes != *size_bytes {
                    let found = found.size_bytes;
                    faults.push(format!("{path:?}: expected {size_bytes} bytes, found {found}"));
                }
                if !found.sha256.eq_ignore_ascii_case(sha256) {
                    let found = &found.sha256;
                    faults.push(format!("{path:?}: expected the sha256 {sha256}, found {found}"));
                }
            }
        }
    }
    let others = read.iter().filter(|artifact| !declared.contains(&*artifact.path));
    faults.extend(others.map(|artifact| format!("{:?} is not declared", artifact.path)));
}
