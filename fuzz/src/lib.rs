//! The bodies of the fuzz targets, one for each thing that is eaten, as plain functions. A body
//! fails by panicking: on a panic of what it calls, or on an answer that contradicts another.

mod evidence;
mod nsight;
mod rings;
mod seal;

pub use evidence::evidence;
pub use nsight::nsight_csv;

use tmrun::audit::{ExpectedIdentity, audit as audit_trace};
use tmrun::convert::{Form, Options, Plan, Schema};
use tmrun::salvage;
use tmrun::scan::Recording;
use tmrun_formats::Phase;
use tmrun_formats::bundle::{BundleManifest, MANIFEST};
use tmrun_formats::runtime;
use tmrun_formats::trace::{ReadError, TraceDocument, TraceLine, TracePart, dense_bytes};
use tmrun_formats::wire::{Chunks, FileHeader, Frames, Walked, groups};

/// A target: its name, which is that of its corpus folder, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 11] = [
    ("tmrun_file", tmrun_file),
    ("rings_file", rings_file),
    ("tmrun_salvage", tmrun_salvage),
    ("meta_frame", meta_frame),
    ("runtime_document", runtime_document),
    ("runtime_jsonl", runtime_jsonl),
    ("trace_jsonl", trace_jsonl),
    ("evidence", evidence),
    ("bundle_manifest", bundle_manifest),
    ("nsight_csv", nsight_csv),
    ("audit", audit),
];

/// From here on everything happens on the thread that calls. The chunks of a small input are not
/// worth handing over, and what an input reaches is the same every time.
///
/// # Panics
///
/// When called twice.
#[cfg(feature = "engine")]
pub fn stay_on_this_thread() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("nothing has been handed over yet");
}

/// A whole `.tmrun`, as it is and with its sums made right: walked, scanned and counted twice, with
/// the same result, and converted to what reads again.
pub fn tmrun_file(data: &[u8]) {
    scan(data);
    scan(&seal::file(data));
}

/// The rings of a process that is gone, as they are and with their sums made right. Zeros follow, in
/// which the larger parts may lie: the inputs stay small.
pub fn rings_file(data: &[u8]) {
    rings::read(data);
    let mut file = data.to_vec();
    file.resize(data.len().max(80 << 10), 0);
    let file = seal::rings(file);
    rings::read(&file);
    rings::join(&file);
}

fn scan(data: &[u8]) {
    let Ok(recording) = Recording::open(data, "fuzz") else {
        assert!(data.len() < 64 || FileHeader::decode(data).is_err(), "a header that reads, opens");
        return;
    };
    let mut end = FileHeader::SIZE as u64;
    let mut intact = 0_u64;
    for walked in Chunks::new(data) {
        let (offset, len) = match walked {
            Walked::Chunk(chunk) => {
                intact += u64::from(chunk.check().is_ok());
                (chunk.offset, 64 + chunk.payload.len() as u64)
            }
            Walked::Damage(damage) => (damage.offset, damage.len),
            Walked::Trailer(trailer) => (trailer.offset, 64),
        };
        assert_eq!(offset, end, "a walk leaves no byte out");
        assert!(len > 0);
        end += len;
    }
    assert!(end == data.len() as u64 || data.len() < 64);
    let scanned = recording.record_chunks().count() as u64;
    assert!(scanned <= intact, "no record of a chunk whose CRC does not hold is shown");
    let records: usize = recording.record_chunks().map(|chunk| chunk.records().len()).sum();
    let grouped: usize =
        recording.record_chunks().flat_map(|chunk| groups(chunk.records())).map(<[_]>::len).sum();
    assert_eq!(records, grouped, "groups neither lose nor repeat a record");
    assert_eq!(records as u64, recording.counts().total(), "they are counted once");
    let clock = recording.clock();
    for chunk in recording.record_chunks() {
        for record in chunk.records() {
            let (first, last) = record.edges();
            assert!(clock.ns(first) <= clock.ns(last), "the clock map never decreases");
        }
    }
    convert(&recording);
}

