//! Recordings of several files: each is complete, and together they are the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tmrun::salvage::salvage;
use tmrun::scan::{Recording, Status};
use tmrun_formats::wire::{Kind, PartV1, Record, Scalar};
use tmrun_formats::{GapClass, GapReason, LaneId};
use tmrun_probe_core::{AutoClock, Clock, DumpOn, Level, ProfileRun, probe, scalar, span};

// Rings that hold more than is recorded between two files: nothing is dropped.
probe!(static ROTATED: lanes = 2, slots = 1 << 15);
probe!(static LAST: lanes = 2, slots = 1 << 15);
probe!(static NTH: lanes = 2, slots = 1 << 12);
probe!(static DUMPED: lanes = 2, slots = 1 << 12);

/// A mebibyte of records, and what a file says beside them.
const FILE: u64 = 1 << 20;
const A_FILE: u64 = 1 << 14;

fn run() -> ProfileRun {
    ProfileRun::training("example", 1, "cpu").level(Level::TIMING)
}

/// The files of a run that are there, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort_by_key(|path| (path.to_string_lossy().len(), path.clone()));
    files
}

/// Waits until the recording goes on in this file: what is recorded from then on is in it.
fn wait_for(folder: &Path, number: u64) {
    let path = folder.join(format!("run.{number:04}.tmrun"));
    while !std::fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `read` on every file of a run, each of which has to hold.
fn each(folder: &Path, mut read: impl FnMut(&Recording<'_>)) {
    for path in files(folder) {
        let file = std::fs::read(&path).expect("the file");
        let recording = Recording::open(&file, &path.to_string_lossy()).expect("a header");
        assert_eq!(recording.verify(), [], "{path:?}");
        assert_eq!(recording.status(), Status::Finished, "{path:?}");
        assert_eq!(recording.lost().count(), 0, "{path:?}: {:?}", recording.gaps());
        read(&recording);
    }
}

/// The values of the scalars of a file with the steps that they are in.
fn values(recording: &Recording<'_>) -> Vec<(f64, Option<u64>, bool)> {
    let mut values = Vec::new();
    for chunk in recording.record_chunks() {
        let mut state = chunk.step();
        for record in chunk.records() {
            state = state.behind(record, chunk.lane());
            if let Some(scalar) = record.payload::<Scalar>() {
                values.push((scalar.value, state.open.map(|open| open.number), state.sure));
            }
        }
    }
    values
}

#[test]
fn a_run_of_several_files_has_no_hole_and_every_file_says_which_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = ROTATED.record(folder.path().join("run.tmrun"), run().max_file(FILE));
    let recording = recording.expect("it starts");
    let step = ROTATED.step(7);
    let outer = span!(ROTATED, "outer");
    let count = 5 * A_FILE;
    for i in 0..count {
        scalar!(ROTATED, "value", i as f64);
        if (i + 1) % A_FILE == 0 {
            wait_for(folder.path(), (i + 1) / A_FILE + 1);
        }
    }
    drop(outer);
    drop(step);
    let summary = recording.finish().expect("it ends");
    assert_eq!((summary.dropped, summary.left_out), (0, 0));

    let (mut all, mut numbers, mut next, mut records) = (Vec::new(), Vec::new(), 0, 0);
    let mut runs = Vec::new();
    each(folder.path(), |recording| {
        let meta = recording.meta();
        let part: PartV1<'_> = meta.part.expect("it says which it is");
        numbers.push(part.number);
        assert_eq!(part.previous.is_none(), part.number == 1);
        assert_eq!(meta.terminal.is_none(), part.next.is_some(), "only the last one ends the run");
        let mut whole = Vec::new();
        salvage(recording, &mut whole, &|_| ()).expect("memory takes it");
        let whole = Recording::open(&whole, "whole").expect("a header");
        assert_eq!(whole.meta().terminal, meta.terminal, "and salvaging one adds no end");
        runs.push((recording.header().run, meta.run.expect("the run").entrypoint.to_owned()));
        assert_eq!(recording.levels().last(), Some(Level::TIMING));
        let lane = recording.lanes().get(LaneId(0)).expect("the lane");
        assert_eq!(lane.next - lane.records, next, "it goes on where the file before ended");
        next = lane.next;
        assert!(recording.names().iter().any(|name| name.text == "value"));
        records += recording.counts().total();
        all.extend(values(recording));
    });
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert!(files(folder.path())[1].ends_with("run.0002.tmrun"));
    runs.dedup();
    assert_eq!(runs.len(), 1, "one run");
    assert_eq!(records, summary.records);
    assert!(all.iter().map(|value| value.0).eq((0..count).map(|i| i as f64)));
    assert!(all.iter().all(|value| (value.1, value.2) == (Some(7), true)), "all in step 7");
}

#[test]
fn the_first_and_the_last_files_stay_and_the_last_tells_of_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = run().max_file(FILE).keep_first(1).keep_last(2);
    let recording = LAST.record(folder.path().join("run.tmrun"), kept).expect("it starts");
    let count = 8 * A_FILE;
    for i in 0..count {
        scalar!(LAST, "value", i as f64);
        if (i + 1) % A_FILE == 0 {
            wait_for(folder.path(), (i + 1) / A_FILE + 1);
        }
    }
    let summary = recording.finish().expect("it ends");
    let mut last = None;
    let mut records = 0;
    each(folder.path(), |recording| {
        records += recording.counts().total();
        let gaps = recording.gaps().iter().filter(|gap| gap.reason == GapReason::LEFT_OUT);
        let gaps: Vec<_> = gaps.map(|gap| (gap.class, gap.records)).collect();
        let removed: Vec<_> = recording.meta().removed.values().copied().collect();
        last = Some((recording.meta().part.expect("it says").number, removed, gaps));
    });
    assert_eq!(files(folder.path()).len(), 3);
    let (number, removed, gaps) = last.expect("a file");
    assert_eq!(removed.len(), 1);
    assert_eq!((removed[0].first, removed[0].last), (2, number - 2));
    assert_eq!(removed[0].files, number - 3);
    assert_eq!(gaps, [(GapClass::NotRequested, summary.left_out)]);
    assert_eq!(removed[0].records, summary.left_out);
    assert_eq!(records, summary.records);
    // But for the records of the level, one a file.
    assert_eq!(records + summary.left_out, count + number);
}

