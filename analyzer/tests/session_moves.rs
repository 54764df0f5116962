//! A program that was written for `candle-graph` moves over by its imports: the same code, once on each
//! crate, and the same evidence.

#[path = "support/told.rs"]
mod told;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use candle_graph_v10 as neighbour;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::Trace;
use tmrun_formats::trace::TraceDocument;
use told::told;

/// The program, with these imports.
macro_rules! program {
    ($name:ident: $($import:item)*) => {
        mod $name {
            use std::error::Error;
            use std::path::{Path, PathBuf};
            use std::time::Instant;

            $($import)*

            pub fn run(path: &Path) -> Result<PathBuf, Box<dyn Error>> {
                let selector = CaptureSelector::new(12)?;
                assert!(selector.is_selected(12) && !selector.is_selected(1));
                assert!(CaptureSelector::new(0).is_err());
                let expected = vec![
                    ExpectedGradient::new("parameters", "head.weight", "trainable"),
                    ExpectedGradient::new("parameters", "stem.weight", "frozen"),
                    ExpectedGradient::new("parameters", "tail.weight", "sometimes"),
                ];
                let families = vec![
                    GradientFamilyContract::active("trainable", 1),
                    GradientFamilyContract::inactive("frozen"),
                    GradientFamilyContract::data_conditional("sometimes", 1),
                ];
                let contract = CaptureContract {
                    measurement_scope: MeasurementScope::ProductionEquivalent,
                    operations: CoverageLevel::Complete,
                    activations: CoverageLevel::Complete,
                    tensors: CoverageLevel::Partial,
                    gradients: CoverageLevel::Complete,
                    gradient_contract: Some(GradientContract::new(expected, families)?),
                    logical_memory: CoverageLevel::Complete,
                    physical_memory: CoverageLevel::Partial,
                    device_timing: CoverageLevel::Complete,
                    required_semantic_labels: vec!["update/forward".into(), "update/step".into()],
                    gpu_expected_semantic_labels: vec!["update/forward".into()],
                    cpu_only_semantic_labels: vec!["update/step".into()],
                };
                let identity = ComparisonIdentity {
                    implementation_id: Some("git:abc".into()),
                    workload_id: "training-step".into(),
                    model_id: "small".into(),
                    config_id: "default".into(),
                    data_id: "shard".into(),
                    seed_policy: "fixed".into(),
                    physical_batch: 8,
                    accumulation_steps: 2,
                    precision: "bf16".into(),
                    device_state: "exclusive".into(),
                    pair_id: Some("pair-1".into()),
                };
                let run = ProfileRun::training("trainer::update", 12, "cuda:0")
                    .capture_contract(contract)
                    .comparison_identity(identity)
                    .measured_region_device_synchronized()
                    .tag("dataset", "small");
                let session = TraceSession::open(path, run)?;
                assert!(session.host_timestamp_ns(Instant::now())? <= session.elapsed_ns());
                {
                    let measured = session.begin_measurement(format!("update/{}", 12));
                    let began = session.elapsed_ns();
                    step(&session)?;
                    session.record_scalar(measured.id(), "loss/total", 1.25)?;
                    session.record_scalar(measured.id(), "loss/bad", f64::NAN)?;
                    while session.elapsed_ns() == began {}
                    session.record_completed_host_span("load", SpanKind::Function, began, 1)?;
                }
                for (key, state, norm) in [
                    ("head.weight", GradientState::Present, Some(0.5)),
                    ("stem.weight", GradientState::Missing, None),
                    ("tail.weight", GradientState::Missing, None),
                ] {
                    session.record_gradient("parameters", key, state, norm)?;
                }
                assert!(session.record_gradient("", "k", GradientState::Missing, None).is_err());
                session.flush()?;
                Ok(session.finish()?)
            }

            fn step(session: &TraceSession) -> Result<(), Box<dyn Error>> {
                {
                    let label = "update/forward";
                    let forward =
                        session.begin_step_span(label, ExecutionStep::Forward, SpanKind::Module);
                    let op = session.begin_span("matmul", SpanKind::Op);
                    let id: SpanId = op.id();
                    while op.elapsed_ns() < 1_000 {}
                    let inputs = ["x".to_owned(), "w".to_owned()];
                    session.record_op(id, OpRecord {
                        op_name: "matmul",
                        inputs: &inputs,
                        output: Some("y"),
                        shape: &[4, 8],
                        dtype: "bf16",
                        device: "cuda:0",
                        duration_ns: 500,
                        timestamp_ns: 0,
                        output_dense_bytes: None,
                        input_dense_bytes: 640,
                    })?;
                    let tensor = TensorRecord {
                        tensor_id: "y",
                        label: Some("block/out"),
                        shape: &[4, 8],
                        dtype: "bf16",
                        device: "cuda:0",
                        requires_grad: false,
                        dense_bytes: None,
                        category: MemoryCategory::Activation,
                    };
                    session.record_tensor(id, tensor)?;
                    let memory = MemoryRecord {
                        storage_id: "storage-1",
                        tensor_id: "y",
                        device: "cuda:0",
                        bytes: 512,
                        dtype: "bf16",
                        category: MemoryCategory::Activation,
                        timestamp_ns: None,
                        op_name: Some("matmul"),
                        shape: &[4, 8],
                    };
                    session.record_memory_alloc(id, memory)?;
                    drop(op);
                    // Of a span that has ended: these have no time that has to lie in it.
                    session.record_device_interval(id, DeviceIntervalRecord {
                        device: "cuda:0",
                        stream_id: "stream-0",
                        clock_id: "events",
                        backend: "cudarc",
                        start_ns: 70,
                        duration_ns: 30,
                    })?;
                    session.record_tensor(id, TensorRecord { label: None, ..tensor })?;
                    session.record_memory_free(forward.id(), MemoryRecord { op_name: None, ..memory })?;
                    session.record_data_edge("x", "y")?;
                }
                for (label, part) in [
                    ("update/backward", ExecutionStep::Backward),
                    ("update/step", ExecutionStep::Optimizer),
                ] {
                    drop(session.begin_step_span(label, part, SpanKind::Function));
                }
                session.record_device_memory(DeviceMemoryRecord {
                    device: "cuda:0",
                    used_bytes: Some(10),
                    free_bytes: None,
                    reserved_bytes: Some(0),
                    capacity_bytes: Some(80),
                    timestamp_ns: None,
                })?;
                Ok(())
            }
        }
    };
}

