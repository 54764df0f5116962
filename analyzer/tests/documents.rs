//! Documents that are read whole are regular files of a bounded length, and why one cannot be read is
//! said.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Command;

use support::Builder;
use support::command::Folder;
use support::record::{span_in, step};
use tmrun::input::DOCUMENT_BYTES;

/// A bundle, in `bundle`.
fn folder() -> Folder {
    let records =
        [step(10_000, 1, false), span_in(0, (10_010, 10_500), 7, 1), step(12_000, 1, true)];
    let folder = Folder::with(&Builder::started().records(0, &records).finish());
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "bundle"]);
    assert_eq!(code, 0, "{err}");
    folder
}

#[test]
fn a_manifest_or_a_plan_that_is_too_long_is_refused_with_the_limit() {
    let folder = folder();
    let long = |name: &str| {
        File::create(folder.path(name)).unwrap().set_len(DOCUMENT_BYTES + 1).unwrap();
    };
    long("bundle/bundle.json");
    long("plan.json");
    for command in [
        &["verify", "bundle"][..],
        &["summary", "bundle"],
        &["query", "bundle", "--kind", "labels"],
        &["series", "bundle"],
        &["compare", "--baseline", "bundle", "--candidate", "bundle"],
        &["campaign-status", "plan.json"],
        &["series", "--campaign", "plan.json"],
    ] {
        let (code, _, err) = folder.tmrun(command);
        assert_eq!(code, 1, "{command:?}");
        let said = "cannot be read: it has 67,108,865 bytes: expected 67,108,864 at most";
        assert!(err.contains(said), "{command:?}: {err}");
    }
}

#[test]
fn a_plan_is_a_regular_file_and_nobody_waits_for_another() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    for plan in ["pipe", "/dev/null", "."] {
        // Whoever waits is ended, with another exit code.
        let mut tmrun = Command::new("timeout");
        tmrun.args(["60", env!("CARGO_BIN_EXE_tmrun"), "campaign-status", plan]);
        let output = tmrun.current_dir(folder.path("")).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{plan}: {err}");
        assert!(err.contains(&format!("{plan}: cannot be read: no regular file")), "{err}");
    }
}

#[test]
fn standard_input_needs_no_usable_tmpdir() {
    let folder = folder();
    let mut tmrun = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    tmrun.args(["verify", "-"]).env("TMPDIR", folder.path("gone"));
    let output = tmrun.stdin(File::open(folder.path("in.tmrun")).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn why_a_directory_cannot_be_read_is_said_and_not_that_it_is_no_bundle() {
    let folder = folder();
    fs::create_dir(folder.path("loop")).unwrap();
    symlink("trace.jsonl", folder.path("loop/trace.jsonl")).unwrap();
    for command in [&["summary", "loop"][..], &["query", "loop", "--kind", "labels"]] {
        let (code, _, err) = folder.tmrun(command);
        assert_eq!(code, 1);
        let said = "loop/trace.jsonl: cannot be read: Too many levels of symbolic links";
        assert!(err.contains(said), "{err}");
    }
    fs::create_dir(folder.path("empty")).unwrap();
    let (code, _, err) = folder.tmrun(&["summary", "empty"]);
    assert!(code == 1 && err.contains("expected a bundle"), "{err}");
}
