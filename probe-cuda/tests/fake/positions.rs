//! Where intervals lie on the device's clock, hours into a run.

use std::time::Duration;

use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaCounts, CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, Simulated, fake_test};

const HOUR_NS: u64 = 3_600_000_000_000;

/// A run of one interval after the other, each of which takes what `length` says, for so long.
struct Run {
    /// The most by which a position is off, the first one taken as right.
    worst_position: u64,
    /// The same of a length.
    worst_length: u64,
    counts: CudaCounts,
}

fn run(fake: &Simulated, long: u64, quantum: u64, length: impl Fn(u64) -> u64) -> Run {
    fake.start(0);
    let mut recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer =
        unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let name = PROBE.name("step");
    let (mut truth, mut taken) = (Vec::new(), 0);
    let stamp = |ns: u64| ns.div_ceil(quantum) * quantum;
    for step in 0.. {
        let began = fake.end_of(stream).max(fake.device_now());
        {
            let _interval = timer.interval(&PROBE, name);
            fake.submit(stream, length(step));
        }
        truth.push((stamp(began), stamp(fake.end_of(stream))));
        fake.advance(length(step));
        taken += length(step);
        if step % 256 == 0 {
            fake.advance(quantum);
            device.poll();
            recording.poll();
        } else if step % 16 == 0 {
            device.poll();
        }
        if taken > long {
            break;
        }
    }
    fake.advance(quantum);
    let counts = device.finish(Duration::ZERO);
    let file = recording.finish();
    assert_eq!(file.intervals.len(), truth.len(), "{counts:?}");
    let origin = file.intervals[0].is.end - truth[0].1;
    let pairs = file.intervals.iter().zip(&truth);
    let (mut worst_position, mut worst_length) = (0, 0);
    for (interval, (begin, end)) in pairs {
        worst_position = worst_position.max((interval.is.end - origin).abs_diff(*end));
        let length = interval.is.end - interval.is.start;
        worst_length = worst_length.max(length.abs_diff(end - begin));
    }
    Run { worst_position, worst_length, counts }
}

fake_test! {
fn after_hours_of_irregular_steps_a_position_is_within_two_microseconds(fake) on Setup::manual(); {
    // Stamps of a nanosecond are the worst case: no quantum helps.
    let run = run(fake, 4 * HOUR_NS, 1, |step| 100_000_123 + (step * 7919) % 1000);
    assert!(run.worst_position <= 2_000, "{} ns", run.worst_position);
    assert!(run.worst_length <= 4, "{} ns", run.worst_length);
    assert!(run.worst_position as f64 <= run.counts.position_error_ns, "the bound holds");
}
}

fake_test! {
fn stamps_of_a_quantum_are_told_exactly_for_hours(fake) on Setup::manual().with("FAKECU_RES_NS", 500); {
    let run = run(fake, 4 * HOUR_NS, 500, |step| 100_000_123 + (step * 7919) % 100_000);
    assert_eq!(run.counts.stamp_quantum_ns, Some(500));
    // Until the quantum is known a few distances are as a float tells them.
    assert!(run.worst_position <= 500, "{} ns", run.worst_position);
    assert!(run.worst_length <= 4, "{} ns", run.worst_length);
}
}

fake_test! {
fn steps_of_about_one_length_do_not_add_up_their_error_where_stamps_have_a_quantum(fake) on Setup::manual().with("FAKECU_RES_NS", 32); {
    // What the float leaves out is much the same of every distance.
    let run = run(fake, 4 * HOUR_NS, 32, |step| 99_999_968 + 32 * ((step * 7919) % 101));
    assert!(run.worst_position <= 500, "{} ns", run.worst_position);
}
}

fake_test! {
fn where_events_are_dense_every_nanosecond_is_told(fake) on Setup::manual(); {
    let run = run(fake, HOUR_NS / 6, 1, |step| 2_500_001 + (step * 7919) % 100_003);
    assert_eq!((run.worst_position, run.worst_length), (0, 0));
    assert_eq!(run.counts.position_error_ns, 0.0);
}
}

fake_test! {
fn what_cannot_be_told_is_in_the_bound(fake) on Setup::manual(); {
    // One length, no quantum, and far apart: the error adds up, and is stated.
    let run = run(fake, 4 * HOUR_NS, 1, |_| 100_000_123);
    assert!(run.worst_position as f64 <= run.counts.position_error_ns);
    assert!(run.counts.position_error_ns < 1_000_000.0, "less than a tenth of a millionth");
}
}

fake_test! {
fn all_streams_of_a_device_have_one_clock(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let streams = [fake.stream(), fake.stream()];
    // SAFETY: the streams live as long as the process.
    let timers = streams.map(|stream| unsafe { device.timer_of(stream.raw(), TimerSettings::default()) });
    let timers = timers.map(|timer| timer.expect("a timer"));
    // The second begins before the first, and is read after it.
    let name = PROBE.name("work");
    let early = timers[1].interval(&PROBE, name);
    fake.submit(streams[1], 3_000);
    drop(early);
    fake.advance(1_000);
    let late = timers[0].interval(&PROBE, name);
    fake.submit(streams[0], 500);
    drop(late);
    fake.advance(10_000);
    device.finish(Duration::ZERO);
    let file = recording.finish();
    let [first, second] = file.intervals[..] else { panic!("{:?}", file.intervals) };
    assert_ne!(first.is.stream, second.is.stream);
    assert_eq!(first.is.start - second.is.start, 1_000);
    assert_eq!(second.is.end - first.is.end, 1_500);
    assert_eq!(first.is.clock, second.is.clock);
}
}

fake_test! {
fn two_devices_have_two_clocks(fake) on Setup::manual().with("FAKECU_DEVICES", 2); {
    let recording = Recording::start(Level::TIMING);
    let devices = [0, 1].map(|ordinal| {
        fake.start(ordinal);
        let device = CudaProbe::open(*PROBE, ordinal as u32).expect("a device");
        let stream = fake.stream();
        // SAFETY: the stream lives as long as the process.
        let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) };
        let timer = timer.expect("a timer");
        drop(timer.interval(&PROBE, PROBE.name("work")));
        (device, timer)
    });
    for (device, _) in &devices {
        let counts = device.finish(Duration::ZERO);
        assert_eq!((counts.attempted, counts.recorded), (1, 1));
    }
    let file = recording.finish();
    let [one, other] = file.intervals[..] else { panic!("{:?}", file.intervals) };
    assert_ne!((one.is.device, one.is.clock), (other.is.device, other.is.clock));
}
}