program! { theirs:
    use candle_graph_v10::trace::{GradientState, MemoryCategory};
    use candle_graph_v10::{
        CaptureContract, CaptureSelector, ComparisonIdentity, CoverageLevel, DeviceIntervalRecord,
        DeviceMemoryRecord, ExecutionStep, ExpectedGradient, GradientContract,
        GradientFamilyContract, MeasurementScope, MemoryRecord, OpRecord, ProfileRun, SpanId,
        SpanKind, TensorRecord, TraceSession,
    };
}

program! { ours:
    use tmrun_probe_core::session::{
        CaptureContract, CaptureSelector, ComparisonIdentity, CoverageLevel, DeviceIntervalRecord,
        DeviceMemoryRecord, ExecutionStep, ExpectedGradient, GradientContract,
        GradientFamilyContract, GradientState, MeasurementScope, MemoryCategory, MemoryRecord,
        OpRecord, ProfileRun, SpanId, SpanKind, TensorRecord, TraceSession,
    };
}

/// Whether the neighbour finds a trace sound and complete, and its errors.
fn judged(path: &Path) -> (bool, Vec<String>) {
    let document = neighbour::parse_trace(path).expect("a trace that the neighbour reads");
    let health = neighbour::trace::analyze_health(&document);
    let issues = health.issues.iter();
    let errors = issues.filter(|issue| issue.severity == neighbour::trace::HealthSeverity::Error);
    (health.capture_complete, errors.map(|it| format!("{}: {}", it.code, it.message)).collect())
}

