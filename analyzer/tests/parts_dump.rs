//! What makes the last files of a recording stay, and which those are. Files end by their size; how
//! old they are and how long steps last is as a clock of the test's own says, so nothing depends on how
//! fast the tests run.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tmrun::scan::{Recording, Status};
use tmrun_formats::{NameId, Ticks, parts};
use tmrun_probe_core::{
    Clock, DumpOn, GradientState, Lane, Level, Probe, ProbeRef, ProfileRun, Range, Stats, Target,
    TensorFact,
};

/// A clock for each test, which stands still unless it is moved; a tick is a millisecond.
#[derive(Debug)]
enum Own<const TEST: usize> {}

static NOW: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];

impl<const TEST: usize> Clock for Own<TEST> {
    const NAME: &'static str = "own";

    fn ticks() -> Ticks {
        Ticks(NOW[TEST].load(Ordering::Relaxed))
    }

    fn ticks_per_second() -> u64 {
        1000
    }
}

/// A mebibyte of records: files end there.
const A_FILE: u64 = 1 << 14;
/// So many seconds each of them is of; no file ends because of its age.
const LASTS: u64 = 1000;

// Rings that hold more than a file: nothing is dropped.
type OneLane<const TEST: usize> = Probe<Own<TEST>, 1, { 2 * A_FILE as usize }, 16>;

/// A run that keeps two files and a half of the time before.
fn run(on: DumpOn) -> ProfileRun {
    let run = ProfileRun::training("example", 1, "cpu").level(Level::NUMERICS);
    run.dump_on(on).keep_seconds(LASTS * 5 / 2)
}

/// What of such a run is there while a file is written: it, and those before it that ended within two
/// files and a half.
fn around(file: u64) -> RangeInclusive<u64> {
    file - 3..=file
}

/// The files that stay of a run of so many. `begin` is called when a file has begun, and what it
/// records is in that one.
fn record<const TEST: usize>(
    probe: ProbeRef<'static, Own<TEST>>,
    run: ProfileRun,
    files: u64,
    mut begin: impl FnMut(u64, &Lane<'_, Own<TEST>>),
) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let first = folder.path().join("run.tmrun");
    let run = run.max_file(A_FILE * 64);
    NOW[TEST].store(LASTS * 1000, Ordering::Relaxed);
    let recording = probe.record(&first, run).expect("it starts");
    let lane = probe.claim("loop").expect("a lane");
    for number in 1..=files {
        wait_for(&parts::path(&first, number));
        begin(number, &lane);
        if number < files {
            NOW[TEST].store((number + 1) * LASTS * 1000, Ordering::Relaxed);
            (0..A_FILE).for_each(|i| lane.recorder().scalar(NameId::NONE, i as f64));
        }
    }
    recording.finish().expect("it ends");
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for number in 1..=files {
        let Ok(file) = std::fs::read(parts::path(&first, number)) else {
            removed.push(number);
            continue;
        };
        let recording = Recording::open(&file, "file").expect("a header");
        assert_eq!(recording.verify(), [], "file {number}");
        assert_eq!(recording.status(), Status::Finished, "file {number}");
        assert_eq!(recording.lost().count(), 0, "file {number}: {:?}", recording.gaps());
        assert_eq!(recording.meta().part.map(|part| part.number), Some(number));
        kept.push(number);
        if number == files {
            let told = recording.meta().removed.values();
            assert!(told.flat_map(|told| told.first..=told.last).eq(removed.iter().copied()));
        }
    }
    assert!(!parts::path(&first, files + 1).exists());
    kept
}