fn convert(recording: &Recording<'_>) {
    let all = Options::default();
    let lines = Options { form: Form::Lines, ..all };
    let step = recording.lanes().iter().filter_map(|(_, lane)| lane.steps.first).min();
    let of_step = Options { schema: Schema::V2, step, phase: Some(Phase::TRAIN), ..lines };
    let oldest = Options { schema: Schema::V1, step, ..all };
    for options in [all, lines, of_step, oldest] {
        let Ok(plan) = Plan::of(recording, options) else { continue };
        let mut trace = Vec::new();
        plan.write(&mut trace, &|_| ()).expect("memory takes everything");
        runtime::read(&trace).expect("what is converted reads");
    }
}

/// Any bytes, and with their sums made right, salvaged: a recording with as many records and as much
/// missing, which salvages to itself.
pub fn tmrun_salvage(data: &[u8]) {
    salvage_bytes(data);
    salvage_bytes(&seal::file(data));
}

fn salvage_bytes(data: &[u8]) {
    let Ok(damaged) = Recording::open_damaged(data, "fuzz", &|_| ()) else { return };
    let salvaged = |recording: &Recording<'_>| {
        let mut out = Vec::new();
        salvage::salvage(recording, &mut out, &|_| ()).expect("memory can be written to");
        out
    };
    let whole = salvaged(&damaged);
    let again = Recording::open(&whole, "fuzz").expect("it has a header");
    let missing = damaged.missing().iter().filter(|missing| missing.position.is_none()).count();
    assert_eq!(again.counts().total(), damaged.counts().total() + missing as u64);
    let lost = |recording: &Recording<'_>| {
        recording.lost().fold(0_u64, |sum, gap| sum.saturating_add(gap.records))
    };
    assert_eq!(lost(&again), lost(&damaged), "nothing lost is hidden, nor counted twice");
    assert!(again.missing().iter().all(|missing| missing.declared), "the file is whole");
    let was_right = damaged.header_error().is_none() && damaged.verify().is_empty();
    assert!(again.verify().is_empty() || !was_right, "what was right stays right");
    assert_eq!(salvaged(&again), whole);
}

/// A metadata payload: every frame that reads is written back, and reads as the same.
pub fn meta_frame(data: &[u8]) {
    let mut buffer = vec![0; data.len() + 64];
    for raw in Frames::new(data, 0).map_while(Result::ok) {
        let Ok(frame) = raw.decode() else { continue };
        // The body of a frame may be written shorter than a hostile writer wrote it.
        let written = frame.encode(&mut buffer).expect("what was read fits where it came from");
        let again = Frames::new(&buffer[..written], 0).next().expect("one frame");
        let again = again.expect("its head is right").decode().expect("its body is right");
        assert_eq!(format!("{again:?}"), format!("{frame:?}"));
    }
}

/// A runtime trace as a document: what reads is valid, reads without being told its form, and is
/// written in both forms as what reads as the same.
pub fn runtime_document(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(document) = runtime::parse_json(text) {
        assert_eq!(runtime::read(data).as_ref(), Ok(&document));
        round_trip(&document);
    }
}

/// A runtime trace as lines: the same. A line alone is taken for a document that is broken.
pub fn runtime_jsonl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(document) = runtime::parse_jsonl(text) {
        assert!(runtime::read(data).as_ref() == Ok(&document) || !text.trim().contains('\n'));
        round_trip(&document);
    }
}

fn round_trip(document: &runtime::RuntimeDocument) {
    document.validate().expect("what reads is valid");
    for written in [document.to_json(), document.to_jsonl()] {
        let written = written.expect("a valid trace can be written");
        assert_eq!(runtime::read(&written).as_ref(), Ok(document));
    }
}

