//! A tensor that was recorded is gone as soon as it is dropped: nothing that records keeps it, at any
//! level. The allocator counts the bytes of large blocks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{DType, Device, Result, Tensor, Var};
use tmrun_probe_candle::candle::{self, CandleCapture, CandleOpCapture};
use tmrun_probe_candle::{CandleRecorder, GradientCapturePlan, SessionExt, Tracked};
use tmrun_probe_core::session::{
    GradientFamilyContract, MemoryCategory, ProfileRun, SpanKind, TraceSession,
};
use tmrun_probe_core::{Category, Level, Recorder, probe};

/// Larger than anything else that comes and goes here.
const LARGE: usize = 16 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn size(layout: Layout) -> usize {
    if layout.size() >= LARGE { layout.size() } else { 0 }
}

// SAFETY: every call is passed on to the system's allocator as it came; counting is an atomic's.
// (`realloc` and `alloc_zeroed` are the trait's own, which come here.)
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(size(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the system's own.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(size(layout), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

probe!(static PROBE: lanes = 1, slots = 1 << 10);

/// The bytes of large blocks that `f` makes and leaves.
fn left_by<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = LIVE.load(Ordering::Relaxed);
    let result = f();
    (LIVE.load(Ordering::Relaxed) - before, result)
}

fn large() -> Result<Tensor> {
    Tensor::ones(LARGE / 4, DType::F32, &Device::Cpu)
}

/// Everything that can be recorded of a tensor with a probe.
fn by_probe(tensor: &Tensor) -> Result<()> {
    let node = PROBE.name("node");
    PROBE.at(Level::TIMING, |to| to.candle_op(node, node, to.now()..to.now(), tensor, &[tensor]));
    PROBE.at(Level::METADATA, |to| {
        to.candle_tensor(node, tensor, Category::ACTIVATION);
        to.candle_alloc(node, node, tensor, Category::ACTIVATION);
        to.candle_free(node, node, tensor, Category::ACTIVATION);
    });
    let stats = |to: Recorder<'_, _>| to.candle_stats(node, tensor, Category::ACTIVATION, true);
    PROBE.at(Level::NUMERICS, stats).transpose()?;
    Ok(())
}

type Tested = std::result::Result<(), Box<dyn std::error::Error>>;

/// The same in a session.
fn in_session(session: &TraceSession, tensor: &Tensor) -> Tested {
    let span = session.begin_span("node", SpanKind::Op);
    let id = span.id();
    session.record_tensor_stats(id, "node", tensor)?;
    session.record_tensor_with_label(id, "node", tensor, None)?;
    candle::record_tensor(session, id, &CandleCapture::from_tensor(tensor, None))?;
    let op = CandleOpCapture::new("op", vec![candle::tensor_id(tensor)], tensor, 0, 1, 0, None);
    candle::record_op(session, id, &op)?;
    session.record_tensor_alloc(id, tensor, MemoryCategory::Activation)?;
    session.record_tensor_free(id, tensor, MemoryCategory::Activation)?;
    Ok(())
}

#[test]
fn a_recorded_tensor_is_freed_when_it_is_dropped_at_every_level() -> Tested {
    let dir = tempfile::tempdir()?;
    for level in 0..=3 {
        let run = || ProfileRun::training("test", 1, "cpu").level(Level(level));
        let recording = PROBE.record(dir.path().join(format!("probe-{level}.tmrun")), run())?;
        let session = TraceSession::open(dir.path().join(format!("session-{level}.tmrun")), run())?;

        let (made, tensor) = left_by(large);
        let tensor = tensor?;
        assert!(made >= LARGE, "the allocator sees it");
        let (kept, recorded) =
            left_by(|| by_probe(&tensor).map(|()| in_session(&session, &tensor)));
        recorded??;
        assert_eq!(kept, 0, "level {level}: no copy of it stays");
        let before = LIVE.load(Ordering::Relaxed);
        drop(tensor);
        assert_eq!(before - LIVE.load(Ordering::Relaxed), made, "level {level}");

        // What holds it is the wrapper, and that only for as long as it is there.
        let (left, tracked) = left_by(|| {
            let node = PROBE.name("node");
            drop(Tracked::new(&PROBE, node, large()?, Category::OTHER));
            let span = session.begin_span("node", SpanKind::Function);
            drop(Tracked::in_session(&session, &span, large()?, MemoryCategory::Other)?);
            Ok::<_, Box<dyn std::error::Error>>(())
        });
        tracked?;
        assert_eq!(left, 0, "level {level}");

        // Nor do plans and what they record keep variables or gradients.
        let (left, planned) = left_by(|| {
            let variable = Var::from_tensor(&large()?)?;
            let plan = GradientCapturePlan::from_named_vars(
                "model",
                [("w".to_owned(), variable.clone())],
                |_| "all".into(),
                vec![GradientFamilyContract::active("all", 1)],
            )?;
            let gradients = variable.sum_all()?.backward()?;
            plan.record(&session, &gradients)?;
            let of_probe = plan.on(&PROBE);
            PROBE.at(Level::METADATA, |to| of_probe.record(&to, &gradients)).transpose()?;
            PROBE.at(Level::METADATA, |to| {
                to.candle_parameters(to.probe().name("init"), [("w", &variable)])
            });
            Ok::<_, Box<dyn std::error::Error>>((plan, of_probe))
        });
        let _plans = planned?;
        assert_eq!(left, 0, "level {level}");
        session.finish()?;
        recording.finish()?;
    }
    Ok(())
}
