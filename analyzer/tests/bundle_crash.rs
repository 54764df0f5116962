//! A publisher that is killed, fails, or finds its disk full at whatever moment: at its destination is
//! nothing, or all of it.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
#[path = "../../probe-core/tests/support/small_disk.rs"]
mod small_disk;
mod support;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bundles::{gapped, names, publish_with};
use support::dying::test;
use tmrun::bundle::{Moment, Publication, PublishError, PublishFault, leftovers, verify};
use tmrun_formats::bundle::PublicationStatus;
use tmrun_formats::trace::TraceDocument;

const CHILD: &str = "TMRUN_TEST_CHILD";

/// Publishes a step with everything that a bundle can have.
fn publish(
    root: &Path,
    observe: &mut dyn FnMut(Moment<'_>) -> io::Result<()>,
) -> Result<Publication, PublishError> {
    let nsight = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/nsight"));
    publish_with(&gapped(), Some(2), Some(nsight), root, observe)
}

/// The name of a moment, with the file.
fn name(moment: Moment<'_>) -> String {
    format!("{moment:?}")
}

/// The moments of a publication, in order.
fn moments() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut moments = Vec::new();
    let mut keep = |moment: Moment<'_>| {
        moments.push(name(moment));
        Ok(())
    };
    publish(&folder.path().join("bundle"), &mut keep).expect("published");
    moments
}

#[test]
fn the_protocol_has_its_order() {
    let files = [
        "recording.tmrun",
        "nsight/r.nsys-rep",
        "nsight/r_cuda_gpu_kern_sum.csv",
        "trace.jsonl",
        "evidence.json",
        "report.md",
        "tmrun.json",
        "bundle.json",
    ];
    let files =
        files.iter().flat_map(|file| [format!("Begun({file:?})"), format!("Written({file:?})")]);
    let before = ["Planned", "Free", "Parents", "Staged"].map(str::to_owned);
    let after = ["Verified", "Synced", "Renamed", "Durable", "Checked"].map(str::to_owned);
    let expected: Vec<_> = before.into_iter().chain(files).chain(after).collect();
    assert_eq!(moments(), expected);
}

/// Holds what is at a destination to what is promised. Returns whether it is there.
fn absent_or_whole(root: &Path) -> bool {
    let is_there = fs::symlink_metadata(root).is_ok();
    if is_there {
        let found = verify(root);
        assert!(found.receipt.is_some(), "{:?}", found.problems);
        candle_graph_v10::verify_bundle(root).expect("the neighbour takes it");
    }
    is_there
}

#[test]
#[ignore = "the child of another test"]
fn is_killed() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (root, at) = task.split_once('|').expect("a task");
    let mut kill = |moment: Moment<'_>| {
        if name(moment) == at {
            // SAFETY: a signal to this process, which it cannot survive.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        Ok(())
    };
    let _ = publish(Path::new(root), &mut kill);
}

#[test]
fn a_publisher_that_is_killed_leaves_nothing_or_all_of_it() {
    let mut before = 0;
    let mut after = 0;
    for moment in moments() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("around").join("bundle");
        let task = format!("{}|{moment}", root.display());
        let killed = test("is_killed").env(CHILD, task).output().expect("it runs");
        assert_eq!(killed.status.signal(), Some(libc::SIGKILL), "{moment}");

        let is_there = absent_or_whole(&root);
        if is_there {
            after += 1
        } else {
            before += 1
        }
        assert_eq!(is_there, ["Renamed", "Durable", "Checked"].contains(&&*moment), "{moment}");
        // What is left is told of, and is no bundle however whole it is.
        let left = leftovers(&root);
        let was_staged = !is_there && !["Planned", "Free", "Parents"].contains(&&*moment);
        assert_eq!(left.len(), usize::from(was_staged), "{moment}: {left:?}");
        for left in left {
            let found = verify(&left);
            assert_eq!(found.receipt, None, "{moment}");
        }
        // And the next one does it, or finds it done.
        let again = publish(&root, &mut |_| Ok(())).expect("published");
        let expected = match is_there {
            true => PublicationStatus::AlreadyPublished,
            false => PublicationStatus::Published,
        };
        assert_eq!(again.receipt.status, expected, "{moment}");
        assert!(absent_or_whole(&root));
    }
    println!("killed at {before} moments before it was there and {after} after");
    assert!(before > 0 && after > 0);
}

