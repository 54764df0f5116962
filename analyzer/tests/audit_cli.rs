//! `tmrun audit`: what it prints where, and its exit codes.

#[path = "../src/cli/audit.rs"]
mod audit_cli;

use audit_cli::{AuditArgs, run};
use clap::Parser;
use serde_json::Value;
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    audit: AuditArgs,
}

/// Exit code, standard output, standard error.
fn tmrun_audit(arguments: &[&str], sample: &str) -> (u8, String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/runtime").join(sample);
    let path = path.to_str().expect("text");
    let command = Command::parse_from(["audit", path].iter().chain(arguments));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = run(&command.audit, &mut stdout, &mut stderr).expect("readable file");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (outcome.exit_code(), text(stdout), text(stderr))
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
    let command = Command::parse_from(["audit", "no/such/file.json"]);
    let error = run(&command.audit, &mut Vec::new(), &mut Vec::new()).expect_err("absent");
    assert!(error.to_string().contains("no/such/file.json"));
}
