//! Recordings that become bundles, and what is in a directory.
#![allow(dead_code, reason = "every test uses some of it")]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tmrun::bundle::{Moment, Publication, PublishError, Request, publish};
use tmrun::salvage::salvage;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun_formats::wire::{ContractV1, Frame};
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientFamilyContract,
    GradientState, MemoryCategory, MemoryRecord, OpRecord, ProfileRun, SpanKind, TraceSession,
};

use crate::probed;
use crate::support::record::{scalar, span, step};
use crate::support::{Builder, naive};

/// A recording, and the step of it that is evidence.
pub struct Case {
    pub name: &'static str,
    pub file: Vec<u8>,
    pub step: Option<u64>,
}

/// One of each kind.
pub fn cases(folder: &Path) -> Vec<Case> {
    let case = |name, file, step| Case { name, file, step };
    vec![
        case("training", probed::recorded(&folder.join("training.tmrun")), Some(2)),
        case("inference", inference(&folder.join("inference.tmrun")), None),
        case("failed", probed::failed(&folder.join("failed.tmrun")), Some(2)),
        case("gapped", gapped(), Some(2)),
        case("salvaged", salvaged(), Some(2)),
        case("nan", nan_gradient(&folder.join("nan.tmrun")), None),
    ]
}

/// A captured inference, by a session.
pub fn inference(path: &Path) -> Vec<u8> {
    let contract = CaptureContract { operations: CoverageLevel::Complete, ..Default::default() };
    let run = ProfileRun::inference("example::answer", 3, "cpu").capture_contract(contract);
    let session = TraceSession::open(path, run).expect("it opens");
    {
        let measured = session.begin_measurement("answer");
        let op = session.begin_span("matmul", SpanKind::Op);
        let inputs = ["x".to_owned()];
        let (shape, dtype, device) = (&[2, 3], "f32", "cpu");
        let matmul = OpRecord {
            op_name: "matmul",
            inputs: &inputs,
            output: Some("y"),
            shape,
            dtype,
            device,
            duration_ns: 1,
            timestamp_ns: 0,
            output_dense_bytes: None,
            input_dense_bytes: 24,
        };
        session.record_op(op.id(), matmul).expect("recorded");
        let memory = MemoryRecord {
            storage_id: "s",
            tensor_id: "y",
            device,
            bytes: 24,
            dtype,
            category: MemoryCategory::Activation,
            timestamp_ns: None,
            op_name: None,
            shape,
        };
        session.record_memory_alloc(op.id(), memory).expect("recorded");
        session.record_scalar(measured.id(), "entropy", 0.1).expect("recorded");
        session.record_scalar(measured.id(), "temperature", f64::INFINITY).expect("recorded");
    }
    session.finish().expect("it ends");
    std::fs::read(path).expect("the file")
}

/// A captured update that promised all of its gradients, one of which is not finite.
pub fn nan_gradient(path: &Path) -> Vec<u8> {
    let session = with_nan_gradient(path);
    session.finish().expect("it ends");
    std::fs::read(path).expect("the file")
}

/// The same, given up for it.
pub fn failed_for_nan_gradient(path: &Path) -> Vec<u8> {
    let session = with_nan_gradient(path);
    session.finish_failed("the loss is NaN").expect("it ends");
    std::fs::read(path).expect("the file")
}

fn with_nan_gradient(path: &Path) -> TraceSession {
    let expected = ["a", "w"].map(|key| ExpectedGradient::new("vb", key, "all"));
    let families = vec![GradientFamilyContract::active("all", 1)];
    let contract = GradientContract::new(expected.into(), families).expect("a contract");
    let contract = CaptureContract {
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(contract),
        ..CaptureContract::default()
    };
    let run = ProfileRun::training("example::update", 1, "cpu").capture_contract(contract);
    let session = TraceSession::open(path, run).expect("it opens");
    {
        let measured = session.begin_measurement("update");
        let backward = session.begin_span("backward", SpanKind::Function);
        session.record_scalar(measured.id(), "loss", f64::NAN).expect("recorded");
        let gradient = session.record_gradient("vb", "a", GradientState::Present, Some(0.5));
        gradient.expect("recorded");
        let gradient = session.record_gradient("vb", "w", GradientState::NonFinite, None);
        gradient.expect("recorded");
        drop(backward);
    }
    session
}

/// Three steps; in the middle of the second a chunk is damaged, and the run had promised all.
pub fn gapped() -> Vec<u8> {
    let mut file = steps();
    let of_step = naive::chunks(&file).into_iter().filter(|chunk| chunk.kind == 1).nth(5);
    file[of_step.expect("a chunk").offset + 100] ^= 1;
    file
}

/// The same, broken off in the third step, and salvaged.
pub fn salvaged() -> Vec<u8> {
    let mut file = gapped();
    let chunks = naive::chunks(&steps());
    let last = chunks.iter().filter(|chunk| chunk.kind == 1).nth(9).expect("a chunk");
    file.truncate(last.offset + 80);
    let torn = Recording::open_damaged(&file, "torn", &|_| ()).expect("a recording");
    let mut whole = Vec::new();
    salvage(&torn, &mut whole, &|_| ()).expect("memory");
    whole
}

/// Three whole steps, of a run that had promised all.
pub fn steps() -> Vec<u8> {
    let contract = ContractV1 { operations: 2, tensors: 2, ..ContractV1::default() };
    let mut builder = Builder::started().meta(&[Frame::Contract(contract)]);
    for number in 1..=3 {
        let at = number * 1_000;
        builder = builder
            .records(0, &[step(at, number, false), span(at + 50, at + 100, number as u32, 1)])
            .records(0, &[scalar(at + 200, 2, 0.5), scalar(at + 250, 2, 0.25)])
            .records(0, &[span(at + 300, at + 400, 10 + number as u32, 1)])
            .records(0, &[step(at + 900, number, true)]);
    }
    builder.finish()
}

/// Publishes a recording's step.
pub fn publish_at(
    file: &[u8],
    step: Option<u64>,
    destination: &Path,
    observe: &mut dyn FnMut(Moment<'_>) -> io::Result<()>,
) -> Result<Publication, PublishError> {
    publish_with(file, step, None, destination, observe)
}

/// The same with what Nsight left.
pub fn publish_with(
    file: &[u8],
    step: Option<u64>,
    nsight: Option<&Path>,
    destination: &Path,
    observe: &mut dyn FnMut(Moment<'_>) -> io::Result<()>,
) -> Result<Publication, PublishError> {
    let recording = Recording::open(file, "run.tmrun").expect("a header");
    let region = Region::of(&recording, step).expect("a region");
    let (recording, region) = (&recording, &region);
    publish(&Request { recording, region, destination, nsight }, observe)
}

/// Every file below a directory, with its bytes.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").display().to_string();
                files.insert(name, std::fs::read(path).expect("its bytes"));
            }
        }
    }
    files
}

/// The names in a directory, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
