//! `tmrun summary`: the verdicts of the samples, what it prints where, and its exit codes.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::Builder;
use support::command::{Folder, tmrun};
use support::record::{measured_span, step};

/// Codes of errors, codes of warnings and capabilities that are invalid; the words that every sample
/// without an error shares are left out.
struct Verdict {
    sample: &'static str,
    errors: &'static [&'static str],
    invalid: &'static [&'static str],
}

/// What an invalid trace has at least.
const ALWAYS: [&str; 3] = ["nested_host_time", "outer_wall_time", "structural_trace"];

const INVALID: [Verdict; 25] = {
    const fn of(
        sample: &'static str,
        errors: &'static [&'static str],
        invalid: &'static [&'static str],
    ) -> Verdict {
        Verdict { sample, errors, invalid }
    }
    const TRAINED: &[&str] = &[
        "activation_coverage",
        "gradient_coverage",
        "logical_memory_coverage",
        "operation_coverage",
        "tensor_coverage",
    ];
    const GRADIENTS: &[&str] = &["gradient_coverage"];
    const MEMORY: &[&str] = &["logical_memory_coverage"];
    const OPERATIONS: &[&str] = &["operation_coverage"];
    [
        of("inv-capture-step-0", &["run_provenance_invalid"], &[]),
        of("inv-cycle", &["child_outside_parent", "root_count", "span_cycle"], &[]),
        of("inv-devmem-empty", &["empty_device_memory_sample"], &[]),
        of("inv-edge-data-unknown", &["unknown_data_edge_tensor"], &[]),
        of("inv-grad-blank-key", &["empty_gradient_parameter_key"], GRADIENTS),
        of("inv-grad-complete-no-contract", &["gradient_contract_missing"], GRADIENTS),
        of("inv-grad-dup-id", &["duplicate_gradient_event_id"], GRADIENTS),
        of("inv-grad-missing-norm", &["gradient_state_norm_inconsistent"], GRADIENTS),
        of("inv-grad-negzero", &["gradient_state_norm_inconsistent"], GRADIENTS),
        of("inv-label-missing", &["required_semantic_label_cardinality"], &["gpu_correlation"]),
        of("inv-label-partition", &["incomplete_semantic_label_partition"], &[]),
        of("inv-mem-dup-alloc", &["duplicate_allocation"], MEMORY),
        of("inv-mem-free-first", &["unpaired_free"], MEMORY),
        of("inv-mem-outside", &["memory_outside_span"], MEMORY),
        of("inv-no-measured", &["measurement_count"], &[]),
        of("inv-op-no-timestamp", &["operation_outside_span"], OPERATIONS),
        of("inv-op-unknown-span", &["unknown_span"], OPERATIONS),
        of("inv-run-id-blank", &["run_provenance_invalid"], &[]),
        of("inv-train-bad-digest", &["gradient_contract_invalid"], TRAINED),
        of("inv-train-frozen-leak", &["gradient_inactive_family_leakage"], TRAINED),
        of("inv-train-missing-gradient", &["gradient_manifest_missing_key"], TRAINED),
        of("inv-two-roots", &["root_count"], &[]),
        // Valid ones that declare what they do not keep.
        of("ok-activations-complete-without-ops", &[], &["activation_coverage"]),
        of("ok-ops-complete-none-observed", &[], &["operation_coverage"]),
        of("ok-label", &[], &[]),
    ]
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/trace")
}