/// A trace/10: what reads is written as what reads as the same, in one part or in two; and each line
/// says what it says to a reader that keeps everything before it looks at any of it.
pub fn trace_jsonl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(matches!(TraceDocument::read(data), Err(ReadError::NotUtf8 { .. })));
        return;
    };
    for line in text.lines() {
        trace_line(line);
    }
    let read = TraceDocument::parse(text).ok();
    let middle = text.as_bytes().iter().skip(text.len() / 2).position(|&byte| byte == b'\n');
    let (first, second) = text.split_at(middle.map_or(0, |at| text.len() / 2 + at + 1));
    let parts = [first, second].map(TracePart::parse);
    assert_eq!(TraceDocument::assemble(parts).ok(), read);
    let Some(document) = read else { return };
    let written = document.write(Vec::new()).expect("a trace that reads can be written");
    let again = TraceDocument::read(&written).expect("what is written reads");
    assert_eq!(again.write(Vec::new()).expect("and can be written"), written);
}

fn trace_line(text: &str) {
    let kept = serde_json::from_str::<TraceLine<'_>>(text.trim());
    match (TraceLine::parse(text, 1, 0), kept) {
        (Ok(None), Err(_)) => assert!(text.trim().is_empty()),
        (Ok(Some(line)), Ok(mut kept)) => {
            match &mut kept {
                TraceLine::Op(op) if op.output_dense_bytes.is_none() => {
                    op.output_dense_bytes = dense_bytes(&op.shape, &op.dtype);
                }
                TraceLine::Tensor(tensor) if tensor.dense_bytes.is_none() => {
                    tensor.dense_bytes = dense_bytes(&tensor.shape, &tensor.dtype);
                }
                _ => {}
            }
            assert_eq!(line, kept);
        }
        (Err(ReadError::Json { .. }), Err(_)) | (Err(ReadError::Refused { .. }), Ok(_)) => {}
        (ours, kept) => panic!("{ours:?}, but kept first: {kept:?}"),
    }
}

/// Any runtime trace, audited: the report is JSON of one object, and text that a terminal shows as
/// it is. What nobody calls clean has findings.
pub fn audit(data: &[u8]) {
    let Ok(document) = runtime::read(data) else { return };
    let id = |text: &str| Some(text.to_owned());
    let expected = ExpectedIdentity { analysis_id: id("analysis"), build_id: id("build") };
    for expected in [None, Some(&expected)] {
        let report = audit_trace(&document, expected);
        let shown = report.to_string();
        assert!(!shown.chars().any(|c| c != '\n' && c.is_control()), "{shown:?}");
        let json = serde_json::to_value(&report).expect("a report is JSON");
        assert!(json.is_object());
        assert!(report.has_findings() || report.is_clean() && !report.has_unknown_evidence());
    }
}

/// Any bytes as a bundle's manifest: what is declared without a fault is another file for each, within
/// the bundle, and what is read is what was written.
pub fn bundle_manifest(data: &[u8]) {
    let Ok(manifest) = serde_json::from_slice::<BundleManifest<'_>>(data) else { return };
    let text = serde_json::to_vec(&manifest).expect("it has a form");
    let again: BundleManifest<'_> = serde_json::from_slice(&text).expect("which reads");
    assert_eq!(again, manifest);
    let faults: Vec<usize> = manifest.faults().map(|(at, _)| at).collect();
    assert!(faults.is_sorted_by(|a, b| a < b), "one a file");
    assert_eq!(manifest.check().is_ok(), faults.is_empty());
    let mut declared = std::collections::HashSet::new();
    for (_, file) in manifest.files.iter().enumerate().filter(|(at, _)| !faults.contains(at)) {
        let path = std::path::Path::new("/bundle").join(&*file.path);
        assert!(path.starts_with("/bundle") && !file.path.split('/').any(|part| part == ".."));
        assert!(file.path != MANIFEST && file.sha256.len() == 64);
        assert!(declared.insert(&file.path), "it is declared once");
    }
}
