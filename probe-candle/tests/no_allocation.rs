//! On the processor nothing that records allocates. The allocator counts by thread, so that nothing
//! else in the process is seen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use candle_core::{DType, Device, Result, Tensor, Var};
use tmrun_formats::wire::{Chunks, Kind, Walked};
use tmrun_probe_candle::candle::{self, CandleCapture};
use tmrun_probe_candle::{
    CandleRecorder, GradientCapturePlan, GradientPlan, Layer, ProcessMemory, SessionExt, Tracked,
    same_storage, storage_id,
};
use tmrun_probe_core::session::{
    GradientFamilyContract, MemoryCategory, ProfileRun, SpanKind, TraceSession,
};
use tmrun_probe_core::{AutoClock, Category, Level, Probe, probe};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    // While a thread ends it may be too late to count.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator as it came; counting touches only a
// thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps the contract, which is the system's own.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[track_caller]
fn assert_allocates_nothing(what: &str, f: impl FnOnce()) {
    let before = ALLOCATIONS.get();
    f();
    assert_eq!(ALLOCATIONS.get() - before, 0, "{what} allocates");
}

#[test]
fn recording_on_the_processor_allocates_nothing() -> Result<()> {
    static PROBE: Probe<AutoClock, 1, 1024> = Probe::new();
    let lane = PROBE.view().claim("test").expect("the first lane");
    let recorder = lane.recorder();
    let (node, op) = (PROBE.view().name("head"), PROBE.view().name("matmul"));

    let weight = Var::ones((4, 3), DType::F32, &Device::Cpu)?;
    let unused = Var::ones(3, DType::F32, &Device::Cpu)?;
    let x = Tensor::rand(0f32, 1., (5, 4), &Device::Cpu)?;
    let y = x.matmul(&weight)?;
    let strided = y.t()?.narrow(0, 1, 2)?;
    let deep = y.reshape(vec![1, 1, 1, 5, 1, 3, 1, 1])?;
    let tiny = (y.to_dtype(DType::F64)? * 1e-300)?;
    let gradients = y.sum_all()?.backward()?;
    let variables = [("unused", &unused), ("weight", &weight)];
    let plan = GradientPlan::from_named_vars(&PROBE.view(), "model", variables);

    // The first use of a device defines it, and that allocates nothing either.
    for tensor in [&y, &strided, &deep] {
        assert_allocates_nothing("a tensor", || {
            recorder.candle_tensor(node, tensor, Category::ACTIVATION);
        });
    }
    let inputs = [&x, weight.as_tensor()];
    assert_allocates_nothing("an operation", || {
        recorder.candle_op(node, op, recorder.now()..recorder.now(), &y, &inputs);
    });
    for tensor in [&y, &strided, &deep, &tiny] {
        let mut recorded = None;
        assert_allocates_nothing("statistics", || {
            recorded = Some(recorder.candle_stats(node, tensor, Category::ACTIVATION, true));
        });
        recorded.transpose()?;
    }
    let mut counts = None;
    assert_allocates_nothing("gradients", || counts = Some(plan.record(&recorder, &gradients)));
    let counts = counts.transpose()?.unwrap_or_default();
    assert_eq!((counts.present, counts.missing), (1, 1));
    assert_allocates_nothing("an allocation", || {
        assert!(recorder.candle_alloc(node, op, &weight, Category::PARAMETER));
    });
    // From here on there are lifetimes, which ids have to be looked up in.
    assert_allocates_nothing("identities", || {
        assert_ne!(storage_id(&weight), storage_id(&y));
        assert!(!same_storage(&weight, &y));
    });
    assert_allocates_nothing("what is seen of a lifetime", || {
        recorder.candle_tensor(node, &weight, Category::PARAMETER);
        recorder.candle_op(node, op, recorder.now()..recorder.now(), &weight, &inputs);
    });
    assert_allocates_nothing("a free", || {
        assert!(recorder.candle_free(node, op, &weight, Category::PARAMETER));
    });
    Ok(())
}

probe!(static TRACKING: lanes = 2, slots = 1 << 10);

