//! A disk that fills in the middle of a recording, or is full before. (Each in a process of its own:
//! a limit on the size of files, and a file system that is mounted, are the process's.)
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::fs::File as OsFile;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::read::File;
use support::small_disk;
use tmrun_formats::GapReason;
use tmrun_formats::wire::Frame;
use tmrun_probe_core::{ProfileRun, RecordError, Recording, probe, scalar};

/// The child's folder.
const CHILD: &str = "TMRUN_TEST_CHILD";
const LIMIT: u64 = 100_000;
const DISK: u64 = 2 << 20;

probe!(static PROBE: lanes = 1, slots = 1 << 14, names = 64);

fn folder() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

fn run() -> ProfileRun {
    ProfileRun::training("disk", 1, "cpu")
}

/// Records more than there is room for. The loop never notices, the end says what became of it, and
/// the file is whole and says what is missing. Returns how many records are in it.
fn outgrows_its_disk(recording: Recording) -> u64 {
    let path = recording.path().to_owned();
    for i in 0..10_000 {
        scalar!(PROBE, "value", f64::from(i));
    }
    let error = recording.finish().unwrap_err();
    let text = error.to_string();
    let RecordError::Write { summary, .. } = error else { panic!("{text}") };
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, summary.bytes, "what is not whole is cut off");
    let file = File::finished(&bytes);
    let holes = file.frames().into_iter().filter_map(|frame| match frame {
        Frame::Hole(hole) if hole.reason == GapReason::SINK_FAILED => Some(hole.records),
        _ => None,
    });
    assert_eq!(holes.sum::<u64>(), summary.sink_failed, "the file says what is missing");
    assert_eq!(file.records.len() as u64, summary.records);
    // With the record of the level it starts with.
    assert_eq!(summary.records + summary.sink_failed, 10_001);
    assert!(summary.sink_failed > 0);
    assert_eq!(summary.dropped, summary.sink_failed, "the loop never noticed");
    let lost = summary.sink_failed;
    assert!(text.contains("run.tmrun could not be written"), "{text}");
    assert!(text.contains(&format!("what is in it is whole, {lost} records are lost")), "{text}");
    assert_eq!(PROBE.after_finish(), 0);
    summary.records
}

/// From now on this process writes to no file behind so many bytes.
fn limit_files_to(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: a signal is ignored, and a limit that is a valid value is set; both for this process.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
}

#[test]
#[ignore = "the child of another test"]
fn reaches_its_limit() {
    let Some(folder) = folder() else { return };
    limit_files_to(LIMIT);
    let path = folder.join("run.tmrun");
    outgrows_its_disk(PROBE.record(&path, run()).unwrap());
    assert!(std::fs::metadata(&path).unwrap().len() <= LIMIT);
}

/// Fills the disk but for so many bytes.
fn fill(folder: &Path, leave: u64) {
    let mut file = OsFile::create(folder.join("ballast")).unwrap();
    let error = loop {
        if let Err(error) = file.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    let len = file.metadata().unwrap().len();
    assert!(len <= DISK, "it is the small one");
    file.set_len(len - leave).unwrap();
}

/// Room for a chunk of records, and not for all.
const LEFT: u64 = 400 << 10;

#[test]
#[ignore = "the child of another test"]
fn fills_its_disk() {
    let Some(folder) = folder() else { return };
    let recording = PROBE.record(folder.join("run.tmrun"), run()).unwrap();
    fill(&folder, LEFT);
    assert!(outgrows_its_disk(recording) > 2_000, "a chunk of them");
}

#[test]
#[ignore = "the child of another test"]
fn fills_the_disk_of_its_rings() {
    let Some(folder) = folder() else { return };
    let run = run().rings_in(folder.join("rings"));
    let recording = PROBE.record(folder.join("run.tmrun"), run).unwrap();
    let rings = recording.rings().unwrap().to_owned();
    fill(&folder, LEFT);
    assert!(outgrows_its_disk(recording) > 2_000, "a chunk of them");
    assert!(rings.is_file(), "they may hold what the file has not");
}

#[test]
#[ignore = "the child of another test"]
fn finds_no_room_for_its_rings() {
    let Some(folder) = folder() else { return };
    let left = 64 << 10;
    fill(&folder, left);
    let (new, old) = (folder.join("new.tmrun"), folder.join("old.tmrun"));
    std::fs::write(&old, "an old one").unwrap();
    for path in [&new, &old] {
        let run = run().rings_in(folder.join("rings")).replace(true);
        let error = PROBE.record(path, run).unwrap_err();
        let text = error.to_string();
        let RecordError::Rings { path: named, source } = &error else { panic!("{text}") };
        assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(named.parent(), Some(&*folder.join("rings")));
        assert!(text.contains(&*named.to_string_lossy()), "{text}");
        assert!(!named.exists(), "no rings without their blocks");
        assert_eq!(PROBE.level(), None);
    }
    assert!(!new.exists());
    assert_eq!(std::fs::read(&old).unwrap(), b"an old one");
    // What was reserved was given back, and without rings there is room.
    let recording = PROBE.record(&new, run()).unwrap();
    scalar!(PROBE, "value", 1.0);
    assert_eq!(recording.finish().unwrap().records, 2);
}

#[test]
#[ignore = "the child of another test"]
fn cannot_write_to_its_rings() {
    let Some(folder) = folder() else { return };
    let run = run().rings_in(folder.join("rings")).replace(true);
    // No limit holds for a device.
    let recording = PROBE.record("/dev/null", run).unwrap();
    limit_files_to(0);
    scalar!(PROBE, "value", 1.0);
    // The clock is read every second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let summary = recording.finish().unwrap();
    assert_eq!((summary.records, summary.dropped), (2, 0));
    assert_eq!(std::fs::read_dir(folder.join("rings")).unwrap().count(), 0, "nobody needs them");
}

fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]).env(CHILD, folder).env_remove("TMRUN_LEVEL");
    command
}

fn passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {text}", output.status);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_limit_that_is_reached_is_reported_at_the_end_and_what_is_in_the_file_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    passed(&child("reaches_its_limit", dir.path()).output().unwrap());
}

#[test]
fn rings_that_cannot_be_told_what_the_clock_reads_do_not_fail_a_recording_that_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    passed(&child("cannot_write_to_its_rings", dir.path()).output().unwrap());
}

/// Runs the child where its folder is a small disk; says why not, where it cannot be mounted.
fn on_a_small_disk(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    match small_disk::over(dir.path(), DISK, child(test, dir.path())).output() {
        Ok(output) => passed(&output),
        Err(error) => {
            println!("skipped: no tmpfs can be mounted in namespaces of its own: {error}")
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nobody else saw it");
}

#[test]
fn a_disk_that_fills_is_reported_at_the_end_and_what_is_in_the_file_is_whole() {
    on_a_small_disk("fills_its_disk");
}

#[test]
fn mapped_rings_on_a_disk_that_fills_go_on_taking_records() {
    on_a_small_disk("fills_the_disk_of_its_rings");
}

#[test]
fn rings_that_a_full_disk_has_no_room_for_leave_nothing_half_made() {
    on_a_small_disk("finds_no_room_for_its_rings");
}
