//! A process that forks while it is recorded: the child records nothing into its parent's file, says
//! so, and may record into one of its own.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Command;

use support::read::{File, SCALAR, SPAN};
use tmrun_formats::wire::Frame;
use tmrun_probe_core::{ProfileRun, RecordError, probe, scalar, span};

const CHILD: &str = "TMRUN_TEST_CHILD";

probe!(static PROBE: lanes = 2, slots = 256);

/// Forks in the middle of a span, in a process of its own: the test harness has threads.
#[test]
#[ignore = "the child of the other test"]
fn forks() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let Some((folder, mapped)) = task.split_once('|') else { panic!("{task}") };
    let folder = Path::new(folder);
    let mut run = ProfileRun::training("forks", 1, "cpu");
    if mapped == "mapped" {
        run = run.rings_in(folder.join("rings"));
    }
    let recording = PROBE.record(folder.join("parent.tmrun"), run).unwrap();
    let gone = std::sync::Arc::new(std::sync::Barrier::new(2));
    // A lane of a thread that the child does not have.
    std::thread::spawn({
        let gone = std::sync::Arc::clone(&gone);
        move || {
            scalar!(PROBE, "other thread", 1.0);
            gone.wait();
            std::thread::park();
        }
    });
    gone.wait();
    let outer = span!(PROBE, "around the fork");
    let inside = span!(PROBE, "around the fork too");
    scalar!(PROBE, "before", 1.0);
    // SAFETY: the child uses what this crate says that a child may use, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let child =
            std::panic::AssertUnwindSafe(|| in_child(folder, recording, inside, outer, mapped));
        let well = std::panic::catch_unwind(child).is_ok();
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    scalar!(PROBE, "after", 2.0);
    drop(inside);
    drop(outer);
    let mut status = 0;
    // SAFETY: waits for the child that was made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's own checks hold");
    scalar!(PROBE, "after", 3.0);
    recording.finish().unwrap();
}

fn in_child(
    folder: &Path,
    recording: tmrun_probe_core::Recording,
    inside: impl Sized,
    outer: impl Sized,
    mapped: &str,
) {
    scalar!(PROBE, "in the child", 4.0);
    drop(inside);
    {
        let _span = span!(PROBE, "a span of the child");
    }
    let error = recording.finish().unwrap_err();
    assert!(matches!(error, RecordError::Forked { .. }), "{error}");
    assert!(error.to_string().contains("parent.tmrun is recorded by the parent"), "{error}");

    let run = ProfileRun::training("child", 1, "cpu");
    let recording = PROBE.record(folder.join("child.tmrun"), run).unwrap();
    scalar!(PROBE, "in the child's file", 5.0);
    // Lanes of the parent's other threads are free.
    let spawned = std::thread::spawn(|| scalar!(PROBE, "in the child's file", 6.0));
    spawned.join().unwrap();
    {
        let _inside = span!(PROBE, "a span of the child's file");
        // Ends where it is not the innermost.
        drop(outer);
    }
    drop(span!(PROBE, "a span of the child's file"));
    assert_eq!(recording.finish().unwrap().dropped, 0);

    let bytes = std::fs::read(folder.join("child.tmrun")).unwrap();
    let file = File::finished(&bytes);
    let spans = file.of(SPAN);
    let of_the_parent = |span: &&support::read::Rec| file.name(span) == "around the fork";
    // What mapped pages knew of it is the parent's.
    let known = usize::from(mapped != "mapped");
    assert_eq!(spans.iter().filter(of_the_parent).count(), known);
    assert_eq!(spans.len(), 2 + known);
    assert!(spans.iter().all(|span| span.ticks > 0 && span.span_id() > 0));
    assert!(file.frames().iter().all(|frame| !matches!(frame, Frame::OpenSpan(_))));

    // SAFETY: as above.
    let grandchild = unsafe { libc::fork() };
    if grandchild == 0 {
        let lanes = std::panic::AssertUnwindSafe(|| {
            let run = ProfileRun::training("grandchild", 1, "cpu");
            let recording = PROBE.record(folder.join("grandchild.tmrun"), run).unwrap();
            scalar!(PROBE, "of one thread", 7.0);
            let other = std::thread::spawn(|| scalar!(PROBE, "of another", 8.0));
            other.join().unwrap();
            recording.finish().unwrap();
        });
        let well = std::panic::catch_unwind(lanes).is_ok();
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was made above.
    assert_eq!(unsafe { libc::waitpid(grandchild, &raw mut status, 0) }, grandchild);
    assert_eq!(status, 0);
    let bytes = std::fs::read(folder.join("grandchild.tmrun")).unwrap();
    let lanes: Vec<_> =
        File::finished(&bytes).of(SCALAR).iter().map(|scalar| scalar.lane).collect();
    assert!(matches!(lanes[..], [one, another] if one != another), "{lanes:?}: a lane each");
}

fn run(mapped: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "forks", "--ignored", "--nocapture"]);
    command.env(CHILD, format!("{}|{mapped}", dir.path().display())).env_remove("TMRUN_LEVEL");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let values = |name: &str| {
        let file = File::finished(&std::fs::read(dir.path().join(name)).unwrap());
        let named = |kind| -> Vec<_> { file.of(kind).iter().map(|r| file.name(r)).collect() };
        (named(SCALAR), named(SPAN))
    };
    let (mut scalars, spans) = values("parent.tmrun");
    scalars.sort();
    assert_eq!(scalars, ["after", "after", "before", "other thread"]);
    assert_eq!(spans, ["around the fork too", "around the fork"], "once, and by the parent");
    let (scalars, spans) = values("child.tmrun");
    assert_eq!(scalars, ["in the child's file"; 2]);
    assert!(!spans.iter().any(|span| span == "around the fork too"), "of the parent's recording");
}

#[test]
fn a_forked_child_records_nothing_into_its_parents_file_and_says_so() {
    run("unmapped");
}

#[test]
fn a_forked_child_writes_nothing_into_its_parents_mapped_rings() {
    run("mapped");
}
