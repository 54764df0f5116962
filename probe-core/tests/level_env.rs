//! TMRUN_LEVEL goes before what the program says. (A process of its own each: the variable is the
//! process's.)

mod support;

use std::process::Command;

use tmrun_probe_core::{Level, ProfileRun, RecordError, probe};

const CHILD: &str = "TMRUN_TEST_CHILD";

/// Runs the test below in a process of its own, with TMRUN_LEVEL set to this.
fn with_level(level: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "says_its_level", "--ignored", "--nocapture"]).env(CHILD, "1");
    command.env_remove("TMRUN_LEVEL");
    if let Some(level) = level {
        command.env("TMRUN_LEVEL", level);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("level: ")).map(|(_, level)| level);
    line.expect("the child says its level").to_owned()
}

#[test]
#[ignore = "the child of the other tests"]
fn says_its_level() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let run = ProfileRun::training("level", 1, "cpu").level(Level::METADATA);
    match PROBE.record(&path, run) {
        Ok(recording) => {
            println!("level: {:?}", PROBE.level().map(|level| level.0));
            recording.finish().unwrap();
        }
        Err(error @ RecordError::Level { .. }) => {
            assert!(!path.exists(), "no file is made for it");
            println!("level: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_variable_goes_before_the_program() {
    assert_eq!(with_level(None), "Some(2)");
    assert_eq!(with_level(Some("0")), "Some(0)");
    assert_eq!(with_level(Some("numerics")), "Some(3)");
}

#[test]
fn a_level_that_is_none_is_an_error_that_says_what_one_is() {
    let expected = "expected 0, 1, 2, 3, pulse, timing, metadata or numerics";
    assert_eq!(with_level(Some("4")), format!("TMRUN_LEVEL is \"4\": {expected}"));
    assert_eq!(with_level(Some("")), format!("TMRUN_LEVEL is \"\": {expected}"));
}

#[cfg(unix)]
#[test]
fn a_level_that_is_no_text_is_an_error_too() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "says_its_level", "--ignored", "--nocapture"]).env(CHILD, "1");
    command.env("TMRUN_LEVEL", std::ffi::OsStr::from_bytes(b"\xff"));
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("level: TMRUN_LEVEL is \"\u{fffd}\""));
}
