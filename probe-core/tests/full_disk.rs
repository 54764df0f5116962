//! A disk that fills in the middle of a recording. (In a process of its own: the limit on the size
//! of files is the process's.)
#![cfg(target_os = "linux")]

mod support;

use std::process::Command;

use support::read::File;
use tmrun_formats::GapReason;
use tmrun_formats::wire::Frame;
use tmrun_probe_core::{ProfileRun, RecordError, probe, scalar};

const CHILD: &str = "TMRUN_TEST_CHILD";
const LIMIT: u64 = 100_000;

#[test]
#[ignore = "the child of the other test"]
fn fills_its_disk() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: a signal is ignored, and a limit that is a valid value is set; both for this process.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
    probe!(static PROBE: lanes = 1, slots = 1 << 14);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let recording = PROBE.record(&path, ProfileRun::training("disk", 1, "cpu")).unwrap();
    for i in 0..10_000 {
        scalar!(PROBE, "value", f64::from(i));
    }
    let error = recording.finish().unwrap_err();
    let text = error.to_string();
    let RecordError::Write { summary, .. } = error else { panic!("{text}") };
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, summary.bytes, "what is not whole is cut off");
    assert!(summary.bytes <= LIMIT);
    let file = File::finished(&bytes);
    let holes = file.frames().into_iter().filter_map(|frame| match frame {
        Frame::Hole(hole) if hole.reason == GapReason::SINK_FAILED => Some(hole.records),
        _ => None,
    });
    assert_eq!(holes.sum::<u64>(), summary.sink_failed, "the file says what is missing");
    assert_eq!(file.records.len() as u64, summary.records);
    // With the record of the level it starts with.
    assert_eq!(summary.records + summary.sink_failed, 10_001);
    assert_eq!(summary.dropped, summary.sink_failed, "the loop never noticed");
    let lost = summary.sink_failed;
    assert!(text.contains("run.tmrun could not be written"), "{text}");
    assert!(text.contains(&format!("what is in it is whole, {lost} records are lost")), "{text}");
    assert_eq!(PROBE.after_finish(), 0);
}

#[test]
fn a_disk_that_fills_is_reported_at_the_end_and_what_is_in_the_file_is_whole() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "fills_its_disk", "--ignored"]).env(CHILD, "1");
    let output = command.env_remove("TMRUN_LEVEL").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
