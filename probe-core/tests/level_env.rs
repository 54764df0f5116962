//! TMRUN_LEVEL and TMRUN_FOCUS go before what the program says. (A process of its own each: the
//! variables are the process's.)

mod support;

use std::process::Command;

use support::read::{File, LEVEL, Rec};
use tmrun_probe_core::{Level, ProfileRun, RecordError, probe};

const CHILD: &str = "TMRUN_TEST_CHILD";

/// What the test below says of its level in a process of its own, with TMRUN_LEVEL set to this.
fn with_level(level: Option<&str>) -> String {
    with(level, None).0
}

/// What it says of its foci, with TMRUN_FOCUS set to this.
fn with_focus(focus: Option<&str>) -> String {
    with(None, focus).1
}

fn with(level: Option<&str>, focus: Option<&str>) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "says_its_level", "--ignored", "--nocapture"]).env(CHILD, "1");
    for (variable, value) in [("TMRUN_LEVEL", level), ("TMRUN_FOCUS", focus)] {
        command.env_remove(variable);
        command.envs(value.map(|value| (variable, value)));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let said = |what| {
        let line = text.lines().find_map(|line| line.split_once(what)).map(|(_, said)| said);
        line.expect("the child says it").to_owned()
    };
    (said("level: "), said("FOCI: "))
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
    let run = run.focus("program.*", Level::TIMING).focus("program.*", Level::NUMERICS);
    let asked = run.asked_for();
    match PROBE.record(&path, run) {
        Ok(recording) => {
            let (level, foci) = asked.unwrap();
            assert_eq!(PROBE.level(), Some(level), "it starts with what is asked for");
            println!("level: {:?}", PROBE.level().map(|level| level.0));
            recording.finish().unwrap();
            let file = File::finished(&std::fs::read(&path).unwrap());
            let changes = file.of(LEVEL);
            assert_eq!(changes[0].name, 0, "the level of every node comes first");
            let at = |change: &Rec| (change.u64_at(0), change.u64_at(8), change.payload[18]);
            assert!(changes.iter().all(|change| at(change) == at(&changes[0])), "one change");
            let changed = changes[1..].iter();
            let focus = |change: &Rec| (file.name(change).to_owned(), change.payload[17]);
            let found: Vec<_> = changed.map(focus).collect();
            let asked =
                |(pattern, level): &(String, u8)| foci.contains(&(pattern.clone(), Level(*level)));
            assert!(found.iter().all(asked), "{found:?} of {foci:?}");
            println!("FOCI: {found:?}");
        }
        Err(
            error @ (RecordError::Level { .. }
            | RecordError::FocusList { .. }
            | RecordError::Focus(_)),
        ) => {
            assert!(!path.exists(), "no file is made for it");
            println!("level: {error}\nFOCI: {error}");
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

#[test]
fn the_variable_s_foci_go_before_all_of_the_program_s() {
    assert_eq!(with_focus(None), r#"[("program.*", 3)]"#, "the last of a pattern counts");
    assert_eq!(with_focus(Some("")), "[]");
    assert_eq!(with_focus(Some("a.*=1,b=numerics,")), r#"[("a.*", 1), ("b", 3)]"#);
    assert_eq!(with_focus(Some("a=b=2,c=0")), r#"[("a=b", 2)]"#, "level 0 asks for no more");
}

#[test]
fn foci_that_are_none_are_an_error_that_says_what_one_is() {
    for wrong in ["a", "a=4", "a=1,b"] {
        let expected = "expected PATTERN=LEVEL, and more of them behind commas";
        assert_eq!(with_focus(Some(wrong)), format!("TMRUN_FOCUS is {wrong:?}: {expected}"));
    }
    let start = "the recording cannot start with its foci";
    let empty = "a pattern of names has an empty segment at byte 2";
    assert_eq!(with_focus(Some("a..b=1")), format!("{start}: {empty}"));
    let many: Vec<_> = (0..17).map(|focus| format!("node.{focus}=1")).collect();
    let full = "16 foci are in force already: clear one first";
    assert_eq!(with_focus(Some(&many.join(","))), format!("{start}: {full}"));
    assert_eq!(with_focus(Some("=1")).split_once(": ").map(|said| said.0), Some(start));
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
