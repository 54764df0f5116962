//! The training that is recorded.

use core::sync::atomic::{AtomicU32, Ordering};

use tmrun_formats::RunId;
use tmrun_formats::wire::{FileHeader, Frame, RunV1, TerminalV1};
use tmrun_probe_core::{
    Clock, DevicePlace, Drain, Flush, Level, NameId, OpFact, Phase, Probe, Recorder, SliceSink,
    Target, TensorId, Ticks, measured, scalar, span,
};

/// Bytes that the recording surely fits.
pub const MEMORY: usize = 64 * 1024;

/// Updates that are trained.
pub(crate) const UPDATES: u64 = 3;
/// Scalars at the end, many more than the ring holds.
pub(crate) const FLOOD: u32 = 100;
/// Inputs of the operation: a group of one head, one shape and three records of inputs.
pub(crate) const INPUTS: [TensorId; 12] = [TensorId(u64::MAX); 12];

/// A clock that counts its own readings.
enum Counter {}

impl Clock for Counter {
    const NAME: &'static str = "counter";

    fn ticks() -> Ticks {
        static READINGS: AtomicU32 = AtomicU32::new(0);
        Ticks(u64::from(READINGS.fetch_add(1, Ordering::Relaxed)))
    }

    fn ticks_per_second() -> u64 {
        1_000_000
    }
}

static PROBE: Probe<Counter, 2, 64, 64> = Probe::new();

/// Records into this memory and returns how much of it the file takes.
///
/// # Errors
///
/// What went wrong.
pub fn record(memory: &mut [u8]) -> Result<usize, &'static str> {
    let probe = PROBE.view();
    let run = RunId(*b"sixteen-bytes-id");
    let created_ns = 1_700_000_000_000_000_000;
    let header = FileHeader { run, created_ns, ticks_per_second: Counter::ticks_per_second() };
    let frames = [Frame::Run(describe(run, probe.ring_slots() as u64))];
    let sink = SliceSink::new(memory);
    let Ok(mut drain) = Drain::start(probe, sink, &header, &frames, Level::NUMERICS) else {
        return Err("the recording did not start");
    };
    let lane = probe.claim("main").map_err(|_| "no lane was free")?;
    let node = probe.name("model.layers.0");
    for update in 1..=UPDATES {
        let _step = lane.step(update);
        let _update = measured!(lane, "update");
        {
            let _forward = span!(lane, "forward", step = FORWARD);
            lane.at(Level::TIMING, |recorder| operation(recorder, node));
        }
        scalar!(lane, "loss", 1.0 / update as f64);
        drain.poll(Flush::All).map_err(|_| "the memory is full")?;
    }
    for value in 0..FLOOD {
        scalar!(lane, "flood", f64::from(value));
    }
    let terminal = TerminalV1 { complete: true, reason: None, ticks: Counter::ticks() };
    let (summary, ended) = drain.finish(&[Frame::Terminal(terminal)]);
    let sink = ended.map_err(|_| "the memory is full")?;
    if summary.bytes != sink.written().len() as u64 {
        return Err("the summary and the sink disagree about the bytes");
    }
    Ok(sink.written().len())
}

fn operation(recorder: Recorder<'_, Counter>, node: NameId) {
    let start = recorder.now();
    let end = recorder.now();
    let op = OpFact {
        op: recorder.probe().name("matmul"),
        start,
        end,
        output: TensorId(1),
        shape: Some(&[2, 3, 5]),
        device: recorder.probe().device_at(DevicePlace::Cpu),
        inputs: &INPUTS,
        ..OpFact::default()
    };
    recorder.op(node, &op);
}

fn describe(run: RunId, ring_slots: u64) -> RunV1<'static> {
    RunV1 {
        run,
        run_id: "bare",
        correlation_id: None,
        entrypoint: "no_std::update",
        device: "cpu",
        phase: Phase::TRAIN,
        capture_step: 1,
        warmup_steps: 0,
        device_synchronized: false,
        measured_region_synchronized: false,
        candle_version: None,
        profile: "debug",
        analysis_id: None,
        build_id: None,
        host: None,
        pid: None,
        rank: None,
        world_size: None,
        rings: None,
        clock: Counter::NAME,
        clock_invariant: true,
        ring_slots,
    }
}
