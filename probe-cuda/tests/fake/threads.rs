//! Threads, and the stream that each of them has for itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tmrun_formats::GapReason;
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaError, CudaProbe, TimerSettings};

use crate::support::simulated::AppStream;
use crate::support::{Over, PROBE, Recording, Setup, fake_test};

fake_test! {
fn a_per_thread_stream_is_timed_on_its_own_thread_alone(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    // SAFETY: every context has this stream.
    let timer = unsafe { device.timer_of(AppStream::PER_THREAD.raw(), TimerSettings::default()) };
    let timer = timer.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("here")));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            fake.start(0);
            // The whole timer goes with it: borrowing it does not compile.
            let timer = timer;
            let before = fake.all_calls();
            for _ in 0..5 {
                assert!(!timer.interval(&PROBE, PROBE.name("elsewhere")).is_timed());
            }
            assert_eq!(fake.all_calls(), before, "the driver is not called");
            let refused = timer.calibrate(1, Duration::from_secs(1));
            assert_eq!(refused, Err(CudaError::WrongThread));
            assert!(timer.graph_interval(PROBE.name("elsewhere")).is_err());
        });
    });
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.wrong_thread), (6, 1, 5));
    assert_eq!(recording.finish().missing(GapReason::WRONG_THREAD), 5);
}
}

fake_test! {
fn the_streams_of_two_threads_are_two_in_the_file(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    for _ in 0..2 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                fake.start(0);
                // SAFETY: every context has this stream.
                let timer = unsafe { device.timer_of(AppStream::PER_THREAD.raw(), TimerSettings::default()) };
                let timer = timer.expect("a timer");
                let interval = timer.interval(&PROBE, PROBE.name("work"));
                fake.submit(AppStream::PER_THREAD, 1_000);
                drop(interval);
            });
        });
        fake.advance(5_000);
    }
    device.finish(Duration::ZERO);
    let file = recording.finish();
    let [one, other] = file.intervals[..] else { panic!("{:?}", file.intervals) };
    assert_ne!(one.is.stream, other.is.stream);
    assert_eq!(other.is.start - one.is.start, 5_000, "and one clock");
}
}

fake_test! {
fn a_stream_moves_to_another_thread_with_its_timer(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("work")));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let timer = timer;
            drop(timer.interval(&PROBE, PROBE.name("work")));
        });
    });
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded), (2, 2));
    let file = recording.finish();
    assert_ne!(file.intervals[0].is.lane, file.intervals[1].is.lane);
}
}

fake_test! {
fn timers_that_go_give_their_events_back(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    for _ in 0..20 {
        let stream = fake.stream();
        // SAFETY: the stream lives for longer than the timer.
        let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(16)) };
        let timer = timer.expect("a timer");
        for _ in 0..3 {
            drop(timer.interval(&PROBE, PROBE.name("work")));
            // Far enough from the one before that it is the next anchor.
            fake.advance(10_000_000);
        }
        drop(timer);
        device.poll();
        fake.destroy(stream);
        assert!(fake.events() <= 2 * 32, "{} events", fake.events());
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded), (60, 60));
    drop(device);
    assert_eq!(fake.events(), 0);
}
}

fake_test! {
fn a_thread_drains_while_others_time(fake) on Setup::default().with("FAKECU_LATENCY_NS", 0); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let draining = device.drain_every(Duration::from_micros(100)).expect("a thread");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&done);
        let working: Vec<_> = (0..4).map(|_| scope.spawn(|| {
            fake.start(0);
            let stream = fake.stream();
            // SAFETY: the stream lives as long as the process.
            let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) };
            let timer = timer.expect("a timer");
            for _ in 0..2_000 {
                let _interval = timer.interval(&PROBE, PROBE.name("work"));
                fake.submit(stream, 100);
            }
        })).collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                recording.poll();
                std::thread::yield_now();
            }
        });
        working.into_iter().for_each(|thread| thread.join().expect("it works"));
    });
    drop(draining);
    let counts = device.finish(Duration::from_secs(10));
    assert_eq!(counts.attempted, 8_000);
    assert_eq!(counts.recorded + counts.missing(), 8_000, "{counts:?}");
    let file = recording.finish();
    assert_eq!(file.intervals.len() as u64, counts.recorded);
    assert_eq!(file.all_missing(), counts.missing());
}
}
