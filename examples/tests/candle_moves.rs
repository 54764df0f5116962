//! A program that records candle tensors through `candle-graph` moves over by its imports: the same code,
//! once on each crate, and the same evidence.

#[path = "../../analyzer/tests/support/told.rs"]
mod told;

use std::error::Error;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, Var};
use candle_graph_v10 as neighbour;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::Trace;
use tmrun_formats::trace::{MemoryAction, TraceDocument};
use tmrun_probe_candle::{ProcessMemory, SessionExt, Tracked, storage_id};
use tmrun_probe_core::session::{MemoryCategory, ProfileRun, SpanKind, TraceSession};
use told::told;

/// What the program works on: both get the very same tensors, so that identities are the same. Its
/// numbers are ones that f32 holds, in which the neighbour reckons.
struct Model {
    weight: Var,
    frozen: Var,
    x: Tensor,
}

impl Model {
    fn new() -> candle_core::Result<Self> {
        let device = &Device::Cpu;
        Ok(Self {
            weight: Var::from_tensor(&Tensor::full(0.5f32, (4, 4), device)?)?,
            frozen: Var::ones(3, DType::F32, device)?,
            x: Tensor::full(2f32, (5, 4), device)?,
        })
    }
}

/// The program, with these imports.
macro_rules! program {
    ($name:ident: $($import:item)*) => {
        mod $name {
            use std::error::Error;
            use std::path::{Path, PathBuf};

            use candle_core::{DType, Device, Tensor};

            use super::Model;
            $($import)*

            pub fn run(path: &Path, model: &Model, y: &Tensor) -> Result<PathBuf, Box<dyn Error>> {
                let variables = vec![
                    ("head.weight".to_owned(), model.weight.clone()),
                    ("frozen.bias".to_owned(), model.frozen.clone()),
                ];
                let family = |key: &str| key.split('.').next().unwrap().to_string();
                let families = vec![
                    GradientFamilyContract::active("head", 1),
                    GradientFamilyContract::inactive("frozen"),
                ];
                let plan =
                    GradientCapturePlan::from_named_vars("model", variables, family, families)?;
                assert_eq!(plan.root(), "model");
                let contract = CaptureContract {
                    activations: CoverageLevel::Partial,
                    operations: CoverageLevel::Partial,
                    tensors: CoverageLevel::Partial,
                    gradients: CoverageLevel::Complete,
                    gradient_contract: Some(plan.contract().clone()),
                    ..CaptureContract::default()
                };
                let run = ProfileRun::training("trainer::update", 3, "cpu").capture_contract(contract);
                let session = TraceSession::open(path, run)?;
                {
                    let _measured = session.begin_measurement("update/3");
                    {
                        let forward = session.begin_step_span(
                            "forward",
                            ExecutionStep::Forward,
                            SpanKind::Function,
                        );
                        let step = Some(ExecutionStep::Forward);
                        forward_pass(&session, model, y)?;
                        let weight: CandleCapture =
                            CandleCapture::from_tensor(&model.weight, step).with_label("head/w");
                        assert!(weight.requires_grad && weight.tensor_bytes == 64);
                        assert_eq!(weight.category, MemoryCategory::Parameter);
                        candle::record_tensor(&session, forward.id(), &weight)?;
                        candle::record_tensor_with_label(&session, forward.id(), "x", &model.x, None)?;
                        session.record_tensor_stats(forward.id(), "head/out", y)?;
                        let empty = Tensor::zeros((0, 2), DType::F64, &Device::Cpu)?;
                        session.record_tensor_stats(forward.id(), "empty", &empty)?;
                    }
                    let gradients = y.sum_all()?.backward()?;
                    plan.record(&session, &gradients)?;
                }
                Ok(session.finish()?)
            }

            fn forward_pass(
                session: &TraceSession,
                model: &Model,
                y: &Tensor,
            ) -> Result<(), Box<dyn Error>> {
                let op = session.begin_span("matmul", SpanKind::Op);
                while op.elapsed_ns() < 1_000 {}
                let inputs = vec![candle::tensor_id(&model.x), candle::tensor_id(&model.weight)];
                let bytes = candle::inputs_dense_bytes(&[&model.x, model.weight.as_tensor()]);
                let step = Some(ExecutionStep::Forward);
                let capture: CandleOpCapture =
                    CandleOpCapture::new("matmul", inputs, y, bytes, 500, 0, step);
                assert_eq!(capture.output.tensor_id(), candle::tensor_id(y));
                assert_eq!(capture.output.storage_id(), candle::storage_id(y));
                assert_eq!(capture.output.shape, [5, 4]);
                assert_eq!(candle::device_label(y.device()), capture.output.device);
                assert_eq!(candle::dtype_label(y.dtype()), capture.output.dtype);
                assert_eq!(candle::tensor_dense_bytes(y), capture.output.tensor_bytes);
                candle::record_op(session, op.id(), &capture)?;
                Ok(())
            }
        }
    };
}

