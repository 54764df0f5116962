//! Reading: what waits, what does not, and what is left in the end.

use std::time::Duration;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, DriverError};
use tmrun_formats::GapReason;
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, fake_test};

fake_test! {
fn a_poll_with_nothing_to_read_calls_no_driver(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let _timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let before = fake.all_calls();
    for _ in 0..10 {
        device.poll();
    }
    assert_eq!(fake.all_calls(), before);
}
}

fake_test! {
fn one_event_that_is_not_done_ends_the_look_at_its_stream(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let (slow, quick) = (fake.stream(), fake.stream());
    // SAFETY: the streams live as long as the process.
    let timers = [slow, quick].map(|stream| unsafe { device.timer_of(stream.raw(), TimerSettings::default()) });
    let [on_slow, on_quick] = timers.map(|timer| timer.expect("a timer"));
    fake.submit(slow, 1_000_000);
    for timer in [&on_slow, &on_quick] {
        for _ in 0..10 {
            drop(timer.interval(&PROBE, PROBE.name("work")));
        }
    }
    let before = fake.calls(c"cuEventQuery");
    let drained = device.poll();
    assert_eq!((drained.recorded, drained.waiting), (10, 10));
    assert_eq!(fake.calls(c"cuEventQuery") - before, 11);
    assert_eq!(fake.calls(c"cuEventSynchronize") + fake.calls(c"cuStreamSynchronize") + fake.calls(c"cuCtxSynchronize"), 0);
    fake.advance(1_000_000);
    assert_eq!(device.poll().recorded, 10);
}
}

fake_test! {
fn what_is_not_ready_or_open_in_the_end_is_counted(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("done")));
    fake.submit(stream, 1_000_000_000);
    drop(timer.interval(&PROBE, PROBE.name("busy")));
    drop(timer.interval(&PROBE, PROBE.name("busy")));
    let open = timer.interval(&PROBE, PROBE.name("open"));
    let counts = device.finish(Duration::from_millis(1));
    assert_eq!((counts.attempted, counts.recorded, counts.not_ready), (4, 1, 3));
    let calls = fake.all_calls();
    drop(open);
    assert!(!timer.interval(&PROBE, PROBE.name("late")).is_timed());
    assert_eq!(fake.all_calls(), calls, "after the end the driver is not called");
    assert_eq!(recording.finish().missing(GapReason::NOT_READY), 3);
}
}

fake_test! {
fn the_application_gets_its_context_back(fake) on Setup::manual().with("FAKECU_DEVICES", 2); {
    fake.start(1);
    let _recording = Recording::start(Level::TIMING);
    let here = fake.current_context();
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    assert_eq!(fake.current_context(), here);
    fake.start(0);
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("work")));
    fake.start(1);
    device.poll();
    assert_eq!(fake.capture_mode(), 0, "and its capture mode");
    assert_eq!(fake.current_context(), here);
    fake.leave_context();
    device.finish(Duration::ZERO);
    drop((timer, device));
    assert_eq!(fake.current_context(), 0);
}
}

fake_test! {
fn the_applications_deferred_error_stays(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let context = CudaContext::new(0).expect("a context");
    let stream = context.default_stream();
    let timer = device.timer(&stream, TimerSettings::default()).expect("a timer");
    // What an asynchronous failure of the application's leaves, for its next call to return.
    let fault = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    context.record_err::<()>(Err(DriverError(fault)));
    drop(timer.interval(&PROBE, PROBE.name("work")));
    let _ = timer.calibrate(2, Duration::from_secs(1));
    device.poll();
    device.finish(Duration::ZERO);
    assert!(context.check_err().is_err(), "the application still finds it");
}
}
