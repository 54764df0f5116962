//! Spans of sessions are ranges of NVTX, of a library that stands in for it.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use tmrun_probe_core::session::{ExecutionStep, ProfileRun, SpanKind, TraceSession};

const FOLDER: &str = "TMRUN_TEST_FOLDER";

/// A library that writes down how it is called.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int depth = 0;
static void note(const char *what, const char *label) {
    FILE *file = fopen(getenv("TMRUN_TEST_CALLS"), "a");
    if (!file) return;
    fprintf(file, "%s %s\n", what, label);
    fclose(file);
}
int nvtxRangePushA(const char *label) { note("push", label); return depth++; }
int nvtxRangePop(void) { note("pop", ""); return --depth; }
"#;

/// In a process of its own, which finds the library.
#[test]
#[ignore = "the child of the other tests"]
fn records() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let run = ProfileRun::training("ranges", 1, "cpu");
    let session = TraceSession::open(Path::new(&folder).join("run.tmrun"), run).unwrap();
    {
        let _measured = session.begin_measurement("update/1");
        drop(session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Module));
        drop(session.begin_span("cut\0off", SpanKind::Op));
    }
    session.finish().unwrap();
}

/// Runs the other test where the library is looked for in `folder`.
fn run_with(folder: &Path) -> String {
    let calls = folder.join("calls");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "records", "--ignored"]).env(FOLDER, folder);
    command.env("LD_LIBRARY_PATH", folder).env("TMRUN_TEST_CALLS", &calls);
    let output = command.env_remove("TMRUN_LEVEL").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::read_to_string(calls).unwrap_or_default()
}

#[test]
fn spans_are_ranges_of_the_same_labels() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("nvtx.c");
    std::fs::write(&source, LIBRARY).unwrap();
    let library = dir.path().join("libnvToolsExt.so.1");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return;
    }
    let calls = run_with(dir.path());
    let calls: Vec<&str> = calls.lines().map(str::trim).collect();
    let expected = ["push update/1", "push forward", "pop", "push cut", "pop", "pop"];
    assert_eq!(calls, expected);
}

#[test]
fn without_the_library_nothing_is_called_and_the_session_records() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run_with(dir.path()), "");
    assert!(dir.path().join("run.tmrun").exists());
}
