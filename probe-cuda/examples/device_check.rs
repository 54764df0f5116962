//! What a real device does, of what `tmrun-probe-cuda` rests on: one JSON document on standard output,
//! in some seconds. `probe-cuda/device-check` builds it for a machine that has a driver and nothing else.
//!
//! Without a device it says so, and ends with 0 all the same. An entry that could not be measured is an
//! object with `error`.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libloading::Library;
use serde_json::{Map, Value, json};
use tmrun_formats::wire::{Chunks, DeviceInterval, Walked};
use tmrun_probe_core::{AutoClock, Level, ProfileRun, probe};
use tmrun_probe_cuda::cudarc::driver::sys::{self, CUevent, CUfunction, CUresult, CUstream};
use tmrun_probe_cuda::cudarc::driver::{CudaContext, CudaStream};
use tmrun_probe_cuda::{CudaProbe, TimerSettings, unavailable};

probe!(static PROBE: lanes = 8);

const PATIENCE: Duration = Duration::from_secs(5);
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// A kernel that does nothing for so many of the processor's cycles.
const SPIN: &str = "\
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 cycles) {
  .reg .pred %p; .reg .u64 %r<4>;
  ld.param.u64 %r1, [cycles];
  mov.u64 %r2, %clock64;
again:
  mov.u64 %r3, %clock64;
  sub.u64 %r3, %r3, %r2;
  setp.lt.u64 %p, %r3, %r1;
  @%p bra again;
  ret;
}
\0";

type Checked<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Checked<()> {
    let document = document()?;
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

fn document() -> Checked<Value> {
    let folder = std::env::temp_dir().join(format!("tmrun-device-check.{}", std::process::id()));
    let run = ProfileRun::inference("device_check", 1, "cuda:0").level(Level::METADATA);
    let recording = PROBE.record(&folder, run)?;
    let mut document = Map::new();
    match CudaProbe::open(*PROBE, 0) {
        Err(error) => {
            unavailable(*PROBE, &error);
            document.insert("device".into(), "no device".into());
            document.insert("said".into(), error.to_string().into());
        }
        Ok(device) => {
            document.insert("device".into(), device.device_name()?.into());
            document.insert("driver".into(), device.driver_version()?.into());
            let (library, function) = device.driver_functions();
            document.insert("functions".into(), json!([library, function]));
            measure(&device, &mut document)?;
            let counts = device.finish(PATIENCE);
            document.insert("counts".into(), format!("{counts:?}").into());
            document.insert("stamp_quantum_ns".into(), counts.stamp_quantum_ns.into());
            document.insert("position_error_ns".into(), counts.position_error_ns.into());
        }
    }
    recording.finish()?;
    let file = std::fs::read(&folder)?;
    document.insert("our_median_ms_of_the_kernel".into(), median_ms(&file, "kernel").into());
    std::fs::remove_file(folder)?;
    Ok(Value::Object(document))
}

/// The median length of the recorded intervals of this name.
fn median_ms(file: &[u8], name: &str) -> Option<f64> {
    let id = PROBE.name(name);
    let chunks = Chunks::new(file).filter_map(|walked| match walked {
        Walked::Chunk(chunk) => Some(chunk.records()),
        _ => None,
    });
    let named = chunks.flatten().filter(|record| record.header().name == id);
    let lengths = named.filter_map(|record| record.payload::<DeviceInterval>());
    let mut lengths: Vec<u64> = lengths.map(|is| is.end.saturating_sub(is.start)).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).map(|&ns| ns as f64 / 1e6)
}

fn measure(device: &CudaProbe<AutoClock>, document: &mut Map<String, Value>) -> Checked<()> {
    // The preflight has found the library: the binding does not panic.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let mut check = |name: &str, measured: Checked<Value>| {
        let value = measured.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        document.insert(name.into(), value);
    };
    check("cost_ns", cost(device, &stream));
    check("streams", streams(&context));
    check("stream_ids", stream_ids(device));
    check("capture", capture(device, &context));
    check("kernel", kernel(device, &stream));
    check("clock", clock(device, &stream));
    Ok(())
}

fn ok(result: CUresult) -> Checked<()> {
    Ok(result.result()?)
}

fn event() -> Checked<CUevent> {
    let mut event = std::ptr::null_mut();
    // SAFETY: the place is there.
    ok(unsafe { sys::cuEventCreate(&raw mut event, 0) })?;
    Ok(event)
}

fn record(event: CUevent, stream: CUstream) -> CUresult {
    // SAFETY: takes no place.
    unsafe { sys::cuEventRecord(event, stream) }
}

