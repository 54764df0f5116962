//! Captures and graphs: nothing is broken, and nothing is told of what was not measured.

use std::sync::mpsc::channel;
use std::time::Duration;

use tmrun_formats::GapReason;
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaError, CudaProbe, TimerSettings};

use crate::support::simulated::AppStream;
use crate::support::{PROBE, Recording, Setup, Simulated, fake_test};

const GLOBAL: u32 = 0;
const MODES: [(u32, &str); 3] = [(GLOBAL, "global"), (1, "thread-local"), (2, "relaxed")];

fake_test! {
fn what_is_timed_within_a_capture_is_a_gap_and_the_capture_holds(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let name = PROBE.name("work");
    for (mode, what) in MODES {
        drop(timer.interval(&PROBE, name));
        fake.begin_capture(stream, mode);
        assert!(!timer.interval(&PROBE, name).is_timed(), "{what}");
        device.poll();
        assert!(fake.end_capture(stream).is_ok(), "{what}");
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.graph_capture), (6, 3, 3));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 3);
}
}

fake_test! {
fn an_interval_that_ends_within_a_capture_is_a_gap(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(4)) };
    let timer = timer.expect("a timer");
    for _ in 0..20 {
        let interval = timer.interval(&PROBE, PROBE.name("work"));
        assert!(interval.is_timed(), "the events of the one before are free again");
        fake.begin_capture(stream, GLOBAL);
        drop(interval);
        assert!(fake.end_capture(stream).is_ok());
        device.poll();
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.graph_capture), (20, 0, 20));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 20);
}
}

fake_test! {
fn the_drain_breaks_no_capture_of_another_thread(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let (timed, captured) = (fake.stream(), fake.stream());
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(timed.raw(), TimerSettings::default()) }.expect("a timer");
    for (mode, what) in MODES {
        drop(timer.interval(&PROBE, PROBE.name("work")));
        fake.begin_capture(captured, mode);
        let drained = std::thread::scope(|scope| {
            scope.spawn(|| device.poll().recorded).join().expect("the drain")
        });
        assert_eq!(drained, 1, "{what}");
        drop(timer.interval(&PROBE, PROBE.name("work")));
        assert_eq!(device.poll().recorded, 1, "on the capturing thread, {what}");
        assert!(fake.end_capture(captured).is_ok(), "{what}");
    }
}
}

fake_test! {
fn a_capture_that_is_not_looked_for_is_found_out_by_the_drain(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    let settings = TimerSettings::default().without_graphs();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), settings) }.expect("a timer");
    fake.begin_capture(stream, GLOBAL);
    drop(timer.interval(&PROBE, PROBE.name("work")));
    assert!(fake.end_capture(stream).is_ok());
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.graph_capture), (1, 1));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 1);
}
}

fake_test! {
fn a_capture_that_is_not_looked_for_holds_while_the_drain_reads(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let settings = TimerSettings::default().without_graphs();
    for (mode, what) in MODES {
        for stream in [fake.stream(), AppStream::PER_THREAD] {
            // SAFETY: the stream lives as long as the process.
            let timer = unsafe { device.timer_of(stream.raw(), settings) }.expect("a timer");
            fake.begin_capture(stream, mode);
            drop(timer.interval(&PROBE, PROBE.name("work")));
            assert_eq!(device.poll().recorded, 0, "{what}");
            assert!(fake.end_capture(stream).is_ok(), "{what}");
            device.poll();
            // And where the timer goes while the capture runs.
            fake.begin_capture(stream, mode);
            drop(timer.interval(&PROBE, PROBE.name("work")));
            drop(timer);
            assert_eq!(device.poll().waiting, 0, "{what}");
            assert!(fake.end_capture(stream).is_ok(), "{what}");
        }
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.graph_capture), (12, 12));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 12);
}
}

fake_test! {
fn a_launch_of_a_graph_within_a_capture_leaves_that_capture_whole(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    for stream in [fake.stream(), AppStream::PER_THREAD] {
        // SAFETY: the stream lives as long as the process.
        let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
        let (work, graph) = captured(fake, stream, &timer);
        fake.begin_capture(stream, GLOBAL);
        replay(fake, &work, graph, stream);
        assert_eq!(device.poll().recorded, 0);
        assert!(fake.end_capture(stream).is_ok());
        device.poll();
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.graph_capture), (2, 2));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 2);
}
}