#[test]
fn a_publisher_that_fails_takes_its_staging_away_and_keeps_a_whole_trace() {
    for at in moments() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("bundle");
        let mut fail = |moment: Moment<'_>| match name(moment) == at {
            true => Err(io::Error::other("on purpose")),
            false => Ok(()),
        };
        let error = publish(&root, &mut fail).expect_err("it fails");
        assert!(matches!(error.fault, PublishFault::Stopped(_)), "{error}");
        let is_there = absent_or_whole(&root);
        let has_trace = !is_there
            && !["Planned", "Free", "Parents", "Staged"].contains(&&*at)
            && !at.contains("recording.tmrun")
            && !at.contains("nsight/")
            && at != "Begun(\"trace.jsonl\")";
        assert_eq!(error.trace.is_some(), has_trace, "{at}");
        let mut expected: Vec<String> = Vec::new();
        if let Some(trace) = &error.trace {
            assert!(error.to_string().contains(&*trace.to_string_lossy()), "{error}");
            let text = fs::read(trace).expect("the trace");
            TraceDocument::read(&text).expect("a whole one");
            expected.push(trace.file_name().expect("a name").to_string_lossy().into_owned());
        }
        if is_there {
            expected.push("bundle".to_owned());
        }
        assert_eq!(names(folder.path()), expected, "{at}");
    }
}

#[test]
fn a_live_publisher_is_not_left_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let mut look = |moment: Moment<'_>| {
        if moment == Moment::Verified {
            assert_eq!(names(folder.path()).len(), 1);
            assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
        }
        Ok(())
    };
    publish(&root, &mut look).expect("published");
}

const DISK: u64 = 1 << 20;

/// Fills the disk but for so many bytes.
fn fill(ballast: &Path, leave: u64) {
    let mut file = File::create(ballast).expect("a file");
    let error = loop {
        if let Err(error) = file.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    let len = file.metadata().expect("a file").len();
    assert!(len <= DISK, "it is the small one");
    file.set_len(len - leave).expect("room");
}

/// Publishes with more and more room, until there is enough. Without, nothing is left in the folder but
/// what was there before and a whole trace, or none.
fn publishes_when_there_is_room(folder: &Path, room: &mut dyn FnMut(u64), bytes: usize, no: i32) {
    let (root, before) = (folder.join("bundle"), names(folder));
    let (mut failed, mut kept) = (0, 0);
    for leave in (0..DISK).step_by(bytes) {
        room(leave);
        match publish(&root, &mut |_| Ok(())) {
            Ok(_) => {
                assert!(absent_or_whole(&root));
                println!("{failed} times there was no room, {kept} times it was there for a trace");
                assert!(failed > 2 && kept > 0, "{failed} {kept}");
                return;
            }
            Err(error) => {
                failed += 1;
                let PublishFault::Io { source, .. } = &error.fault else { panic!("{error}") };
                assert_eq!(source.raw_os_error(), Some(no), "{error}");
                assert!(!absent_or_whole(&root));
                let mut left = before.clone();
                if let Some(trace) = error.trace {
                    kept += 1;
                    let text = fs::read(&trace).expect("the trace");
                    TraceDocument::read(&text).expect("a whole one");
                    left.insert(0, trace.file_name().expect("a name").to_string_lossy().into());
                    assert_eq!(names(folder), left);
                    fs::remove_file(trace).expect("away");
                } else {
                    assert_eq!(names(folder), left);
                }
            }
        }
    }
    panic!("there is room for it");
}

#[test]
#[ignore = "the child of another test"]
fn fills_its_disk() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    let ballast = folder.join("ballast");
    fill(&ballast, 0);
    let mut room = |leave| fill(&ballast, leave);
    publishes_when_there_is_room(folder, &mut room, 4096, libc::ENOSPC);
}

#[test]
#[ignore = "the child of another test"]
fn reaches_its_limit() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    // SAFETY: a signal is ignored, in this process.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut room = |bytes| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a limit of this process, by a valid value.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    };
    publishes_when_there_is_room(Path::new(&folder), &mut room, 512, libc::EFBIG);
}

fn passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {text}{errors}", output.status);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn files_that_cannot_grow_leave_nothing_half_done() {
    let folder = tempfile::tempdir().expect("a folder");
    passed(&test("reaches_its_limit").env(CHILD, folder.path()).output().expect("it runs"));
}

/// Where the kernel gives a process namespaces of its own; elsewhere this is skipped, and says so.
#[test]
fn a_disk_that_fills_leaves_nothing_half_done_where_one_can_be_mounted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child: Command = test("fills_its_disk");
    child.env(CHILD, folder.path());
    match small_disk::over(folder.path(), DISK, child).output() {
        Ok(output) => passed(&output),
        Err(error) => {
            println!("skipped: no tmpfs can be mounted in namespaces of its own: {error}");
        }
    }
    assert_eq!(names(folder.path()), Vec::<String>::new(), "nobody else saw it");
}