fn query(event: CUevent) -> CUresult {
    // SAFETY: takes no place.
    unsafe { sys::cuEventQuery(event) }
}

fn wait(stream: CUstream) -> Checked<()> {
    // SAFETY: takes no place.
    ok(unsafe { sys::cuStreamSynchronize(stream) })
}

/// The driver's own answer, by the name that this driver has. (The binding looks for the newer one, and
/// panics where an older driver lacks it.)
fn elapsed(from: CUevent, to: CUevent) -> Checked<f32> {
    type Elapsed = unsafe extern "system" fn(*mut f32, CUevent, CUevent) -> CUresult;
    static ELAPSED: OnceLock<Option<Elapsed>> = OnceLock::new();
    let found = ELAPSED.get_or_init(|| {
        // SAFETY: it is the driver, which is loaded already.
        let driver = unsafe { Library::new("libcuda.so.1") }.ok()?;
        let driver: &'static Library = Box::leak(Box::new(driver));
        // SAFETY: both functions have this type.
        let of = |name: &str| unsafe { driver.get::<Elapsed>(name) }.ok().map(|found| *found);
        of("cuEventElapsedTime_v2").or_else(|| of("cuEventElapsedTime"))
    });
    let (call, mut ms) = (found.ok_or("the driver has no cuEventElapsedTime")?, 0.0);
    // SAFETY: the place is there.
    ok(unsafe { call(&raw mut ms, from, to) })?;
    Ok(ms)
}

