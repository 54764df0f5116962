//! A driver that refuses.

use std::time::Duration;

use tmrun_formats::GapReason;
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaError, CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, fake_test};

fake_test! {
fn a_refusal_is_a_gap_with_its_code_and_the_next_interval_is_timed(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(4)) };
    let timer = timer.expect("a timer");
    let functions = [c"cuStreamIsCapturing", c"cuEventRecord", c"cuEventQuery", c"cuEventElapsedTime_v2"];
    let mut attempted = 0;
    for function in functions {
        for nth in 1..=2 {
            fake.fail(function, nth, 201);
            for _ in 0..4 {
                drop(timer.interval(&PROBE, PROBE.name("work")));
                attempted += 1;
                fake.advance(10_000_000);
                device.poll();
            }
        }
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.driver_error, counts.recorded), (attempted, 8, attempted - 8));
    let file = recording.finish();
    assert_eq!(file.missing(GapReason::DRIVER_ERROR), 8);
    let said = file.gaps.iter().map(|(why, _)| file.name(*why));
    assert!(said.into_iter().all(|why| why == "CUDA_ERROR_INVALID_CONTEXT (201)"));
}
}

fake_test! {
fn a_fault_that_stays_is_told_once_and_the_driver_is_left_alone(fake) on Setup::manual(); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    for _ in 0..5 {
        drop(timer.interval(&PROBE, PROBE.name("work")));
    }
    fake.break_for_good(c"cuEventQuery", 3, 719);
    device.poll();
    let (calls, events) = (fake.all_calls(), fake.events());
    for _ in 0..100 {
        assert!(!timer.interval(&PROBE, PROBE.name("work")).is_timed());
        device.poll();
    }
    assert_eq!(fake.all_calls(), calls, "nothing is asked of a dead device");
    timer.sample_memory(&PROBE);
    assert_eq!(timer.calibrate(1, Duration::from_secs(1)), Err(CudaError::Dead { code: tmrun_probe_cuda::Code(719) }));
    recording.poll();
    let counts = device.finish(Duration::from_secs(60));
    assert_eq!((counts.attempted, counts.recorded, counts.driver_error), (105, 2, 103));
    drop((timer, device));
    assert_eq!(fake.all_calls(), calls, "and it is not asked to destroy events either");
    assert_eq!(fake.events(), events);
    let file = recording.finish();
    let [first, ref rest @ ..] = file.gaps[..] else { panic!("{:?}", file.gaps) };
    assert_eq!((first.1.reason, first.1.records), (GapReason::DRIVER_ERROR, 3));
    assert_eq!(file.name(first.0), "CUDA_ERROR_LAUNCH_FAILED (719)");
    assert_eq!(rest.len(), 1, "the rest is told in the end: {rest:?}");
    assert_eq!(file.missing(GapReason::DRIVER_ERROR), 103);
}
}

fake_test! {
fn a_fault_that_another_call_tells_first_ends_it_as_well(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("work")));
    // The application's own work fails, and nothing is timed any more: entering the context tells.
    fake.break_for_good(c"cuCtxGetCurrent", 1, 719);
    let counts = device.finish(Duration::from_secs(5));
    assert_eq!((counts.attempted, counts.driver_error, counts.not_ready), (1, 1, 0));
    let calls = fake.all_calls();
    drop((timer, device));
    assert_eq!(fake.all_calls(), calls, "a dead device is left alone");
    assert_eq!(recording.finish().missing(GapReason::DRIVER_ERROR), 1);
}
}

fake_test! {
fn a_fault_in_the_loop_stops_timing_and_not_the_loop(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    fake.break_for_good(c"cuEventRecord", 4, 700);
    for _ in 0..10 {
        drop(timer.interval(&PROBE, PROBE.name("work")));
    }
    let counts = device.finish(Duration::from_secs(60));
    assert_eq!((counts.attempted, counts.recorded, counts.driver_error), (10, 0, 10));
    assert_eq!(recording.finish().missing(GapReason::DRIVER_ERROR), 10);
}
}

fake_test! {
fn events_that_cannot_be_made_are_an_error_and_none_is_left(fake) on Setup::manual(); {
    fake.start(0);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    fake.fail(c"cuEventCreate", 6, 2);
    // SAFETY: the stream lives as long as the process.
    let refused = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) };
    let code = tmrun_probe_cuda::Code(2);
    assert_eq!(refused.err(), Some(CudaError::Driver { call: "cuEventCreate", code }));
    assert_eq!(fake.events(), 0);
    // SAFETY: the same.
    let refused = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(3)) };
    assert_eq!(refused.err(), Some(CudaError::PoolSize { intervals: 3 }));
}
}
