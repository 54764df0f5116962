//! What the trace tests share: the sample files and the real neighbour.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod lines;

use candle_graph_v10::trace as theirs;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tmrun_formats::trace::{
    CaptureContract, ReadError, TimingMode, TraceDocument, TracePhase, TraceRun,
};

/// Every sample: its name, and its bytes.
pub fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/trace");
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("sample folder")
        .map(|entry| entry.expect("entry").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 40, "{} holds the samples", folder.display());
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("readable sample"))
        })
        .collect()
}

/// The neighbour reads files.
pub struct Neighbour(tempfile::NamedTempFile);

impl Neighbour {
    pub fn new() -> Self {
        Self(tempfile::NamedTempFile::new().expect("a file"))
    }

    pub fn read(&mut self, bytes: &[u8]) -> Result<theirs::TraceDocument, String> {
        fs::File::create(self.0.path())
            .and_then(|mut file| file.write_all(bytes))
            .expect("can be written");
        theirs::parse_trace(self.0.path()).map_err(|error| format!("{error:#}"))
    }

    /// The same verdict, and what both accept says the same to the neighbour when it is written
    /// again. Returns the error of ours.
    pub fn agrees(&mut self, bytes: &[u8], what: &str) -> Option<ReadError> {
        match (TraceDocument::read(bytes), self.read(bytes)) {
            (Ok(ours), Ok(theirs)) => {
                let written = ours.write(Vec::new()).expect("what reads can be written");
                let again = self.read(&written).unwrap_or_else(|error| panic!("{what}: {error}"));
                // Debug tells floats apart that compare equal.
                assert_eq!(format!("{again:?}"), format!("{theirs:?}"), "{what}");
                same_spans(&ours, &theirs);
                let reread = TraceDocument::read(&written).expect("what is written reads");
                assert_eq!(reread.write(Vec::new()).expect("and writes"), written, "{what}");
                None
            }
            (Err(ours), Err(_)) => Some(ours),
            (ours, theirs) => panic!(
                "{what}: ours {:?}, theirs {:?}\n{}",
                ours.err(),
                theirs.err(),
                String::from_utf8_lossy(bytes)
            ),
        }
    }
}

/// The neighbour holds spans in the order of their ids.
fn same_spans(ours: &TraceDocument<'_>, theirs: &theirs::TraceDocument) {
    let ids = ours.by_id.iter().map(|&index| &*ours.spans[index].id);
    assert!(ids.eq(theirs.spans.iter().map(|span| span.id.as_str())));
    for span in &theirs.spans {
        let found = ours.span(&span.id).expect("it is found by its id");
        assert_eq!(found.duration_ns, span.closed.then_some(span.duration_ns));
    }
}

/// A run that breaks no rule.
pub fn run() -> TraceRun {
    TraceRun {
        run_id: "run-1".into(),
        correlation_id: "model::step/update-3".into(),
        entrypoint: "model::step".into(),
        phase: TracePhase::Train,
        timestamp: "2026-08-04T18:00:00.000Z".into(),
        capture_step: 3,
        warmup_steps: 2,
        device: "cpu".into(),
        measured_region_device_synchronized: false,
        timing_mode: TimingMode::Host,
        capture_contract: CaptureContract::default(),
        comparison_identity: None,
        tags: [("batch".to_owned(), "32".to_owned())].into(),
        candle_version: None,
    }
}
