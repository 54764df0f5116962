//! A process that forks beside sessions: one that is open, and one whose memory is gone.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Command;

use support::read::{File, SCALAR};
use tmrun_probe_core::session::{ProfileRun, RecordError, SessionError, TraceSession};

const CHILD: &str = "TMRUN_TEST_CHILD";

fn open(folder: &Path, name: &str) -> TraceSession {
    TraceSession::open(folder.join(name), ProfileRun::training("forks", 1, "cpu")).unwrap()
}

fn scalar(session: &TraceSession, label: &str) {
    let span = session.begin_measurement("update");
    session.record_scalar(span.id(), label, 1.0).unwrap();
}

/// In a process of its own: the test harness has threads.
#[test]
#[ignore = "the child of the other test"]
fn forks() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    open(folder, "ended.tmrun").finish().unwrap();
    let session = open(folder, "parent.tmrun");
    scalar(&session, "before");
    // SAFETY: the child uses what this crate says that a child may use, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let child = std::panic::AssertUnwindSafe(|| {
            scalar(&session, "in the child");
            assert!(matches!(
                session.flush(),
                Err(SessionError::Record(RecordError::Forked { .. }))
            ));
            let refused = session.finish().unwrap_err();
            assert!(matches!(refused, SessionError::Record(RecordError::Forked { .. })));
            let own = open(folder, "child.tmrun");
            scalar(&own, "in the child's own");
            own.finish().unwrap();
        });
        let well = std::panic::catch_unwind(child).is_ok();
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's own checks hold");
    scalar(&session, "after");
    session.finish().unwrap();
}

#[test]
fn a_child_records_into_a_session_of_its_own_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "forks", "--ignored", "--nocapture"]);
    command.env(CHILD, dir.path()).env_remove("TMRUN_LEVEL");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let labels = |name: &str| {
        let file = File::finished(&std::fs::read(dir.path().join(name)).unwrap());
        file.of(SCALAR).iter().map(|scalar| file.name(scalar)).collect::<Vec<_>>()
    };
    assert_eq!(labels("parent.tmrun"), ["before", "after"]);
    assert_eq!(labels("child.tmrun"), ["in the child's own"]);
}
