//! Clocks of the application's own, well behaved and not.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use support::read::{File, LEVEL, SCALAR, SPAN};
use tmrun_formats::wire::Frame;
use tmrun_formats::{Level, Ticks};
use tmrun_probe_core::{
    Clock, Level as ProbeLevel, Probe, ProfileRun, measured, probe, scalar, span,
};

macro_rules! clock {
    ($name:ident, $text:literal, $next:expr) => {
        enum $name {}

        impl Clock for $name {
            const NAME: &'static str = $text;

            fn ticks() -> Ticks {
                static READS: AtomicU64 = AtomicU64::new(0);
                let next: fn(u64) -> u64 = $next;
                Ticks(next(READS.fetch_add(1, Ordering::Relaxed)))
            }

            fn ticks_per_second() -> u64 {
                1_000
            }

            fn is_invariant() -> bool {
                false
            }
        }
    };
}

clock!(Hours, "hours", |reads| reads * 3_600_000);
clock!(Stopped, "stopped", |_| 77);
clock!(Backwards, "backwards", |reads| u64::MAX - reads);
clock!(Wrapping, "wrapping", |reads| reads.wrapping_sub(1000));
// Up and down through all 64 bits.
clock!(Jumping, "jumping", |reads| reads.wrapping_mul(0x9e37_79b9_7f4a_7c15));

macro_rules! recorded_by {
    ($clock:ty) => {{
        probe!(static PROBE: lanes = 1, slots = 64; clock = $clock);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.tmrun");
        let run = ProfileRun::training("clocks", 1, "cpu").level(ProbeLevel::TIMING);
        let recording = PROBE.record(&path, run).unwrap();
        for update in 1..=500 {
            let _step = PROBE.step(update);
            let _measured = measured!(PROBE, "update");
            let _forward = span!(PROBE, "forward");
            scalar!(PROBE, "loss", 1.0);
        }
        PROBE.set_level(Level::NUMERICS);
        let summary = recording.finish().unwrap();
        let file = File::finished(&std::fs::read(&path).unwrap());
        assert_eq!(summary.records, file.records.len() as u64);
        let stored = file.stored(0).len() as u64;
        assert_eq!(stored + file.dropped(0, support::read::OVERRUN), 500 * 5);
        assert_eq!(file.of(LEVEL).len(), 2);
        let calibrated = file.frames().iter().any(|f| matches!(f, Frame::Calibration(_)));
        assert!(calibrated, "it is calibrated as it is");
        let Frame::Run(run) = file.frames()[0] else { panic!("the run comes first") };
        assert_eq!((run.clock, run.clock_invariant), (<$clock>::NAME, false));
        file
    }};
}

#[test]
fn a_clock_of_the_applications_own_stamps_the_records() {
    let file = recorded_by!(Hours);
    for span in file.of(SPAN) {
        assert!(span.ticks.is_multiple_of(3_600_000) && span.u64_at(0) > span.ticks);
    }
}

#[test]
fn a_clock_that_stands_still_makes_a_file_all_the_same() {
    let file = recorded_by!(Stopped);
    assert!(file.of(SPAN).iter().all(|span| (span.ticks, span.u64_at(0)) == (77, 77)));
}

#[test]
fn a_clock_that_runs_backwards_makes_a_file_all_the_same() {
    let file = recorded_by!(Backwards);
    assert!(file.of(SPAN).iter().all(|span| span.ticks > span.u64_at(0)));
}

#[test]
fn a_clock_that_wraps_makes_a_file_all_the_same() {
    let probe = Box::new(Probe::<Wrapping, 1, 4096, 16>::new());
    let lane = probe.view().claim("a").unwrap();
    let drain = support::start(probe.view(), support::Memory::default(), Level::TIMING);
    (0..1000).for_each(|_| drop(span!(lane, "forward")));
    let (summary, file) = support::finish(drain);
    let spans = file.of(SPAN);
    assert_eq!((spans.len(), summary.dropped), (1000, 0));
    assert!(spans[0].ticks > u64::MAX - 1000, "before the end of its 64 bits");
    assert!(spans[999].u64_at(0) < 2000, "and behind it");
    assert!(spans.iter().all(|span| span.u64_at(0).wrapping_sub(span.ticks) == 1));
}

#[test]
fn a_clock_that_jumps_over_all_there_is_makes_a_file_all_the_same() {
    let file = recorded_by!(Jumping);
    let samples = file.frames().into_iter().filter(|f| matches!(f, Frame::Calibration(_))).count();
    assert!(samples >= 2);
}

#[test]
fn the_clock_of_the_target_moves_forward() {
    probe!(static PROBE);
    let lane = PROBE.claim("a").unwrap();
    let first = lane.recorder().now();
    let later = (0..1000).fold(first, |_, _| lane.recorder().now());
    assert!(first < later);
    assert!(tmrun_probe_core::AutoClock::ticks_per_second() > 1_000_000);
}

/// A clock that takes a call: what is on the way of every record otherwise must not be asked.
enum Slow {}

static READS: AtomicU64 = AtomicU64::new(0);

impl Clock for Slow {
    const NAME: &'static str = "slow";

    fn ticks() -> Ticks {
        Ticks(READS.fetch_add(1, Ordering::Relaxed))
    }

    fn is_quick() -> bool {
        false
    }

    fn quick_ticks() -> Ticks {
        Ticks(u64::MAX)
    }

    fn ticks_per_second() -> u64 {
        1_000
    }
}

#[test]
fn spans_by_a_clock_that_takes_a_call_are_those_of_any_other() {
    static PROBE: Probe<Slow, 1, 64, 16> = Probe::new();
    let lane = PROBE.view().claim("a").unwrap();
    let mut drain = support::start(PROBE.view(), support::Memory::default(), Level::TIMING);
    for _ in 0..100 {
        let _outer = span!(lane, "outer");
        let first = span!(lane, "first");
        let second = span!(lane, "second");
        drop(first); // not the innermost
        scalar!(lane, "value", 1.0);
        drop(second);
        support::poll(&mut drain);
    }
    let (summary, file) = support::finish(drain);
    let spans = file.of(SPAN);
    assert_eq!((spans.len(), summary.dropped), (300, 0));
    for of_a_turn in spans.chunks(3) {
        let [first, second, outer] = of_a_turn else { panic!("three each") };
        assert_eq!(file.name(outer), "outer");
        assert_eq!((first.u64_at(8), second.u64_at(8)), (outer.span_id(), first.span_id()));
        assert!(outer.ticks < first.ticks && first.ticks < second.ticks);
        assert!(second.ticks < first.u64_at(0) && first.u64_at(0) < second.u64_at(0));
        assert!(second.u64_at(0) < outer.u64_at(0) && outer.u64_at(0) < u64::MAX);
    }
    let inside: Vec<_> = file.of(SCALAR).iter().map(|scalar| scalar.span).collect();
    let second: Vec<_> = spans.chunks(3).map(|turn| turn[1].span_id() as u32).collect();
    assert_eq!(inside, second, "what is recorded is in the innermost span that is open");
}