#[test]
fn the_same_program_leaves_the_same_evidence_through_either_crate() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| -> PathBuf { folder.path().join(name) };

    let theirs = std::fs::read(theirs::run(&path("theirs.jsonl"))?)?;
    let theirs = told(&TraceDocument::read(&theirs)?);

    let file = std::fs::read(ours::run(&path("ours.tmrun"))?)?;
    let recording = Recording::open(&file, "ours").expect("a header");
    assert_eq!(recording.verify(), []);
    let region = Region::of(&recording, None).expect("one measured region");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let text = derived.document.write(Vec::new())?;
    std::fs::write(path("ours.jsonl"), &text)?;
    assert_eq!(judged(&path("theirs.jsonl")), (true, vec![]));
    assert_eq!(judged(&path("ours.jsonl")), (true, vec![]));

    let ours = told(&derived.document);
    assert!(theirs.len() > 20, "{theirs:#?}");
    let missing: Vec<_> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    let more: Vec<_> = ours.iter().filter(|line| !theirs.contains(line)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:#?}, more {more:#?}");
    assert_eq!(ours, theirs);
    Ok(())
}

/// A program of timed operations, with these imports.
macro_rules! profiling {
    ($name:ident: $($import:item)*) => {
        mod $name {
            use std::error::Error;
            use std::path::{Path, PathBuf};

            $($import)*

            pub fn run(path: &Path) -> Result<PathBuf, Box<dyn Error>> {
                let config = ProfileConfig {
                    cargo_features: vec!["cuda".into()],
                    build_id: Some("build".into()),
                    ..ProfileConfig::infer("model::forward")
                };
                let mut session = ProfileSession::open(path, config)?;
                assert_eq!((session.phase(), session.step()), (ExecutionPhase::Infer, 0));
                drop(TimedOperation::begin(&mut session, "op:load", "load", &[])?);
                for step in [5, 6] {
                    session.set_step(step);
                    let inputs = ["x".to_owned(), "w".to_owned()];
                    let outer = session.begin_operation("op:1", "attention", &inputs)?;
                    let inner = session.begin_operation("op:2", "matmul", &inputs[..1])?;
                    session.end_operation(&inner, None)?;
                    session.end_operation(&outer, Some("y".into()))?;
                    assert!(session.end_operation(&inner, None).is_err());
                    session.record_edge_timing("tensor:x", "op:1", 70)?;
                }
                session.begin_operation("op:3", "never ended", &[])?;
                session.flush()?;
                Ok(session.finish()?)
            }
        }
    };
}

profiling! { profiling_theirs:
    use candle_graph_v03::phase::ExecutionPhase;
    use candle_graph_v03::profile::{ProfileConfig, ProfileSession, TimedOperation};
}

profiling! { profiling_ours:
    use tmrun_probe_core::session::{
        ExecutionPhase, ProfileConfig, ProfileSession, TimedOperation,
    };
}

/// What timed operations say, but for their times and their own ids.
fn timed(text: &str) -> Vec<String> {
    let trace =
        candle_graph_v03::runtime::parse(text).expect("a document that the neighbour reads");
    let mut told = vec![format!("{:?}", trace.run)];
    let operations = trace.operations.iter();
    told.extend(operations.map(|it| {
        assert!(it.duration_ns.is_some(), "{it:?}");
        format!("{:?}", (&it.op, &it.static_id, &it.inputs, &it.output, it.step))
    }));
    told.extend(trace.edge_timings.iter().map(|it| {
        format!("{:?}", (&it.from_static_id, &it.to_static_id, it.duration_ns, it.step))
    }));
    told.sort();
    told
}

#[test]
fn the_same_program_leaves_the_same_timed_operations_through_either_crate()
-> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let theirs = std::fs::read_to_string(profiling_theirs::run(&folder.path().join("theirs"))?)?;
    let ours = profiling_ours::run(&folder.path().join("ours.tmrun"))?;
    let converted = Command::new(env!("CARGO_BIN_EXE_tmrun")).arg("convert").arg(&ours).output()?;
    assert!(converted.status.success(), "{converted:?}");
    let (theirs, ours) = (timed(&theirs), timed(&String::from_utf8(converted.stdout)?));
    assert_eq!(theirs.len(), 1 + 5 + 2, "{theirs:#?}");
    // Steps count from one: what is before the first is in none.
    let [before, none] =
        ["Some(0))", "None)"].map(|step| format!("(\"load\", Some(\"op:load\"), [], None, {step}"));
    assert!(theirs.contains(&before));
    let as_ours = theirs.into_iter().map(|line| if line == before { none.clone() } else { line });
    assert_eq!(ours, as_ours.collect::<Vec<_>>());
    Ok(())
}
