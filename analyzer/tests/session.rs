//! What sessions write, read back.

#[path = "support/command.rs"]
#[allow(dead_code, reason = "every test binary uses a part of it")]
mod command;

use serde_json::{Value, json};
use tmrun::scan::{Recording, Status};
use tmrun_formats::GapReason;
use tmrun_formats::wire::Kind;
use tmrun_probe_core::session::{
    CaptureContract, CoverageLevel, DeviceIntervalRecord, ExecutionStep, ExpectedGradient,
    GradientContract, GradientFamilyContract, GradientState, MemoryCategory, MemoryRecord,
    OpRecord, ProfileConfig, ProfileRun, ProfileSession, SpanKind, TensorRecord, TraceSession,
};

use command::Folder;

fn contract() -> CaptureContract {
    let expected = vec![ExpectedGradient::new("vb", "w", "all")];
    let families = vec![GradientFamilyContract::active("all", 1)];
    CaptureContract {
        operations: CoverageLevel::Complete,
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(GradientContract::new(expected, families).expect("a contract")),
        required_semantic_labels: vec!["update/1/forward".into()],
        ..CaptureContract::default()
    }
}

/// A step with a record of everything.
fn record(session: &TraceSession) {
    let _measured = session.begin_measurement("update/1");
    let forward =
        session.begin_step_span("update/1/forward", ExecutionStep::Forward, SpanKind::Function);
    let op = session.begin_span("matmul", SpanKind::Op);
    let (shape, device, dtype) = (&[2, 3], "cuda:0", "f32");
    let inputs = ["x".to_owned(), "w".to_owned()];
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
        input_dense_bytes: 48,
    };
    session.record_op(op.id(), matmul).expect("recorded");
    let interval = DeviceIntervalRecord {
        device,
        stream_id: "0",
        clock_id: "events",
        backend: "cudarc",
        start_ns: 5,
        duration_ns: 9,
    };
    session.record_device_interval(op.id(), interval).expect("recorded");
    let tensor = TensorRecord {
        tensor_id: "y",
        label: None,
        shape,
        dtype,
        device,
        requires_grad: false,
        dense_bytes: None,
        category: MemoryCategory::Activation,
    };
    session.record_tensor(op.id(), tensor).expect("recorded");
    let memory = MemoryRecord {
        storage_id: "s",
        tensor_id: "y",
        device,
        bytes: 512,
        dtype,
        category: MemoryCategory::Activation,
        timestamp_ns: None,
        op_name: None,
        shape,
    };
    session.record_memory_alloc(op.id(), memory).expect("recorded");
    session.record_memory_free(forward.id(), memory).expect("recorded");
    session.record_scalar(forward.id(), "loss", 0.5).expect("recorded");
    let gradient = session.record_gradient("vb", "w", GradientState::Present, Some(2.0));
    gradient.expect("recorded");
}

#[test]
fn a_session_verifies_and_says_what_it_recorded() {
    let folder = Folder::with(b"");
    let run = ProfileRun::training("trainer::update", 1, "cuda:0").capture_contract(contract());
    let session = TraceSession::open(folder.path("run.tmrun"), run).expect("it opens");
    record(&session);
    session.finish().expect("it ends");

    let (code, out, err) = folder.tmrun(&["verify", "run.tmrun"]);
    assert_eq!(code, 0, "{out}{err}");
    let file = std::fs::read(folder.path("run.tmrun")).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    assert_eq!((recording.verify(), recording.status()), (vec![], Status::Finished));
    assert_eq!(recording.lost().count(), 0, "{:?}", recording.gaps());
    let kinds = [Kind::Span, Kind::Op, Kind::Tensor, Kind::Alloc, Kind::Free, Kind::Scalar];
    assert_eq!(kinds.map(|kind| recording.counts().of(kind)), [3, 1, 1, 1, 1, 1]);
    let meta = recording.meta();
    assert_eq!(
        meta.contract.map(|contract| (contract.operations, contract.gradients)),
        Some((2, 2))
    );
    assert_eq!(meta.labels.len(), 1);
    let clocks: Vec<_> = meta.clocks.values().map(|clock| (clock.name, clock.backend)).collect();
    assert_eq!(clocks, [("events", "cudarc")]);
}

#[test]
fn what_a_session_has_no_room_for_is_lost_and_the_exit_code_says_so() {
    let folder = Folder::with(b"");
    let run = ProfileRun::training("trainer::update", 1, "cpu");
    let builder = TraceSession::builder().slots(32);
    let session = builder.open(folder.path("run.tmrun"), run).expect("it opens");
    let span = session.begin_measurement("update/1");
    for at in 0..100_000 {
        session.record_scalar(span.id(), "loss", f64::from(at)).expect("taken or counted");
    }
    drop(span);
    session.finish().expect("it ends");
    let file = std::fs::read(folder.path("run.tmrun")).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    let lost = recording.lost().inspect(|gap| assert_eq!(gap.reason, GapReason::OVERRUN));
    let lost: u64 = lost.map(|gap| gap.records).sum();
    assert_eq!(
        recording.counts().of(Kind::Scalar) + recording.counts().of(Kind::Span) + lost,
        100_001
    );
    let (code, ..) = folder.tmrun(&["verify", "run.tmrun"]);
    assert_eq!(code, if lost > 0 { 3 } else { 0 });
}

#[test]
fn a_profile_converts_with_the_ids_that_it_was_given() {
    let folder = Folder::with(b"");
    let config = ProfileConfig::train("model::step");
    let mut session = ProfileSession::open(folder.path("run.tmrun"), config).expect("it opens");
    session.set_step(4);
    let event = session.begin_operation("op:1", "matmul", &["x".into()]).expect("begun");
    let took = session.end_operation(&event, Some("y".into())).expect("ended");
    session.record_edge_timing("tensor:x", "op:1", took).expect("recorded");
    session.finish().expect("it ends");
    let (code, out, err) = folder.tmrun(&["convert", "run.tmrun"]);
    assert_eq!(code, 0, "{err}");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let operation = &found["operations"][0];
    let fields = ["op", "static_id", "inputs", "output", "step"].map(|field| &operation[field]);
    assert_eq!(fields, [&json!("matmul"), &json!("op:1"), &json!(["x"]), &json!("y"), &json!(4)]);
    let duration = operation["duration_ns"].as_u64().expect("a duration");
    assert!(duration.abs_diff(took) <= took / 100 + 200, "{duration} ns of {took}");
    let edge = &found["edge_timings"][0];
    let ends = ["from_static_id", "to_static_id", "step"].map(|field| &edge[field]);
    assert_eq!(ends, [&json!("tensor:x"), &json!("op:1"), &json!(4)]);
    assert_eq!(
        (&found["run"]["phase"], &found["run"]["profile"]),
        (&json!("train"), &json!("release"))
    );
}
