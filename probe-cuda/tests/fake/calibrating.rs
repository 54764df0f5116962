//! The device's clock and the host's: only where somebody asked, and with bounds that hold.

use std::time::Duration;

use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaError, CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, fake_test};

/// What the first device's clock shows at the start.
const OFFSET: f64 = 7e9;

fake_test! {
fn readings_hold_the_truth_and_tell_the_rate(fake) on Setup::manual().with("FAKECU_DRIFT_PPM", 37).with("FAKECU_CALL_NS", 700).with("FAKECU_RES_NS", 500); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    assert_eq!(timer.fit(), None);
    let mut ends = Vec::new();
    for _ in 0..3 {
        timer.calibrate(16, Duration::from_secs(5)).expect("an idle stream");
        for _ in 0..20_000 {
            {
                let _interval = timer.interval(&PROBE, PROBE.name("step"));
                fake.submit(stream, 10_000_000);
            }
            ends.push(fake.end_of(stream));
            fake.advance(15_000_000);
            if ends.len() % 64 == 0 {
                device.poll();
                recording.poll();
            }
        }
    }
    timer.calibrate(16, Duration::from_secs(5)).expect("an idle stream");
    let fit = timer.fit().expect("readings");
    let rate = fit.rate_ppm().expect("a rate");
    assert!((rate - 37.0).abs() < 0.01, "{rate} ppm");
    let counts = device.finish(Duration::ZERO);
    let file = recording.finish();
    assert_eq!(file.syncs.len(), 4);
    assert_eq!(file.intervals.len() as u64, counts.recorded);
    // What the device's own clock showed where the file says `device_ns`.
    let origin = ends[0].div_ceil(500) as f64 * 500.0 - file.intervals[0].is.end as f64;
    for sync in &file.syncs {
        let host = (sync.device_ns as f64 + origin - OFFSET) / (1.0 + 37e-6);
        assert!(sync.before.0 as f64 <= host && host <= sync.after.0 as f64, "{sync:?} {host}");
        let width = sync.after.0 - sync.before.0;
        assert!(width >= 2 * 500 + 2 * 700, "what the stamp's resolution leaves open is in it");
        assert!(width <= 2 * 500 + 4 * 700, "the tightest of sixteen is {width} ns wide");
    }
    // The moments that every interval carries, for nothing.
    for one in &file.intervals {
        let (start, end) = (fit.host_ns(one.is.start), fit.host_ns(one.is.end));
        assert!(start + fit.bound_ns(one.is.start) >= one.ticks.0 as f64, "not before its launch");
        assert!(end - fit.bound_ns(one.is.end) <= one.is.seen.0 as f64, "not after it was seen");
    }
}
}

fake_test! {
fn the_tightest_of_the_readings_is_kept(fake) on Setup::manual().with("FAKECU_CALL_NS", 100); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    // All but the fifth of eight, behind the one that waits.
    for round in (2..=9).filter(|&round| round != 6) {
        fake.slow_down(c"cuEventQuery", round, 50_000);
    }
    let reading = timer.calibrate(8, Duration::from_secs(5)).expect("an idle stream");
    assert!(reading.after.0 - reading.before.0 < 10_000, "{reading:?}");
}
}

fake_test! {
fn nothing_is_calibrated_that_nobody_asked_for(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    drop(timer.interval(&PROBE, PROBE.name("work")));
    device.finish(Duration::ZERO);
    assert!(recording.finish().syncs.is_empty());
}
}

fake_test! {
fn a_busy_stream_is_waited_for_so_long_and_no_longer(fake) on Setup::manual().with("FAKECU_CALL_NS", 100); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    fake.submit(stream, 1_000_000);
    let reading = timer.calibrate(4, Duration::from_secs(60)).expect("it ends soon");
    assert!(reading.after.0 - reading.before.0 < 10_000, "the wait is not in the bracket");
    fake.submit(stream, u64::MAX / 4);
    let busy = timer.calibrate(4, Duration::from_millis(20));
    assert_eq!(busy, Err(CudaError::Busy { waited_ms: 20 }));
    device.finish(Duration::ZERO);
    assert_eq!(recording.finish().syncs.len(), 1);
}
}