/// Waits until the recording goes on in this file: what is recorded from then on is in it. When its
/// first record is there, which tells the level, those are removed that do not stay.
fn wait_for(path: &Path) {
    let has_begun = |file: Vec<u8>| {
        let recording = Recording::open_damaged(&file, "begun", &|_| ());
        recording.is_ok_and(|recording| recording.record_chunks().next().is_some())
    };
    while !std::fs::read(path).is_ok_and(has_begun) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Steps that take so long, in milliseconds.
fn steps<const TEST: usize>(
    lane: &Lane<'_, Own<TEST>>,
    number: &mut u64,
    took: impl IntoIterator<Item = u64>,
) {
    for took in took {
        *number += 1;
        let _step = lane.step(*number);
        NOW[TEST].fetch_add(took, Ordering::Relaxed);
    }
}

#[test]
fn the_files_around_a_step_that_takes_longer_stay_and_of_one_that_takes_just_as_long_they_do_not() {
    static PROBE: OneLane<0> = Probe::new();
    let on = DumpOn::step_longer_than(Duration::from_millis(50));
    let mut number = 0;
    let kept = record(PROBE.view(), run(on), 11, |file, lane| {
        // Nothing has to be learnt: the first step of all may be one. What passes between two steps
        // is of none.
        let longer = file == 1 || file == 6;
        steps(lane, &mut number, [10, if longer { 51 } else { 50 }, 0, 10]);
    });
    assert_eq!(kept, [1, 3, 4, 5, 6, 8, 9, 10, 11]);
}

#[test]
fn the_files_around_a_slow_step_stay_unless_it_is_one_of_the_first_eight() {
    static PROBE: OneLane<1> = Probe::new();
    let mut number = 0;
    let kept = record(PROBE.view(), run(DumpOn::slow_step(3)), 16, |file, lane| {
        match file {
            // The last of the eight is slow, and only learnt from: usual are then 14.
            1 => steps(lane, &mut number, [10, 10, 10, 10, 10, 10, 10, 40]),
            // The ninth is one.
            6 => steps(lane, &mut number, [60]),
            11 => steps(lane, &mut number, [10, 10, 10, 10, 100, 10]),
            _ => {}
        }
    });
    assert!(kept.into_iter().eq([6, 11, 16].into_iter().flat_map(around)));
}

#[test]
fn without_a_slow_step_only_the_newest_files_stay_whatever_is_usual() {
    static PROBE: OneLane<2> = Probe::new();
    let (mut number, mut usual) = (0, 100);
    let kept = record(PROBE.view(), run(DumpOn::slow_step(2)), 7, |_, lane| {
        // In the end a step takes many times as long as at first, but no more than those before it.
        for _ in 0..20 {
            steps(lane, &mut number, [usual, usual / 2]);
            usual += usual / 32;
        }
    });
    assert!(usual > 1000);
    assert!(kept.into_iter().eq(around(7)));
}

#[test]
fn the_files_around_statistics_and_gradients_that_are_not_finite_stay() {
    static PROBE: OneLane<3> = Probe::new();
    let finite = Stats { count: 4, rms: 1.0, abs_max: f64::MAX, mean: 1.0, ..Stats::default() };
    let range = Range { min: -1.0, max: f64::MAX, zeros: 1, saturated: 1, ..Range::default() };
    let with_nan = Stats { nan: 1, ..finite };
    let with_inf = Stats { inf: 1, ..finite };
    let open = Range { positive_inf: 1, non_finite: 1, ..range };
    let overflown = Stats { rms: f64::INFINITY, ..finite };
    let node = PROBE.view().name("node");
    let kept = record(PROBE.view(), run(DumpOn::not_finite()), 40, |file, lane| {
        let put = |stats: &Stats, range: Option<&Range>| {
            lane.recorder().stats(node, &TensorFact::default(), true, stats, range);
        };
        put(&finite, Some(&range));
        lane.recorder().range(node, &range);
        let gradient = |state, norm| lane.recorder().gradient(node, node, state, norm);
        gradient(GradientState::PRESENT, Some(f64::MAX));
        gradient(GradientState::MISSING, None);
        match file {
            5 => put(&with_nan, None),
            10 => put(&with_inf, Some(&range)),
            // As the second half of statistics, and alone.
            15 => put(&finite, Some(&open)),
            20 => lane.recorder().range(node, &open),
            25 => put(&overflown, None),
            30 => gradient(GradientState::NON_FINITE, None),
            35 => gradient(GradientState::PRESENT, Some(f64::NAN)),
            _ => {}
        }
    });
    let all = (5..=40).step_by(5).flat_map(around);
    assert_eq!(kept, all.collect::<Vec<_>>());
}

#[test]
fn the_last_seconds_stay_in_however_many_files_and_with_them_the_first_and_the_last() {
    static PROBE: OneLane<4> = Probe::new();
    let kept = |seconds, more: fn(ProfileRun) -> ProfileRun| {
        let run = more(run(DumpOn::not_finite()).keep_seconds(seconds));
        record(PROBE.view(), run, 9, |_, _| ())
    };
    let (few, many) = (LASTS / 2, LASTS * 13 / 2);
    assert_eq!(kept(few, |run| run), [8, 9]);
    assert_eq!(kept(many, |run| run), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(kept(many, |run| run.keep_last(1)), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(kept(few, |run| run.keep_last(4)), [6, 7, 8, 9]);
    assert_eq!(kept(few, |run| run.keep_first(2)), [1, 2, 8, 9]);
    assert_eq!(kept(few, |run| run.keep_first(1).keep_last(3)), [1, 7, 8, 9]);
}
