//! A million intervals over simulated hours, with threads and streams that come and go, and a driver
//! that refuses now and then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tmrun_formats::GapReason;
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaProbe, TimerSettings};

use crate::support::simulated::AppStream;
use crate::support::{Over, PROBE, Recording, Setup, Simulated, SimulatedClock, fake_test};

const THREADS: usize = 4;
const ROUNDS: usize = 25;
const INTERVALS: usize = 10_000;

/// A thread of the application's: a stream for each round, or its own.
fn works(fake: &Simulated, device: &CudaProbe<SimulatedClock>, round: usize, thread: usize) {
    fake.start(0);
    let own = thread == 0;
    let stream = if own { AppStream::PER_THREAD } else { fake.stream() };
    // SAFETY: the stream is destroyed behind the timer.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(512)) };
    let timer = timer.expect("a timer");
    let name = PROBE.name("work");
    for at in 0..INTERVALS {
        let is_captured = at % 1_000 == 999 && thread == 1;
        if is_captured {
            fake.begin_capture(stream, (round % 3) as u32);
        }
        {
            let _interval = timer.interval(&PROBE, name);
            fake.submit(stream, 3_000_000 + (at as u64 * 7919) % 1_000_000);
        }
        if is_captured {
            assert!(fake.end_capture(stream).is_ok(), "a capture of round {round} was broken");
        }
        if thread == 2 {
            fake.advance(9_000_000);
        }
        if at % 64 == 0 {
            std::thread::yield_now();
        }
    }
    drop(timer);
    if !own {
        fake.destroy(stream);
    }
}

fake_test! {
fn a_million_intervals_are_recorded_or_counted(fake) on Setup::manual().with("FAKECU_RES_NS", 32); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let draining = device.drain_every(Duration::from_micros(200)).expect("a thread");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                recording.poll();
                std::thread::yield_now();
            }
        });
        for round in 0..ROUNDS {
            let functions = [c"cuEventRecord", c"cuEventQuery", c"cuStreamIsCapturing", c"cuEventElapsedTime_v2"];
            for function in functions {
                fake.fail(function, 1_000 + round as u64, 201);
            }
            let device = &device;
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || works(fake, device, round, thread)))
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it works"));
            fake.mend();
        }
    });
    drop(draining);
    fake.advance(1_000_000_000_000_000);
    let counts = device.finish(Duration::from_secs(10));
    let total = (THREADS * ROUNDS * INTERVALS) as u64;
    assert!(fake.host_now() > 2 * 3_600_000_000_000, "hours");
    assert_eq!(counts.attempted, total);
    assert_eq!(counts.recorded + counts.missing(), total, "{counts:?}");
    assert!(counts.recorded > total / 4 && counts.graph_capture > 0 && counts.driver_error > 0, "{counts:?}");
    drop(device);
    assert_eq!(fake.events(), 0, "every event was given back");
    let file = recording.finish();
    assert_eq!(file.missing(GapReason::OVERRUN), 0, "a full lane is waited for");
    assert_eq!(file.intervals.len() as u64, counts.recorded);
    let missing = [
        (GapReason::POOL_EXHAUSTED, counts.pool_exhausted),
        (GapReason::GRAPH_CAPTURE, counts.graph_capture),
        (GapReason::DRIVER_ERROR, counts.driver_error),
        (GapReason::NOT_READY, counts.not_ready),
        (GapReason::WRONG_THREAD, counts.wrong_thread),
    ];
    for (reason, count) in missing {
        assert_eq!(file.missing(reason), count, "{:?}", reason.name());
    }
}
}