#[test]
fn of_every_third_step_all_is_kept_and_the_others_are_a_gap_that_was_not_requested() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let recording = NTH.record(&path, run().every_nth_step(3)).expect("it starts");
    for update in 1..=10 {
        let _step = NTH.step(update);
        for _ in 0..5 {
            scalar!(NTH, "value", update as f64);
        }
    }
    scalar!(NTH, "value", 0.5);
    let summary = recording.finish().expect("it ends");
    each(folder.path(), |recording| {
        let found = values(recording);
        let kept = [1.0, 4.0, 7.0, 10.0]
            .into_iter()
            .flat_map(|step| std::iter::repeat_n((step, Some(step as u64), true), 5));
        let kept: Vec<_> = kept.chain([(0.5, None, true)]).collect();
        assert_eq!(found, kept);
        assert_eq!(recording.counts().of(Kind::Step), 8);
        let gaps = recording.gaps().iter().filter(|gap| gap.reason == GapReason::LEFT_OUT);
        let gaps: Vec<_> = gaps.map(|gap| (gap.class, gap.records)).collect();
        assert_eq!(gaps, [(GapClass::NotRequested, 14); 3]);
    });
    assert_eq!((summary.left_out, summary.dropped), (42, 0));
}

#[test]
fn the_seconds_before_a_value_that_is_not_finite_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = run().dump_on(DumpOn::not_finite()).keep_seconds(1);
    let recording = DUMPED.record(folder.path().join("run.tmrun"), kept).expect("it starts");
    // Files end by their age: one that was there when it began, and so many behind it that some of
    // those are removed.
    for number in 2..=14_u32 {
        scalar!(DUMPED, "value", f64::from(number));
        if number == 7 {
            scalar!(DUMPED, "value", f64::NAN);
        }
        wait_for(folder.path(), number.into());
    }
    recording.finish().expect("it ends");
    let (mut numbers, mut with_nan, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    each(folder.path(), |recording| {
        let number = recording.meta().part.expect("it says").number;
        numbers.push(number);
        let records = recording.record_chunks().flat_map(|chunk| chunk.records().to_vec());
        let nan = |record: &Record| record.payload::<Scalar>().is_some_and(|s| s.value.is_nan());
        with_nan.extend(records.filter(nan).map(|record| (number, record.header().ticks)));
        removed = recording.meta().removed.values().copied().collect();
    });
    let [(of_nan, at)] = with_nan[..] else { panic!("one value is not finite: {with_nan:?}") };
    let [before, behind] = removed[..] else { panic!("removed before and behind: {removed:?}") };
    let second = AutoClock::ticks_per_second();
    assert_eq!((before.first, behind.first), (1, of_nan + 1));
    assert!(before.last < of_nan, "what was there when it happened stays");
    assert!(at.since(before.to) > second, "and that is all of the second before");
    let kept = (before.last + 1..=of_nan).chain(behind.last + 1..=14);
    assert_eq!(numbers, kept.collect::<Vec<_>>());
}
