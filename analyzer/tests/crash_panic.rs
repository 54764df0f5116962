//! An application's clock that panics on the recorder's thread: the program goes on, is told of it, and
//! what the recorder had not written is in the rings.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use support::command::tmrun;
use support::dying::rings;
use support::slots;
use tmrun::scan::{Recording, Status};
use tmrun_formats::rings::RingsHeader;
use tmrun_formats::wire::Scalar;
use tmrun_formats::{GapReason, LaneId, NameId, Ticks};
use tmrun_probe_core::{Clock, ProfileRun, RecordError, probe, scalar};

const SLOTS: u64 = 1 << 10;

probe!(static PROBE: lanes = 2, slots = SLOTS as usize; clock = Failing);

/// A clock that, once it is told to, stops the recorder's thread, and then panics on it.
enum Failing {}

const FINE: u8 = 0;
const STOP: u8 = 1;
const STOPPED: u8 = 2;
const PANIC: u8 = 3;
static STATE: AtomicU8 = AtomicU8::new(FINE);

fn wait_until(state: u8) {
    while STATE.load(Ordering::SeqCst) != state {
        std::thread::yield_now();
    }
}

impl Clock for Failing {
    const NAME: &'static str = "failing";

    fn ticks() -> Ticks {
        static NOW: AtomicU64 = AtomicU64::new(1);
        let of_recorder = || std::thread::current().name() == Some("tmrun recorder");
        let stop = || STATE.compare_exchange(STOP, STOPPED, Ordering::SeqCst, Ordering::SeqCst);
        if STATE.load(Ordering::SeqCst) == STOP && of_recorder() && stop().is_ok() {
            wait_until(PANIC);
            panic!("the clock is gone");
        }
        Ticks(NOW.fetch_add(1, Ordering::Relaxed))
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}

#[test]
fn what_was_recorded_outlives_a_panic_of_the_recorders_thread() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("run.tmrun");
    let run = || ProfileRun::training("panics", 1, "cpu");
    let recording = PROBE.record(&path, run().rings_in(dir.path().join("rings")));
    let recording = recording.expect("it starts");
    let lane = PROBE.claim("loop").expect("a lane");
    (0..300).for_each(|i| scalar!(lane, "value", f64::from(i)));
    STATE.store(STOP, Ordering::SeqCst);
    wait_until(STOPPED);
    // Nobody takes these any more.
    (300..500).for_each(|i| scalar!(lane, "value", f64::from(i)));
    STATE.store(PANIC, Ordering::SeqCst);
    let error = recording.finish().expect_err("the thread panicked");
    assert!(matches!(error, RecordError::Thread { .. }), "{error:?}");
    let (rings, said) = (rings(dir.path()), error.to_string());
    for part in ["panicked", "the file ends where it was", "salvage", &rings.to_string_lossy()] {
        assert!(said.contains(part), "{part}: {said}");
    }

    // From then on a site records nothing; what asks no site is stored while there is room.
    assert_eq!(PROBE.level(), None);
    scalar!(lane, "value", 1e9);
    let attempted = 500 + 2 * SLOTS;
    (500..attempted).for_each(|i| lane.recorder().scalar(NameId::NONE, i as f64));

    let left = std::fs::read(&rings).expect("they are there");
    let published = RingsHeader::decode(&left).expect("a header").block(&left, LaneId(0)).published;
    assert!((500 + 1..=500 + SLOTS).contains(&published), "{published}");
    for of in [&rings, &path] {
        let out = dir.path().join("whole.tmrun");
        let (of, to) = (of.to_string_lossy(), out.to_string_lossy());
        let output = tmrun(&["salvage", &of, "--force", "-o", &to]);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
        let bytes = std::fs::read(&out).expect("the result");
        let whole = Recording::open(&bytes, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        assert_eq!(whole.status(), Status::Finished);
        slots::all_in(&left, &whole);
        let records = whole.record_chunks().filter(|chunk| chunk.lane() == LaneId(0));
        let records = records.flat_map(|chunk| chunk.records().to_vec());
        let values = records.filter_map(|record| Some(record.payload::<Scalar>()?.value as u64));
        assert_eq!(values.collect::<Vec<_>>(), (0..published).collect::<Vec<_>>());
        let lost: Vec<_> = whole.lost().map(|gap| (gap.lane, gap.reason, gap.records)).collect();
        let dropped = attempted - published;
        assert_eq!(lost, [(Some(LaneId(0)), GapReason::OVERRUN, dropped)], "the loss has a name");
        let reason = whole.meta().terminal.and_then(|terminal| terminal.reason);
        assert!(reason.is_some_and(|reason| reason.contains("a snapshot; process")));
    }

    // The next recording has rings of its own, which go when it ends well.
    let next = PROBE.record(dir.path().join("next.tmrun"), run().rings_in(dir.path().join("more")));
    let next = next.expect("it starts");
    scalar!(lane, "value", 1.0);
    next.finish().expect("it ends");
    assert_eq!(std::fs::read_dir(dir.path().join("more")).expect("a folder").count(), 0);
    assert!(std::fs::read(&rings).expect("they are still there") == left);
}
