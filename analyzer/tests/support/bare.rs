//! Bundles of a trace and of whatever else is asked for, and nothing that was derived from it.
#![allow(dead_code, reason = "every test uses some of it")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Writes a bundle of these files, one of which is the trace; the manifest's run is the trace's.
pub fn write(root: &Path, files: &[(&str, &str)]) {
    let (_, trace) = files.iter().find(|(name, _)| *name == "trace.jsonl").expect("a trace");
    let meta: Value = serde_json::from_str(trace.lines().next().expect("lines")).expect("JSON");
    write_as(root, files, meta["run_id"].as_str().expect("a run"));
}

/// The same with a manifest of any run.
pub fn write_as(root: &Path, files: &[(&str, &str)], run_id: &str) {
    fs::create_dir_all(root).expect("a folder");
    let declared = files.iter().map(|(name, text)| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
        let sha256 = format!("{:x}", Sha256::digest(text));
        json!({ "path": name, "bytes": text.len(), "sha256": sha256 })
    });
    let declared: Vec<_> = declared.collect();
    let manifest =
        json!({ "schema": "candle-graph/bundle/1", "run_id": run_id, "files": declared });
    fs::write(root.join("bundle.json"), manifest.to_string()).expect("written");
}

/// A bundle for each trace, in folders of their numbers.
pub fn write_all(root: &Path, traces: &[String]) -> Vec<PathBuf> {
    let folders = traces.iter().enumerate().map(|(number, trace)| {
        let folder = root.join(format!("{number:02}"));
        write(&folder, &[("trace.jsonl", trace)]);
        folder
    });
    folders.collect()
}