/// The least of five times a call, over so many of them.
fn each(calls: u32, mut call: impl FnMut() -> Checked<()>) -> Checked<f64> {
    let mut least = f64::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        least = least.min(began.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    Ok(least)
}

/// What the driver takes for a call, and what an interval of ours takes.
fn cost(device: &CudaProbe<AutoClock>, stream: &Arc<CudaStream>) -> Checked<Value> {
    let raw = stream.cu_stream();
    let (from, to) = (event()?, event()?);
    let recorded = each(1000, || ok(record(from, raw)))?;
    ok(record(to, raw))?;
    wait(raw)?;
    let queried = each(1000, || ok(query(to)))?;
    let distance = each(1000, || elapsed(from, to).map(drop))?;
    let name = PROBE.name("cost");
    let of = |settings: TimerSettings| -> Checked<f64> {
        let timer = device.timer(stream, settings.intervals(8192))?;
        let one = each(1000, || {
            drop(timer.interval(&PROBE, name));
            Ok(())
        })?;
        wait(raw)?;
        device.poll();
        Ok(one)
    };
    Ok(json!({
        "record": recorded,
        "query": queried,
        "elapsed": distance,
        "interval": of(TimerSettings::default())?,
        "interval_without_graphs": of(TimerSettings::default().without_graphs())?,
    }))
}

/// Whether the stamps of two streams are on one clock, and what a distance backwards is.
fn streams(context: &Arc<CudaContext>) -> Checked<Value> {
    let (one, other) = (context.new_stream()?, context.new_stream()?);
    let (first, second) = (event()?, event()?);
    let mut least = f32::MAX;
    for _ in 0..200 {
        ok(record(first, one.cu_stream()))?;
        // SAFETY: takes no place.
        ok(unsafe { sys::cuStreamWaitEvent(other.cu_stream(), first, 0) })?;
        ok(record(second, other.cu_stream()))?;
        wait(other.cu_stream())?;
        least = least.min(elapsed(first, second)?);
    }
    Ok(json!({
        "least_ms_from_an_event_to_one_that_waited_for_it": least,
        "backwards_ms": elapsed(second, first)?,
    }))
}

/// The driver's numbers for the per-thread stream of two threads.
fn stream_ids(device: &CudaProbe<AutoClock>) -> Checked<Value> {
    let id = || {
        // SAFETY: every context has this stream.
        let timer = unsafe { device.timer_of(PER_THREAD as CUstream, TimerSettings::default()) };
        timer.map_or_else(|error| error.to_string(), |timer| format!("{timer:?}"))
    };
    let elsewhere = std::thread::scope(|scope| scope.spawn(id).join());
    let elsewhere = elsewhere.map_err(|_| "the thread panicked")?;
    Ok(json!({ "here": id(), "elsewhere": elsewhere }))
}

/// What becomes of captures while they are timed and drained, and of events in them.
fn capture(device: &CudaProbe<AutoClock>, context: &Arc<CudaContext>) -> Checked<Value> {
    let stream = context.new_stream()?;
    let raw = stream.cu_stream();
    let timer = device.timer(&stream, TimerSettings::default())?;
    let name = PROBE.name("captured");
    let mut modes = Map::new();
    for (mode, what) in [
        (sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL, "global"),
        (sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread_local"),
        (sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"),
    ] {
        drop(timer.interval(&PROBE, name));
        let within = event()?;
        // SAFETY: takes no place.
        ok(unsafe { sys::cuStreamBeginCapture_v2(raw, mode) })?;
        let is_timed = timer.interval(&PROBE, name).is_timed();
        let recorded = record(within, raw);
        std::thread::scope(|scope| _ = scope.spawn(|| device.poll()).join());
        let mut graph = std::ptr::null_mut();
        // SAFETY: the place is there.
        let ended = unsafe { sys::cuStreamEndCapture(raw, &raw mut graph) };
        modes.insert(
            what.into(),
            json!({
                "an_interval_within_is_timed": is_timed,
                "end_of_the_capture": format!("{ended:?}"),
                "record_within": format!("{recorded:?}"),
                "query_of_that_event": format!("{:?}", query(within)),
            }),
        );
    }
    // A graph whose interval every launch stamps.
    let work = timer.graph_interval(PROBE.name("launch"))?;
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: takes no place.
    ok(unsafe { sys::cuStreamBeginCapture_v2(raw, mode) })?;
    work.begin()?;
    work.end()?;
    let (mut graph, mut launchable) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the place is there.
    ok(unsafe { sys::cuStreamEndCapture(raw, &raw mut graph) })?;
    // SAFETY: the place is there.
    ok(unsafe { sys::cuGraphInstantiateWithFlags(&raw mut launchable, graph, 0) })?;
    let before = device.counts().recorded;
    for _ in 0..20 {
        // SAFETY: takes no place.
        work.replay(&PROBE, || ok(unsafe { sys::cuGraphLaunch(launchable, raw) }))?;
        wait(raw)?;
        device.poll();
    }
    let replays = device.counts().recorded.saturating_sub(before);
    modes.insert("intervals_of_20_launches".into(), replays.into());
    Ok(Value::Object(modes))
}

/// A kernel as we time it, and as the driver's two events do.
fn kernel(device: &CudaProbe<AutoClock>, stream: &Arc<CudaStream>) -> Checked<Value> {
    let raw = stream.cu_stream();
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the text ends in zero, and the place is there.
    ok(unsafe { sys::cuModuleLoadData(&raw mut module, SPIN.as_ptr().cast()) })?;
    // SAFETY: the name ends in zero, and the place is there.
    ok(unsafe { sys::cuModuleGetFunction(&raw mut function, module, c"spin".as_ptr()) })?;
    let timer = device.timer(stream, TimerSettings::default())?;
    let (from, to) = (event()?, event()?);
    let mut theirs = Vec::new();
    for _ in 0..50 {
        let interval = timer.interval(&PROBE, PROBE.name("kernel"));
        ok(record(from, raw))?;
        launch(function, raw)?;
        ok(record(to, raw))?;
        drop(interval);
        wait(raw)?;
        theirs.push(elapsed(from, to)?);
        device.poll();
    }
    theirs.sort_by(f32::total_cmp);
    Ok(json!({
        "median_ms_by_two_events": theirs.get(theirs.len() / 2),
        "least_ms_by_two_events": theirs.first(),
        "waiting": device.poll().waiting,
    }))
}

fn launch(function: CUfunction, stream: CUstream) -> Checked<()> {
    let mut cycles: u64 = 1_000_000;
    let mut parameters: [*mut c_void; 1] = [(&raw mut cycles).cast()];
    // SAFETY: the kernel takes one 64-bit number, whose place is there until the call returns.
    ok(unsafe {
        sys::cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            parameters.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    })
}

/// How tight readings of both clocks are, and how fast the two drift apart.
fn clock(device: &CudaProbe<AutoClock>, stream: &Arc<CudaStream>) -> Checked<Value> {
    let timer = device.timer(stream, TimerSettings::default())?;
    let mut widths = Vec::new();
    for _ in 0..6 {
        let reading = timer.calibrate(32, PATIENCE)?;
        widths.push(reading.after.0.saturating_sub(reading.before.0));
        std::thread::sleep(Duration::from_millis(500));
        drop(timer.interval(&PROBE, PROBE.name("tick")));
        device.poll();
    }
    timer.sample_memory(&PROBE);
    let fit = timer.fit().ok_or("no reading")?;
    Ok(json!({
        "widths_in_ticks": widths,
        "rate_ppm": fit.rate_ppm(),
        "residual_ns": fit.residual_ns,
    }))
}