/// Exit code, standard output and standard error for one sample.
fn summary(arguments: &[&str], sample: &str) -> (i32, String, String) {
    let path = folder().join(format!("{sample}.jsonl"));
    let output = tmrun(&[&["summary"], arguments, &[path.to_str().unwrap()]].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(sample: &str) -> Value {
    let (code, stdout, stderr) = summary(&["--json"], sample);
    assert_eq!((code, &*stderr), (0, ""), "{sample}");
    serde_json::from_str(&stdout).unwrap()
}

fn codes(summary: &Value, severity: &str) -> BTreeSet<String> {
    let issues = summary["health"]["issues"].as_array().unwrap().iter();
    let issues = issues.filter(|issue| issue["severity"] == severity);
    issues.map(|issue| issue["code"].as_str().unwrap().to_owned()).collect()
}

fn invalid(summary: &Value) -> BTreeSet<String> {
    let capabilities = summary["capabilities"].as_object().unwrap().iter();
    let capabilities = capabilities.filter(|(_, capability)| capability["level"] == "invalid");
    capabilities.map(|(name, _)| name.clone()).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn samples_have_the_codes_and_the_capabilities_that_they_are_to_have() {
    for Verdict { sample, errors, invalid: expected } in INVALID {
        let summary = json(sample);
        assert_eq!(codes(&summary, "error"), set(errors), "{sample}");
        let always = if errors.is_empty() { &[] } else { &ALWAYS[..] };
        assert_eq!(invalid(&summary), set(&[expected, always].concat()), "{sample}");
        assert_eq!(summary["health"]["structurally_valid"], errors.is_empty(), "{sample}");
        assert_eq!(summary["health"]["capture_complete"], true, "{sample}");
        assert_eq!(summary["summary"].is_null(), !errors.is_empty(), "{sample}");
    }
    let failed = json("failed-open-spans");
    assert_eq!(codes(&failed, "error"), set(&[]));
    let warnings = codes(&failed, "warning");
    assert!(warnings.is_superset(&set(&["capture_failed", "open_span"])), "{warnings:?}");
    assert_eq!(failed["health"]["capture_complete"], false);
}

#[test]
fn require_valid_is_1_for_whatever_is_not_valid_and_complete() {
    let mut counts = [0; 3];
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let sample = path.file_stem().unwrap().to_str().unwrap();
        let (code, stdout, stderr) = summary(&["--require-valid"], sample);
        let (without, page, _) = summary(&[], sample);
        match sample.split('-').next().unwrap() {
            "bad" => {
                assert_eq!((code, without, &*stdout), (1, 1, ""), "{sample}");
                assert!(stderr.contains(sample), "{stderr}");
                counts[0] += 1;
            }
            // Its children end behind the terminal, so that nothing can read it.
            "inv" if sample == "inv-child-outside-parent" => assert_eq!((code, without), (1, 1)),
            "inv" | "failed" | "failed.trace" => {
                assert_eq!((code, without), (1, 0), "{sample}");
                assert!(stderr.contains("--require-valid"), "{stderr}");
                assert_eq!(stdout, page, "the answer is there all the same");
                counts[1] += 1;
            }
            _ => {
                assert_eq!((code, without, &*stderr), (0, 0, ""), "{sample}");
                assert!(page.contains("valid, complete"), "{page}");
                counts[2] += 1;
            }
        }
    }
    assert!(counts[0] >= 14 && counts[1] >= 23 && counts[2] >= 13, "{counts:?}");
}

#[test]
fn the_page_names_what_is_wrong_and_what_can_be_said() {
    let (_, page, _) = summary(&[], "inv-two-roots");
    assert!(page.contains("STRUCTURALLY INVALID; 1 error"), "{page}");
    assert!(page.contains("root_count"), "{page}");
    let (_, page, _) = summary(&[], "train.trace");
    for said in ["valid, complete", "outer_wall_time", "Time of the measured region", "own time"] {
        assert!(page.contains(said), "{said} in\n{page}");
    }
}

#[test]
fn standard_input_is_a_trace_too_and_a_folder_is_none() {
    use std::process::{Command, Stdio};
    let sample = std::fs::File::open(folder().join("ok-op.jsonl")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    let output = command.args(["summary", "--json", "-"]).stdin(Stdio::from(sample)).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["schema"], "tmrun/summary/1");
    let output = tmrun(&["summary", folder().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_measured_region_of_several_steps_is_said_to_be_of_several() {
    let steps = |last: u64| {
        let marks = (2..=last).flat_map(|n| [step(n * 100, n, false), step(n * 100 + 50, n, true)]);
        let mut records: Vec<_> = marks.collect();
        records.insert(0, step(50, 1, false));
        records.insert(1, step(60, 1, true));
        records.push(measured_span(190, 2_000, 1, 1));
        Folder::with(&Builder::started().records(0, &records).finish())
    };
    let folder = steps(4);
    for arguments in [
        &["summary", "in.tmrun", "--json"][..],
        &["overview", "in.tmrun"],
        &["query", "in.tmrun", "--kind", "labels"],
    ] {
        let (code, out, err) = folder.tmrun(arguments);
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &out["input"]["step"]), (0, &Value::Null), "{arguments:?}: {out}");
        assert!(err.contains("several steps (2 to 4)") && err.contains("--step"), "{err}");
    }
    let (_, page, _) = folder.tmrun(&["summary", "in.tmrun"]);
    assert!(page.contains("steps 2 to 4 on"), "{page}");
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "-o", "out"]);
    assert!(code == 0 && err.contains("several steps (2 to 4)"), "{code}: {err}");
    // Of one step it is that invocation.
    let (_, out, err) = steps(2).tmrun(&["summary", "in.tmrun", "--json"]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&*err, &out["input"]["region"]), ("", &"measured_span".into()));
    assert!(out["input"]["step"].is_u64(), "{out}");
}
