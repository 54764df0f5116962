//! The command itself: exit codes, streams and files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use tmrun_formats::wire::Record;
use tmrun_formats::{GapReason, Phase};

use crate::make::{BARE, file, in_step, lanes, mark, op, rec, trace};
use crate::support::record::gap;

fn tmrun(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.current_dir(folder).args(arguments).output().expect("tmrun runs")
}

/// A folder with this recording as `run.tmrun`.
fn with(file: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("run.tmrun"), file).expect("written");
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn healthy() -> Vec<u8> {
    file(&in_step(1, &[rec(BARE, 0, &op(2_100, 0))]))
}

#[test]
fn a_healthy_recording_is_0_and_goes_to_standard_output() {
    let folder = with(&healthy());
    let output = tmrun(folder.path(), &["convert", "run.tmrun"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(trace(&output.stdout).operations.len(), 1);
    let lines = tmrun(folder.path(), &["convert", "--format", "jsonl", "run.tmrun"]);
    assert_eq!(lines.stdout.iter().filter(|&&byte| byte == b'\n').count(), 2);
}

#[test]
fn our_own_audit_accepts_what_comes_out() {
    let folder = with(&healthy());
    tmrun(folder.path(), &["convert", "run.tmrun", "-o", "out.json"]);
    let audit = tmrun(folder.path(), &["audit", "--strict", "out.json"]);
    assert_eq!(audit.status.code(), Some(0), "{}", stderr(&audit));
}

#[test]
fn a_file_is_written_whole_and_never_over_another_without_force() {
    let folder = with(&healthy());
    let to_file = ["convert", "run.tmrun", "-o", "out.json"];
    assert_eq!(tmrun(folder.path(), &to_file).status.code(), Some(0));
    let out = folder.path().join("out.json");
    let written = fs::read(&out).expect("written");
    assert_eq!(trace(&written).operations.len(), 1);
    fs::write(&out, "mine").expect("written");
    let refused = tmrun(folder.path(), &to_file);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--force"));
    assert_eq!(fs::read(&out).expect("there"), b"mine");
    let forced = tmrun(folder.path(), &[&to_file[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0));
    assert_eq!(fs::read(&out).expect("there"), written);
    assert_eq!(fs::read_dir(folder.path()).expect("entries").count(), 2, "nothing beside it");
}

#[test]
fn standard_input_is_a_file_too() {
    let folder = with(&healthy());
    let input = fs::File::open(folder.path().join("run.tmrun")).expect("the file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    let piped = command.args(["convert", "-"]).stdin(input).stdout(Stdio::piped());
    let output = piped.output().expect("tmrun runs");
    assert_eq!(output.stdout, tmrun(folder.path(), &["convert", "run.tmrun"]).stdout);
}

#[test]
fn a_command_line_that_does_not_name_one_trace_is_2() {
    let step =
        |n, phase| [mark(n, n, phase, false), rec(BARE, 0, &op(2_100, 0)), mark(n, n, phase, true)];
    let mixed: Vec<Record> = [step(1, Phase::TRAIN), step(2, Phase::INFER)].concat();
    let folder = with(&file(&mixed));
    let refused = tmrun(folder.path(), &["convert", "run.tmrun"]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    assert!(stderr(&refused).contains("train and infer"));
    let chosen = ["convert", "--phase", "infer", "run.tmrun"];
    assert_eq!(tmrun(folder.path(), &chosen).status.code(), Some(0));
    let unknown = tmrun(folder.path(), &["convert", "--step", "9", "run.tmrun"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("1 to 2"));
    for wrong in [&["--schema", "4"], &["--format", "xml"], &["--phase", "fit"], &["--step", "x"]] {
        let wrong = [&["convert", "run.tmrun"][..], wrong].concat();
        assert_eq!(tmrun(folder.path(), &wrong).status.code(), Some(2));
    }
    let trained = file(&[step(1, Phase(0)), step(2, Phase(0))].concat());
    let folder = with(&trained);
    let first = tmrun(folder.path(), &["convert", "--schema", "1", "run.tmrun"]);
    assert_eq!(first.status.code(), Some(2));
}

#[test]
fn lost_evidence_is_3_and_one_line_says_what() {
    let steps =
        [in_step(1, &[rec(BARE, 0, &op(1_100, 0))]), in_step(5, &[rec(BARE, 0, &op(2_100, 0))])];
    let lost = gap(900, 990, 7, 0, GapReason::OVERRUN);
    let folder = with(&lanes(&[(0, &steps.concat()), (u16::MAX, &[lost])]));
    let output = tmrun(folder.path(), &["convert", "run.tmrun"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("lost 7 records"));
    assert_eq!(trace(&output.stdout).gaps.len(), 1);
    let step = |n| tmrun(folder.path(), &["convert", "--step", n, "run.tmrun"]).status.code();
    assert_eq!((step("1"), step("5")), (Some(3), Some(0)));
    let focus = gap(900, 990, 7, 0, GapReason::FOCUS);
    let folder = with(&lanes(&[(0, &steps.concat()), (u16::MAX, &[focus])]));
    assert_eq!(tmrun(folder.path(), &["convert", "run.tmrun"]).status.code(), Some(0));
}

#[test]
fn a_cut_file_is_3_an_unfinished_one_0_and_another_file_1() {
    let whole = healthy();
    let unfinished = with(&whole[..whole.len() - 64]);
    let output = tmrun(unfinished.path(), &["convert", "run.tmrun"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("not finished"));
    let cut = with(&whole[..whole.len() - 300]);
    let output = tmrun(cut.path(), &["convert", "run.tmrun"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    trace(&output.stdout);
    let other = with(b"{\"schema\":\"candle-graph/runtime/3\"}");
    assert_eq!(tmrun(other.path(), &["convert", "run.tmrun"]).status.code(), Some(1));
}

#[test]
fn an_empty_run_as_jsonl_is_a_document_and_said() {
    let folder = with(&file(&[]));
    let output = tmrun(folder.path(), &["convert", "--format", "jsonl", "run.tmrun"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("document"));
    assert!(trace(&output.stdout).is_empty());
}