/// A graph of three milliseconds' work, of which the interval has the last two.
fn captured<'t>(
    fake: &Simulated,
    stream: AppStream,
    timer: &'t tmrun_probe_cuda::Timer<crate::support::SimulatedClock>,
) -> (
    tmrun_probe_cuda::GraphInterval<'t, crate::support::SimulatedClock>,
    crate::support::simulated::Graph,
) {
    let work = timer.graph_interval(PROBE.name("decode")).expect("an interval of a graph");
    fake.begin_capture(stream, GLOBAL);
    fake.submit(stream, 1_000_000);
    work.begin().expect("the beginning is captured");
    fake.submit(stream, 2_000_000);
    work.end().expect("the end is captured");
    (work, fake.end_capture(stream).expect("the capture holds"))
}

fn replay(
    fake: &Simulated,
    work: &tmrun_probe_cuda::GraphInterval<'_, crate::support::SimulatedClock>,
    graph: crate::support::simulated::Graph,
    stream: AppStream,
) {
    let launched: Result<(), ()> = work.replay(&PROBE, || {
        fake.launch(graph, stream);
        Ok(())
    });
    assert!(launched.is_ok());
}

fake_test! {
fn a_launch_that_was_refused_is_no_interval_and_no_second_reading_of_the_one_before(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let (work, graph) = captured(fake, stream, &timer);
    replay(fake, &work, graph, stream);
    fake.advance(9_000_000);
    assert_eq!(device.poll().recorded, 1);
    assert_eq!(work.replay(&PROBE, || Err::<(), _>("no memory")), Err("no memory"));
    fake.advance(9_000_000);
    assert_eq!(device.poll().recorded, 0);
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.driver_error), (2, 1, 1));
    assert_eq!(recording.finish().missing(GapReason::DRIVER_ERROR), 1);
}
}

fake_test! {
fn every_launch_of_a_graph_is_an_interval(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default().intervals(8)) };
    let timer = timer.expect("a timer");
    let (work, graph) = captured(fake, stream, &timer);
    for launch in 0..50 {
        let before = fake.all_calls();
        replay(fake, &work, graph, stream);
        assert_eq!(fake.all_calls() - before, 2, "the launch, and one record");
        assert_eq!(device.poll().recorded, 0, "launch {launch} is not done");
        fake.advance(3_000_000 + launch);
        assert_eq!(device.poll().recorded, 1, "launch {launch}");
    }
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.missing()), (50, 50, 0));
    let file = recording.finish();
    assert!(file.intervals.iter().all(|one| one.is.end - one.is.start == 2_000_000));
    let starts = file.intervals.windows(2).map(|two| two[1].is.start - two[0].is.start);
    assert!((0..).zip(starts).all(|(launch, apart)| apart == 3_000_000 + launch));
}
}

fake_test! {
fn a_launch_whose_stamps_were_overwritten_is_a_gap(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let (work, graph) = captured(fake, stream, &timer);
    for _ in 0..3 {
        replay(fake, &work, graph, stream);
    }
    fake.advance(9_000_000);
    let counts = device.finish(Duration::ZERO);
    assert_eq!((counts.attempted, counts.recorded, counts.graph_capture), (3, 1, 2));
    assert_eq!(recording.finish().missing(GapReason::GRAPH_CAPTURE), 2);
}
}

fake_test! {
fn setting_up_is_refused_within_a_capture(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let early = timer.graph_interval(PROBE.name("decode")).expect("before the capture");
    assert!(early.begin().is_err(), "outside of a capture there is no node to make");
    fake.begin_capture(stream, GLOBAL);
    assert_eq!(timer.graph_interval(PROBE.name("decode")).err(), Some(CudaError::Capturing));
    assert_eq!(timer.calibrate(1, Duration::from_secs(1)), Err(CudaError::Capturing));
    assert!(fake.end_capture(stream).is_ok(), "and asking broke nothing");
}
}

fake_test! {
fn a_thread_that_asks_in_the_default_mode_would_break_a_capture(fake) on Setup::manual(); {
    // What the others rest on: the simulation does break what a careless drain would.
    fake.start(0);
    let stream = fake.stream();
    fake.begin_capture(stream, GLOBAL);
    let (asked, answer) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| asked.send(fake.query_nothing()).expect("the answer is waited for"));
    });
    assert_eq!(answer.recv(), Ok(900));
    assert_eq!(fake.end_capture(stream).err(), Some(901));
}
}
