//! What timing an interval does, and what it does not.

use std::time::Duration;

use tmrun_probe_core::{Level, span};
use tmrun_probe_cuda::{CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, allocations, fake_test};

fake_test! {
fn an_interval_is_stream_time_between_its_two_points(fake) on Setup::manual(); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let (forward, lane) = (PROBE.name("forward"), PROBE.at(Level::PULSE, |lane| lane.lane()));
    fake.advance(1_000);
    let span = span!(PROBE, "submit");
    let launched = PROBE.at(Level::PULSE, |lane| lane.open_span()).expect("a lane");
    let interval = timer.interval(&PROBE, forward);
    fake.submit(stream, 5_000_000);
    drop(interval);
    drop(span);
    assert_eq!(device.poll().recorded, 0, "the device is not done");
    fake.advance(5_000_000);
    assert_eq!(device.poll().recorded, 1);
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.missing()), (1, 1, 0));
    recording.poll();
    let file = recording.finish();
    let [interval] = file.intervals[..] else { panic!("{:?}", file.intervals) };
    assert_eq!(interval.is.end - interval.is.start, 5_000_000);
    assert_eq!(interval.name, forward);
    assert_eq!((interval.ticks.0, interval.is.seen.0), (1_000, 5_001_000));
    assert_eq!(Some(interval.is.lane), lane);
    assert_eq!(u64::from(interval.is.span), launched.0);
    assert!(file.gaps.is_empty(), "{:?}", file.gaps);
}
}

fake_test! {
fn each_end_of_an_interval_calls_the_driver_as_often_as_is_said(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    let name = PROBE.name("work");
    for (settings, calls) in [
        (TimerSettings::default(), 2),
        (TimerSettings::default().without_graphs(), 1),
    ] {
        // SAFETY: the stream lives as long as the process.
        let timer = unsafe { device.timer_of(stream.raw(), settings) }.expect("a timer");
        let before = fake.all_calls();
        let records = fake.calls(c"cuEventRecord");
        let asked = fake.calls(c"cuStreamIsCapturing");
        let interval = timer.interval(&PROBE, name);
        assert_eq!(fake.all_calls() - before, calls, "the beginning");
        drop(interval);
        assert_eq!(fake.all_calls() - before, 2 * calls, "both ends");
        assert_eq!(fake.calls(c"cuEventRecord") - records, 2);
        assert_eq!(fake.calls(c"cuStreamIsCapturing") - asked, 2 * (calls - 1));
    }
}
}

fake_test! {
fn timing_allocates_nothing_and_changes_no_context(fake) on Setup::manual(); {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let name = PROBE.name("work");
    PROBE.at(Level::PULSE, |_| ()); // a lane for this thread
    let context = fake.current_context();
    let changes = fake.calls(c"cuCtxSetCurrent");
    let mut total = 0;
    for round in 0..100 {
        total += allocations::during(|| {
            for _ in 0..200 {
                let _outer = timer.interval(&PROBE, name);
                let _inner = timer.interval(&PROBE, name);
            }
        });
        assert_eq!(fake.calls(c"cuCtxSetCurrent"), changes, "in round {round}");
        fake.advance(1_000);
        device.poll();
        recording.poll();
    }
    assert_eq!(total, 0, "allocations of 40,000 intervals, of which some found no event");
    assert_eq!(fake.current_context(), context);
    let counts = device.finish(Duration::ZERO);
    assert_eq!(counts.attempted, 40_000);
    assert_eq!(counts.recorded + counts.pool_exhausted, 40_000);
    assert!(counts.pool_exhausted > 0 && counts.recorded > 20_000, "{counts:?}");
}
}

fake_test! {
fn a_level_that_asks_for_no_timing_calls_no_driver(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::PULSE);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let before = fake.all_calls();
    assert!(!timer.interval(&PROBE, PROBE.name("work")).is_timed());
    device.poll();
    assert_eq!(fake.all_calls(), before);
    assert_eq!(device.finish(Duration::ZERO).attempted, 0);
}
}

fake_test! {
fn a_focus_times_its_nodes_and_no_others(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::PULSE);
    PROBE.set_focus("layers.3.**", Level::TIMING).expect("a place for it");
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let (inside, outside) = (PROBE.name("layers.3.attn"), PROBE.name("layers.4.attn"));
    assert!(timer.interval(&PROBE, inside).is_timed());
    assert!(!timer.interval(&PROBE, outside).is_timed());
    assert_eq!(device.finish(Duration::ZERO).attempted, 1);
    assert_eq!(recording.finish().intervals.len(), 1);
}
}

fake_test! {
fn intervals_within_one_another_are_told_whole(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let (outer, inner) = (PROBE.name("step"), PROBE.name("layer"));
    {
        let _step = timer.interval(&PROBE, outer);
        for _ in 0..3 {
            let _layer = timer.interval(&PROBE, inner);
            fake.submit(stream, 1_000_000);
        }
    }
    fake.advance(3_000_000);
    device.finish(Duration::ZERO);
    let file = recording.finish();
    let [a, b, c, step] = file.intervals[..] else { panic!("{:?}", file.intervals) };
    assert_eq!((step.name, step.is.start, step.is.end), (outer, a.is.start, c.is.end));
    assert_eq!(a.is.end, b.is.start);
    assert!([a, b, c].iter().all(|layer| layer.is.end - layer.is.start == 1_000_000));
}
}

fake_test! {
fn without_a_free_event_the_interval_is_a_gap_and_nothing_waits(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(4)) };
    let timer = timer.expect("a timer");
    for _ in 0..10 {
        fake.advance(10);
        let _interval = timer.interval(&PROBE, PROBE.name("work"));
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.pool_exhausted), (10, 4, 6));
    let file = recording.finish();
    let [(_, gap)] = file.gaps[..] else { panic!("{:?}", file.gaps) };
    assert_eq!(gap.reason, tmrun_formats::GapReason::POOL_EXHAUSTED);
    assert_eq!((gap.records, gap.first.0, gap.last.0), (6, 50, 100));
    assert_eq!(gap.planes, tmrun_formats::Planes::DEVICE_TIMING);
}
}
