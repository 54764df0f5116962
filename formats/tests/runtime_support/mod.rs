//! What the runtime tests share: the sample files and the real neighbour.
#![allow(dead_code, reason = "each test file uses a part")]

use candle_graph_v03::runtime as theirs;
use std::fs;
use std::path::{Path, PathBuf};
use tmrun_formats::runtime::{RunMetadata, RuntimeDocument};

pub fn samples(kind: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/runtime").join(kind);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("sample folder")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} holds samples", folder.display());
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("readable sample"))
        })
        .collect()
}

/// The neighbour reads a file into a string first, so bytes that are no text are its error too.
pub fn their_verdict(bytes: &[u8]) -> Result<theirs::RuntimeTrace, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    theirs::parse(text).map_err(|error| format!("{error:#}"))
}

/// Both documents as JSON values: the neighbour's as it writes it, ours through our writer.
pub fn assert_same_content(ours: &RuntimeDocument, theirs: &theirs::RuntimeTrace, what: &str) {
    let json = ours.to_json().expect("an accepted document can be written");
    let again = their_verdict(&json).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(
        serde_json::to_value(&again).expect("value"),
        serde_json::to_value(theirs).expect("value"),
        "{what}"
    );
}

pub fn run() -> RunMetadata {
    RunMetadata {
        entrypoint: "model::train_step".into(),
        profile: "release".into(),
        phase: Some("train".into()),
        ..Default::default()
    }
}
