//! `tmrun compare`: what it prints where, its exit codes, and what it says of a refusal.

#[path = "support/bare.rs"]
mod bare;
#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;
#[path = "support/traces/mod.rs"]
mod traces;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::command::tmrun;
use traces::{Rng, Sketch, cohorts};

/// Exit code, standard output and standard error.
fn compare(
    arguments: &[&str],
    baseline: &[PathBuf],
    candidate: &[PathBuf],
) -> (i32, String, String) {
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    };
    let (baseline, candidate) = (paths(baseline), paths(candidate));
    let mut all = vec!["compare"];
    all.extend(arguments);
    all.push("--baseline");
    all.extend(baseline.iter().map(String::as_str));
    all.push("--candidate");
    all.extend(candidate.iter().map(String::as_str));
    let output = tmrun(&all);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Five runs a side, the last of the candidate changed.
fn cohorts(at: &Path, change: impl Fn(&mut Sketch)) -> [Vec<PathBuf>; 2] {
    ["before", "after"].map(|side| {
        let bundle = |n: u64| {
            let ns = if side == "before" { 100 + n } else { 80 + n };
            let mut run = cohorts::run(&format!("{side}-{n}"), side, ns);
            if side == "after" && n == 4 {
                change(&mut run);
            }
            let folder = at.join(format!("{side}-{n}"));
            bare::write(&folder, &[("trace.jsonl", &*run.text(&mut Rng::new(n)))]);
            folder
        };
        (0..5).map(bundle).collect()
    })
}

#[test]
fn a_pipe_gets_the_neighbours_document_and_exit_code_0() {
    let at = tempfile::tempdir().unwrap();
    let [before, after] = cohorts(at.path(), |_| ());
    let (code, stdout, stderr) = compare(&["--require-eligible"], &before, &after);
    assert_eq!((code, &*stderr), (0, ""));
    let theirs = at.path().join("theirs.json");
    candle_graph_v10::cli::trace_cli::run_compare(&before, &after, false, true, Some(&theirs))
        .unwrap();
    assert_eq!(stdout, fs::read_to_string(theirs).unwrap(), "byte by byte: there is no message");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["verdict"], "candidate_faster");
}

#[test]
fn an_ineligible_comparison_is_an_answer_and_with_require_eligible_a_refusal() {
    let at = tempfile::tempdir().unwrap();
    let change = |run: &mut Sketch| {
        run.meta["capture_step"] = json!(7);
        run.meta["comparison_identity"]["model_id"] = json!("m2");
    };
    let [before, after] = cohorts(at.path(), change);
    let (code, answer, stderr) = compare(&[], &before, &after);
    assert_eq!((code, &*stderr), (0, ""));
    let (code, stdout, stderr) = compare(&["--require-eligible", "--json"], &before, &after);
    assert_eq!((code, &stdout), (1, &answer));
    let codes = "capture_semantics_mismatch, identity_conditions_differ";
    assert!(stderr.ends_with(&format!("{codes}\n")), "{stderr}");
    let document: Value = serde_json::from_str(&answer).unwrap();
    let said = [
        ["candidate run 5 (\"after-4\")", "capture_step is 7, expected 6"],
        ["candidate run 5 (\"after-4\")", "comparison_identity.model_id is \"m2\", expected \"m\""],
    ];
    for (at, said) in said.iter().enumerate() {
        let message = document["reasons"][at]["message"].as_str().unwrap();
        assert!(said.iter().all(|said| message.contains(said)), "{said:?} in {message}");
    }
}

#[test]
fn a_refuted_promise_is_named_with_its_gap() {
    let at = tempfile::tempdir().unwrap();
    let publish = |name: &str, file: &[u8]| {
        let root = at.path().join(name);
        bundles::publish_at(file, Some(2), &root, &mut |_| Ok(())).unwrap();
        [root]
    };
    let whole = publish("whole", &bundles::steps());
    let gapped = publish("gapped", &bundles::gapped());
    let (code, stdout, _) = compare(&[], &whole, &gapped);
    assert_eq!(code, 0);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    let reasons = document["reasons"].as_array().unwrap();
    let messages: Vec<_> = reasons.iter().map(|one| one["message"].as_str().unwrap()).collect();
    let of_plane = |message: &&&str| message.contains("capture_contract.operations is \"partial\"");
    let message = messages.iter().find(of_plane).unwrap_or_else(|| panic!("{messages:?}"));
    let gap = "2 records are lost (corrupt) on lane 0, from 200 ns to 250 ns";
    assert!(message.contains("run-7/step-2") && message.contains(gap), "{message}");
}

#[test]
fn what_cannot_be_had_is_1_and_named() {
    let at = tempfile::tempdir().unwrap();
    let [before, after] = cohorts(at.path(), |_| ());
    let refused = |said: &[&str]| {
        let (code, stdout, stderr) = compare(&[], &before, &after);
        assert_eq!((code, &*stdout), (1, ""), "{said:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(said.iter().all(|said| stderr.contains(said)), "{said:?} in {stderr}");
    };
    let bundle = &after[3];
    let trace = fs::read_to_string(bundle.join("trace.jsonl")).unwrap();

    fs::write(bundle.join("trace.jsonl"), trace.replace("demo", "dEmo")).unwrap();
    refused(&["after-3", "trace.jsonl", "content"]);
    fs::write(bundle.join("trace.jsonl"), &trace[1..]).unwrap();
    refused(&["after-3", "trace.jsonl", "bytes"]);
    fs::remove_file(bundle.join("trace.jsonl")).unwrap();
    refused(&["after-3", "trace.jsonl", "missing"]);
    fs::write(bundle.join("trace.jsonl"), &trace).unwrap();
    fs::write(bundle.join("more"), "").unwrap();
    refused(&["after-3", "more", "not declared"]);
    fs::remove_file(bundle.join("more")).unwrap();
    std::os::unix::fs::symlink("trace.jsonl", bundle.join("link")).unwrap();
    refused(&["after-3", "link"]);
    fs::remove_file(bundle.join("link")).unwrap();
    bare::write_as(bundle, &[("trace.jsonl", &trace)], "another");
    refused(&["after-3", "another run", "found another"]);
    fs::remove_file(bundle.join("bundle.json")).unwrap();
    refused(&["after-3", "bundle.json"]);
    fs::remove_dir_all(bundle).unwrap();
    refused(&["after-3"]);
}

#[test]
fn traces_are_taken_when_that_is_said() {
    let at = tempfile::tempdir().unwrap();
    let trace = |name: &str| {
        let path = at.path().join(name);
        fs::write(&path, cohorts::run(name, "i", 5).text(&mut Rng::new(0))).unwrap();
        path
    };
    let (before, after) = ([trace("a.jsonl")], [trace("b.jsonl")]);
    let (code, stdout, _) = compare(&["--unverified-traces"], &before, &after);
    assert_eq!(code, 0);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["inputs"]["verification"], "unverified_traces");
    assert_eq!(compare(&[], &before, &after).0, 1, "a trace is no bundle");
    assert_eq!(tmrun(&["compare", "--baseline", "a"]).status.code(), Some(2));
}
