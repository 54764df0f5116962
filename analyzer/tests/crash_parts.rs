//! A process that records into several files and dies: what its rings hold belongs to the last file
//! that had begun, whatever the recorder was doing between two of them.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::Ordering;

use support::command::tmrun;
use support::dying::{self, Count, rings};
use tmrun::scan::{Recording, Status};
use tmrun_formats::wire::{Kind, Scalar};
use tmrun_formats::{GapReason, LaneId, Level, parts};
use tmrun_probe_core::{AutoClock, Overwrite, ProfileRun, probe, scalar, span};

probe!(static PROBE: lanes = 3, slots = 1 << 13);
probe!(static NEWEST: lanes = 3, slots = 1 << 13; clock = Overwrite<AutoClock>);

/// Scalars of a step.
const A_STEP: u64 = 100;

/// Records until it is killed.
#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    let Some(task) = dying::task() else { return };
    let (folder, kind) = task.split_once('|').expect("a task");
    let folder = Path::new(folder);
    let count = Count::open(folder);
    let run = ProfileRun::training("dies", 1, "cpu").level(Level::TIMING);
    let run = run.rings_in(folder.join("rings")).max_file(1 << 20);
    let run = match kind {
        "last" => run.keep_last(1),
        "steps" => run.every_nth_step(8),
        _ => run,
    };
    let path = folder.join("run.tmrun");
    macro_rules! record {
        ($probe:ident) => {{
            let _recording = $probe.record(&path, run).expect("it starts");
            let _open = span!($probe, "outer");
            let mut step = None;
            for i in 0.. {
                if kind == "steps" && i % A_STEP == 0 {
                    drop(step.take());
                    step = Some($probe.step(1 + i / A_STEP));
                }
                scalar!($probe, "value", i as f64);
                count.of(LaneId(0)).store(i + 1, Ordering::Relaxed);
                if i % 512 == 0 {
                    std::thread::yield_now();
                }
            }
        }};
    }
    if kind == "newest" { record!(NEWEST) } else { record!(PROBE) }
}

fn child(folder: &Path, kind: &str) -> Child {
    dying::child(dying::test("records_until_it_dies"), &format!("{}|{kind}", folder.display()))
}

/// Starts a child and kills it: at so many records, or as soon as a file of that number is there,
/// which is in the middle of the recorder's going on in it.
fn killed(folder: &Path, kind: &str, round: u64) -> u64 {
    let count = Count::open(folder);
    let mut child = child(folder, kind);
    let moment = 20_000 + round * 11_003;
    let first = folder.join("run.tmrun");
    let newest = || {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        entries.filter_map(|entry| parts::number(&first, entry.file_name().as_ref())).max()
    };
    // Some steps are in the first file, and others were left out of it.
    let drained =
        || kind != "steps" || std::fs::metadata(&first).is_ok_and(|file| file.len() > 32 << 10);
    let is_time = || match round % 2 {
        0 => count.of(LaneId(0)).load(Ordering::Relaxed) >= moment && drained(),
        _ => newest() >= Some(2 + round / 2),
    };
    while !is_time() {
        assert!(child.try_wait().expect("a child").is_none(), "it records for ever");
        std::hint::spin_loop();
    }
    child.kill().expect("it lives");
    child.wait().expect("it is dead");
    count.of(LaneId(0)).load(Ordering::Relaxed)
}

fn file(folder: &Path, number: u64) -> PathBuf {
    parts::path(&folder.join("run.tmrun"), number)
}

/// What the tests ask of a file.
struct File {
    number: u64,
    /// The values of its scalars.
    values: Vec<u64>,
    dropped: u64,
    lapped: u64,
    left_out: u64,
    /// Records that took a position of the lane, the Gap records apart.
    stored: u64,
}

fn read(path: &Path) -> File {
    let bytes = std::fs::read(path).expect("the file");
    let recording = Recording::open(&bytes, &path.to_string_lossy()).expect("a header");
    assert_eq!(recording.verify(), [], "{path:?}");
    assert_eq!(recording.status(), Status::Finished, "{path:?}");
    let told = [GapReason::OVERRUN, GapReason::LAPPED, GapReason::TORN];
    let other: Vec<_> = recording.lost().filter(|gap| !told.contains(&gap.reason)).collect();
    assert!(other.is_empty(), "{path:?}: nothing else is missing: {other:?}");
    let count = |reason| -> u64 {
        let gaps = recording.gaps().iter().filter(|gap| gap.reason == reason);
        gaps.map(|gap| gap.records).sum()
    };
    let records: Vec<_> = (recording.record_chunks().filter(|chunk| chunk.lane() == LaneId(0)))
        .flat_map(|chunk| chunk.records().to_vec())
        .collect();
    let values = records.iter().filter_map(|record| Some(record.payload::<Scalar>()?.value as u64));
    let gaps = records.iter().filter(|record| record.kind() == Some(Kind::Gap)).count();
    let removed: u64 = recording.meta().removed.values().map(|removed| removed.records).sum();
    let left_out = count(GapReason::LEFT_OUT) - removed;
    File {
        number: recording.meta().part.map_or(1, |part| part.number),
        values: values.collect(),
        dropped: count(GapReason::OVERRUN),
        lapped: count(GapReason::LAPPED) + count(GapReason::TORN),
        left_out,
        stored: (records.len() - gaps) as u64 + left_out,
    }
}