program! { theirs:
    use candle_graph_v10::candle::{self, CandleCapture, CandleOpCapture, GradientCapturePlan};
    use candle_graph_v10::trace::MemoryCategory;
    use candle_graph_v10::{
        CaptureContract, CoverageLevel, ExecutionStep, GradientFamilyContract, ProfileRun, SpanKind,
        TraceSession,
    };
}

program! { ours:
    use tmrun_probe_candle::SessionExt as _;
    use tmrun_probe_candle::candle::{self, CandleCapture, CandleOpCapture, GradientCapturePlan};
    use tmrun_probe_core::session::{
        CaptureContract, CoverageLevel, ExecutionStep, GradientFamilyContract, MemoryCategory,
        ProfileRun, SpanKind, TraceSession,
    };
}

/// The trace of a session's recording, as text.
fn derived(recording: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let file = std::fs::read(recording)?;
    let recording = Recording::open(&file, "ours").expect("a header");
    assert_eq!(recording.verify(), []);
    let region = Region::of(&recording, None).expect("one measured region");
    let trace = Trace::of(&recording, &region);
    Ok(trace.derive().document.write(Vec::new())?)
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
    let model = Model::new()?;
    let y = model.x.matmul(&model.weight)?;

    let theirs = std::fs::read(theirs::run(&path("theirs.jsonl"), &model, &y)?)?;
    let text = derived(&ours::run(&path("ours.tmrun"), &model, &y)?)?;
    std::fs::write(path("ours.jsonl"), &text)?;
    assert_eq!(judged(&path("theirs.jsonl")), (true, vec![]));
    assert_eq!(judged(&path("ours.jsonl")), (true, vec![]));

    let document = TraceDocument::read(&text)?;
    assert_eq!(document.tensors.len(), 3, "an operation's output once, and two");
    let (ours, theirs) = (told(&document), told(&TraceDocument::read(&theirs)?));
    assert!(theirs.len() > 12, "{theirs:#?}");
    let missing: Vec<_> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    let more: Vec<_> = ours.iter().filter(|line| !theirs.contains(line)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:#?}, more {more:#?}");
    assert_eq!(ours, theirs);
    Ok(())
}

/// Two tensors one after the other at one address, as a rule: two storages, each with its end.
#[test]
fn lifetimes_of_a_session_are_pairs_by_storage() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.tmrun");
    let model = Model::new()?;
    let session = TraceSession::open(&path, ProfileRun::training("trainer::update", 1, "cpu"))?;
    {
        let measured = session.begin_measurement("update/1");
        let variables = [("w", &model.weight), ("b", &model.frozen)];
        let counts = session.record_parameters(measured.id(), variables)?;
        assert_eq!((counts.recorded, counts.bytes), (2, 76));
        let inner = session.begin_span("inner", SpanKind::Function);
        for _ in 0..2 {
            let tensor = Tensor::zeros(8, DType::F64, &Device::Cpu)?;
            let tracked =
                Tracked::in_session(&session, &inner, tensor, MemoryCategory::Activation)?;
            assert!(tracked.is_recorded() && storage_id(&tracked).0 >> 48 != 0);
        }
        let tensor = Tensor::zeros(8, DType::F64, &Device::Cpu)?;
        assert!(session.record_tensor_alloc(inner.id(), &tensor, MemoryCategory::Other)?);
        assert!(session.record_tensor_free(inner.id(), &tensor, MemoryCategory::Other)?);
        if let Ok(memory) = ProcessMemory::open() {
            session.record_device_memory(memory.read()?.as_record())?;
        }
    }
    let text = derived(&session.finish()?)?;
    std::fs::write(folder.path().join("ours.jsonl"), &text)?;
    let (_, errors) = judged(&folder.path().join("ours.jsonl"));
    assert_eq!(errors, Vec::<String>::new());

    let document = TraceDocument::read(&text)?;
    let of = |action| document.memory.iter().filter(move |event| event.action == action);
    let ids = |action| of(action).map(|event| event.storage_id.to_string()).collect::<Vec<_>>();
    let (allocated, freed) = (ids(MemoryAction::Alloc), ids(MemoryAction::Free));
    assert_eq!((allocated.len(), &freed[..]), (5, &allocated[2..]));
    let mut apart = allocated.clone();
    apart.sort();
    apart.dedup();
    assert_eq!(apart.len(), 5, "{allocated:?}");
    let ops: Vec<_> = of(MemoryAction::Alloc).map(|event| event.op_name.as_deref()).collect();
    assert_eq!(ops[..2], [Some("b"), Some("w")], "parameters by name");
    Ok(())
}