#[test]
fn at_no_level_does_a_tracked_storage_or_a_sample_of_the_process_allocate() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let memory = ProcessMemory::open();
    for level in 0..=3 {
        let path = dir.path().join(format!("{level}.tmrun"));
        let run = ProfileRun::training("test", 1, "cpu").level(Level(level));
        let recording = TRACKING.record(path, run).expect("a recording");
        let node = TRACKING.name("cache");
        drop(TRACKING.step(1)); // the thread has its lane
        let tensor = Tensor::zeros((4, 3), DType::F32, &Device::Cpu)?;
        assert_allocates_nothing("a tracked storage", || {
            let tracked = Tracked::new(&TRACKING, node, tensor, Category::OTHER);
            assert_eq!(tracked.is_recorded(), level >= 2);
        });
        if let Ok(memory) = &memory {
            let mut sampled = None;
            assert_allocates_nothing("a sample of the process", || {
                sampled = memory.sample_memory(&TRACKING).ok();
            });
            assert_eq!(sampled.flatten().is_some(), level >= 2);
        }
        recording.finish().expect("an end");
    }
    Ok(())
}

#[test]
fn at_no_level_does_a_session_allocate_for_what_is_no_owned_text() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let weight = Var::ones((4, 3), DType::F32, &Device::Cpu)?;
    let unused = Var::ones(3, DType::F32, &Device::Cpu)?;
    let y = Tensor::ones((5, 4), DType::F32, &Device::Cpu)?.matmul(&weight)?;
    let gradients = y.sum_all()?.backward()?;
    let named = [("unused".to_owned(), unused), ("weight".to_owned(), weight.clone())];
    let families = vec![GradientFamilyContract::data_conditional("all", 1)];
    let plan = GradientCapturePlan::from_named_vars("model", named, |_| "all".into(), families)
        .expect("a plan");
    let capture = CandleCapture::from_tensor(&y, None).with_label("y");
    for level in 0..=3 {
        let path = dir.path().join(format!("{level}.tmrun"));
        let run = ProfileRun::training("test", 1, "cpu").level(Level(level));
        let session = TraceSession::open(path, run).expect("a session");
        let span = session.begin_span("step", SpanKind::Function);
        let id = span.id();
        // Twice: with texts that are new to the session, and with ones that it has.
        for _ in 0..2 {
            let mut done = true;
            assert_allocates_nothing("a session", || {
                done &= session.record_tensor_stats(id, "y", &y).is_ok();
                done &= candle::record_tensor(&session, id, &capture).is_ok();
                done &= plan.record(&session, &gradients).is_ok();
                let category = MemoryCategory::Parameter;
                let recorded = session.record_tensor_alloc(id, &weight, category);
                done &= recorded.is_ok_and(|recorded| recorded == (level >= 2));
                done &= session.record_tensor_free(id, &weight, category).is_ok();
            });
            assert!(done);
        }
        drop(span);
        session.finish().expect("an end");
    }
    Ok(())
}

/// At every level.
#[test]
fn a_call_of_a_layer_allocates_nothing_more_than_the_layer() -> Result<()> {
    probe!(static CALLS: lanes = 2, slots = 1 << 10);
    let dir = tempfile::tempdir()?;
    let x = Tensor::rand(0f32, 1., (5, 4), &Device::Cpu)?;
    let strided = x.t()?.narrow(0, 1, 2)?;
    let layer = Layer::on(CALLS, "blocks.0.mlp", "mlp");
    let mut recorded = Vec::new();
    for level in [Level::PULSE, Level::TIMING, Level::METADATA, Level::NUMERICS] {
        let path = dir.path().join(format!("{}.tmrun", level.0));
        let run = ProfileRun::training("test", 1, "cpu").level(level);
        let recording = CALLS.record(&path, run).expect("a new file");
        // The thread's lane is claimed on first use.
        CALLS.at(Level::PULSE, |to| to.now());
        for output in [&x, &strided] {
            let mut called = None;
            assert_allocates_nothing("a call", || {
                called = Some(layer.call(&[&x, &strided], || Ok(output.clone())));
            });
            called.transpose()?;
        }
        recording.finish().expect("all of it is written");
        let file = std::fs::read(&path)?;
        let chunks = Chunks::new(&file).filter_map(|walked| match walked {
            Walked::Chunk(chunk) => Some(chunk.records()),
            _ => None,
        });
        let kinds: Vec<_> = chunks.flatten().filter_map(|record| record.kind()).collect();
        let of = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
        recorded.push([Kind::Span, Kind::Op, Kind::Tensor, Kind::Stats].map(of));
    }
    // (At level 3 the look at the elements is a span of its own.)
    assert_eq!(recorded, [[0; 4], [2, 2, 0, 0], [2, 2, 2, 0], [4, 2, 2, 2]]);
    Ok(())
}