/// Salvages what a process left: the files that it ended, and what comes of the last one.
fn salvaged(folder: &Path) -> Vec<File> {
    let out = folder.join("whole.tmrun");
    let rings = rings(folder);
    let output = tmrun(&["salvage", &rings.to_string_lossy(), "-o", &out.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    assert!(!text.contains("only the rings are left"), "{text}");
    let last = read(&out);
    let earlier = (1..last.number).map(|number| file(folder, number)).filter(|path| path.exists());
    let mut files: Vec<_> = earlier.map(|path| read(&path)).collect();

    // The file that was joined will do too, and gives the same.
    let (path, again) = (file(folder, last.number), folder.join("again.tmrun"));
    let output = tmrun(&["salvage", &path.to_string_lossy(), "-o", &again.to_string_lossy()]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert!(std::fs::read(&again).expect("it") == std::fs::read(&out).expect("it"));

    // An earlier one has nothing to do with the rings, which is said.
    let (first, copy) = (file(folder, 1), folder.join("copy.tmrun"));
    if last.number > 1 && first.exists() {
        let output = tmrun(&["salvage", &first.to_string_lossy(), "-o", &copy.to_string_lossy()]);
        let text = String::from_utf8_lossy(&output.stderr);
        let said = format!("what the rings hold belongs to {}", path.display());
        assert!(text.contains(&said), "{text}");
        assert_eq!(read(&copy).values, files[0].values);
    }

    // One that came behind has nothing that is not in the result.
    let bytes = std::fs::read(file(folder, last.number + 1)).unwrap_or_default();
    let behind = Recording::open_damaged(&bytes, "behind", &|_| ());
    assert!(behind.map_or(0, |behind| behind.counts().total()) == 0);
    files.push(last);
    files
}

fn meta(folder: &Path) -> (usize, bool, String) {
    let bytes = std::fs::read(folder.join("whole.tmrun")).expect("the result");
    let recording = Recording::open(&bytes, "whole").expect("a header");
    let meta = recording.meta();
    let terminal = meta.terminal.expect("it says how it ended");
    let reason = terminal.reason.unwrap_or_default().to_owned();
    (meta.open_spans.len(), terminal.complete, reason)
}

#[test]
fn a_process_that_is_killed_between_two_files_loses_nothing_and_repeats_nothing() {
    for kind in ["all", "newest"] {
        for round in 0..16 {
            let dir = tempfile::tempdir().expect("a folder");
            let said = killed(dir.path(), kind, round);
            let files = salvaged(dir.path());
            let numbers: Vec<_> = files.iter().map(|file| file.number).collect();
            let all: Vec<_> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, all, "{kind}, round {round}");
            let values: Vec<_> = files.iter().flat_map(|file| file.values.clone()).collect();
            assert!(
                values.is_sorted_by(|a, b| a < b),
                "{kind}, round {round}: each once, in order"
            );
            let missing: u64 = files.iter().map(|file| file.dropped + file.lapped).sum();
            let found = values.len() as u64 + missing;
            assert!(
                (said..=said + 1).contains(&found),
                "{kind}, round {round}: {found} of {said}, {missing} missing, files {numbers:?}"
            );
            let (open, complete, reason) = meta(dir.path());
            assert_eq!((open, complete), (1, false), "{kind}, round {round}");
            assert!(reason.contains("ended without finishing"), "{reason}");
        }
    }
}

#[test]
fn where_only_the_last_file_stays_nothing_is_missing_behind_its_first_record() {
    for round in 0..16 {
        let dir = tempfile::tempdir().expect("a folder");
        let said = killed(dir.path(), "last", round);
        let files = salvaged(dir.path());
        assert!(files.len() <= 2, "the one before it may be there still");
        let values: Vec<_> = files.iter().flat_map(|file| file.values.clone()).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "round {round}: each once, in order");
        let dropped: u64 = files.iter().map(|file| file.dropped).sum();
        let found = values.len() as u64;
        let first = values.first().copied().unwrap_or(said);
        assert!(found <= said + 1 - first, "round {round}");
        assert!(found + dropped >= said - first, "round {round}: {found} from {first} of {said}");
    }
}

#[test]
fn steps_that_were_left_out_are_no_loss_when_the_process_is_killed() {
    for round in 0..16 {
        let dir = tempfile::tempdir().expect("a folder");
        let said = killed(dir.path(), "steps", round * 2);
        let files = salvaged(dir.path());
        let sum = |what: fn(&File) -> u64| -> u64 { files.iter().map(what).sum() };
        assert!(sum(|file| file.left_out) > 0);
        // With the two marks of each step; the end of the last one comes behind its last value.
        let marks = 2 * (said / A_STEP) - u64::from(said.is_multiple_of(A_STEP));
        let found = sum(|file| file.stored) + sum(|file| file.dropped);
        let expected = said + marks;
        assert!((expected..=expected + 3).contains(&found), "{found} of {expected}");
        let kept = |value: &u64| (value / A_STEP).is_multiple_of(8);
        let values: Vec<_> = files.iter().flat_map(|file| file.values.clone()).collect();
        assert!(values.is_sorted_by(|a, b| a < b));
        // What the recorder had not looked at yet is there, wanted or not.
        let behind = values.iter().filter(|value| !kept(value)).count();
        assert!(behind <= 1 << 13, "{behind}: a ring of it at most");
    }
}
