//! `tmrun audit`: what it prints where, and its exit codes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn tmrun(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.arg("audit").args(arguments);
    command
}

/// Exit code, standard output, standard error.
fn said(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("it ends"), text(output.stdout), text(output.stderr))
}

fn sample_path(sample: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/runtime").join(sample);
    path.to_str().expect("text").to_owned()
}

fn tmrun_audit(arguments: &[&str], sample: &str) -> (i32, String, String) {
    said(tmrun(arguments).arg(sample_path(sample)).output().expect("tmrun runs"))
}

#[test]
fn an_accepted_trace_with_findings_is_0_and_with_strict_1() {
    for sample in ["audit/tensor-conflict.json", "audit/grad-samestep-diffnorm.json"] {
        let (code, stdout, stderr) = tmrun_audit(&[], sample);
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(stdout.contains("conflict: "), "{stdout}");
        let (code, _, stderr) = tmrun_audit(&["--strict"], sample);
        assert_eq!(code, 1);
        assert!(stderr.contains("--strict"), "{stderr}");
    }
}

#[test]
fn a_trace_without_findings_is_0_even_with_strict() {
    let (code, stdout, _) = tmrun_audit(&["--strict"], "valid/minimal-oneline.json");
    assert_eq!(code, 0);
    assert!(stdout.ends_with("no findings\n"), "{stdout}");
}

#[test]
fn a_rejected_trace_is_1_and_stderr_says_why() {
    for (sample, word) in [
        ("invalid/dup-id.jsonl", "already used"),
        ("invalid/grad-missing-with-norm.json", "expects no norm"),
        ("invalid/schema-4.json", "expected schema"),
        ("invalid/truncated-last-line.jsonl", "truncated"),
    ] {
        let (code, stdout, stderr) = tmrun_audit(&[], sample);
        assert_eq!((code, stdout.as_str()), (1, ""), "{sample}");
        assert!(stderr.contains(word) && stderr.contains(sample), "{stderr}");
        let (code, stdout, _) = tmrun_audit(&["--json"], sample);
        let answer: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!((code, &answer["accepted"]), (1, &Value::Bool(false)));
        assert!(answer["error"].as_str().expect("text").contains(word));
    }
}

#[test]
fn a_foreign_identity_is_said_and_refused_by_strict() {
    let arguments = ["--analysis-id", "other", "--build-id", "other", "--json"];
    let (code, stdout, _) = tmrun_audit(&arguments, "runtime3.json");
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(code, 0);
    assert_eq!(answer["identity_mismatches"].as_array().expect("list").len(), 2);
    assert_eq!(answer["identity_mismatches"][0]["field"], "analysis_id");
    let (code, ..) = tmrun_audit(&["--strict", "--build-id", "other"], "runtime3.json");
    assert_eq!(code, 1);
}

#[test]
fn json_holds_the_neighbours_keys_at_the_top_and_ours_beside_them() {
    let (_, stdout, _) = tmrun_audit(&["--json"], "audit/first-nonfinite-step.json");
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    for key in [
        "missing_gradients",
        "non_finite_gradients",
        "zero_gradients",
        "tensor_conflicts",
        "gradient_conflicts",
        "identity_mismatches",
        "first_non_finite_step",
        "saturating_activations",
        "extra",
        "accepted",
    ] {
        assert!(answer.get(key).is_some(), "{key}");
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let (code, stdout, stderr) = said(tmrun(&["no/such/file.json"]).output().expect("tmrun runs"));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("no/such/file.json"), "{stderr}");
}

#[test]
fn an_empty_input_is_rejected_and_a_pipe_is_read_like_a_file() {
    let piped = |input: Stdio| said(tmrun(&["-"]).stdin(input).output().expect("tmrun runs"));
    let (code, stdout, stderr) = piped(Stdio::null());
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("rejected"), "{stderr}");
    let sample = std::fs::File::open(sample_path("runtime3.json")).expect("the sample");
    let (_, of_file, _) = tmrun_audit(&[], "runtime3.json");
    assert_eq!(piped(sample.into()), (0, of_file, String::new()));
}

#[test]
fn the_answer_goes_to_a_file_when_one_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("answer.json");
    let place = place.to_str().expect("text");
    let arguments = ["--json", "-o", place];
    assert_eq!(tmrun_audit(&arguments, "runtime3.json"), (0, String::new(), String::new()));
    let answer = std::fs::read(place).expect("the answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["accepted"], Value::Bool(true));
    let (code, _, stderr) = tmrun_audit(&arguments, "runtime3.json");
    assert!(code == 1 && stderr.contains("--force"), "{stderr}");
}
