//! `tmrun overview`: bounded, and the neighbour's where it has it.

#[path = "support/command.rs"]
#[allow(dead_code, reason = "every test binary uses a part of it")]
mod command;
#[path = "support/traces/mod.rs"]
mod traces;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use candle_graph_v10::cli::trace_cli;
use command::tmrun;
use serde_json::{Value, json};
use tmrun::query::OVERVIEW_BYTES;
use traces::{Rng, base, neighbour, planes};

fn overview(input: &Path) -> (Value, usize) {
    let output = tmrun(&["overview", input.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).unwrap(), output.stdout.len())
}

/// Takes away what is said in words.
fn without_words(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(without_words),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match value {
                    Value::String(text)
                        if ["reason", "summary", "timing_unavailable_reason"].contains(&&**key) =>
                    {
                        text.clear();
                    }
                    _ => without_words(value),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_overview_has_the_neighbours_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("case.jsonl"), folder.path().join("out.json"));
    let mut held = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let sketch = if seed % 2 == 0 { planes::sketch(&mut rng) } else { base::sketch(&mut rng) };
        let text = sketch.text(&mut rng);
        fs::write(&path, &text).unwrap();
        let readable = neighbour::document(&text).and_then(neighbour::evidence);
        if !sketch.late.is_empty() || readable.is_err() {
            continue;
        }
        trace_cli::run_overview(&path, Some(&out)).unwrap();
        let theirs: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        let (ours, bytes) = overview(&path);
        assert!(bytes <= OVERVIEW_BYTES);
        for part in [
            "provenance",
            "health",
            "capabilities",
            "findings",
            "counts",
            "timing",
            "timing_unavailable_reason",
            "memory",
            "activations",
            "gpu",
        ] {
            let [mut ours, mut theirs] = [&ours, &theirs].map(|all| json!({ part: all[part] }));
            without_words(&mut ours);
            without_words(&mut theirs);
            if part == "provenance" {
                // Of a gradient contract the overview says how long it is.
                ours[part]["capture_contract"]["gradient_contract"] = Value::Null;
                theirs[part]["capture_contract"]["gradient_contract"] = Value::Null;
            }
            if let Some(found) = neighbour::difference(&ours, &theirs) {
                panic!("{found}\n{text}");
            }
        }
        assert_eq!(
            ours["gaps"]["total"].as_u64() > Some(0),
            theirs["gaps"]["total"].as_u64() > Some(0)
        );
        held += 1;
    }
    assert!(held >= 50, "{held}");
}

#[test]
fn whatever_is_looked_at_the_overview_is_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.jsonl");
    // Every byte of these becomes six in JSON.
    let long = "\u{1}".repeat(20_000);
    let labels: Vec<_> = (0..3_000).map(|at| format!("{at}{long}", long = &long[..500])).collect();
    let tags: serde_json::Map<_, _> =
        (0..2_000).map(|at| (format!("{at}{}", &long[..900]), json!(&long[..900]))).collect();
    let mut lines = vec![json!({
        "kind": "meta", "schema": "candle-graph/trace/10", "run_id": long, "correlation_id": long,
        "entrypoint": long, "phase": "infer", "timestamp": long, "capture_step": 1,
        "warmup_steps": 0, "device": long, "timing_mode": "host", "tags": tags,
        "candle_version": long,
        "capture_contract": {
            "measurement_scope": "unknown", "operations": "none", "logical_memory": "none",
            "physical_memory": "none", "device_timing": "none",
            "required_semantic_labels": labels, "gpu_expected_semantic_labels": labels,
        },
        "comparison_identity": {
            "implementation_id": long, "workload_id": long, "model_id": long, "config_id": long,
            "data_id": long, "seed_policy": long, "physical_batch": 1, "accumulation_steps": 1,
            "precision": long, "device_state": long, "pair_id": long,
        },
    })];
    for at in 0..100_000_u64 {
        let id = format!("s{at}");
        let name = if at < 20 { json!(long) } else { json!(format!("span {at}")) };
        let mut start = json!({
            "kind": "span_start", "id": id, "name": name, "start_ns": at, "span_kind": "module",
            "measured": at == 0,
        });
        if at > 0 {
            start["parent_id"] = json!("s0");
        }
        lines.push(start);
        let duration = if at == 0 { 1_000_000 } else { 1 };
        lines.push(json!({ "kind": "span_end", "id": id, "duration_ns": duration }));
    }
    lines.push(json!({ "kind": "terminal", "outcome": "complete", "timestamp_ns": 2_000_000 }));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    let (found, bytes) = overview(&path);
    assert!(bytes <= OVERVIEW_BYTES, "{bytes}");
    assert_eq!(found["provenance"]["totals"]["tags"], 2_000);
    assert_eq!(found["next_queries"][0]["argv"][2], path.to_str().unwrap());

    // The same without its labels, which no span has, is valid and has a graph.
    lines[0]["capture_contract"]["required_semantic_labels"] = json!([]);
    lines[0]["capture_contract"]["gpu_expected_semantic_labels"] = json!([]);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    let (found, bytes) = overview(&path);
    assert!(bytes <= OVERVIEW_BYTES, "{bytes}");
    assert_eq!(found["counts"]["graph_spans"], 100_000);
    assert_eq!(found["timing"]["slowest_host_spans"]["displayed"], 5);
}

/// The command, run in a folder with a file as its standard input.
fn run_in(folder: &Path, arguments: &[&OsStr]) -> Output {
    let mut tmrun = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    let input = File::open(folder.join("plain.jsonl")).unwrap();
    tmrun.current_dir(folder).args(arguments).stdin(input).output().unwrap()
}

#[test]
fn what_comes_next_can_be_run_as_it_stands_whatever_the_input_is_called() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace/train.trace.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let deep: PathBuf = std::iter::repeat_n("d".repeat(250), 10).collect();
    fs::create_dir_all(folder.path().join(&deep)).unwrap();
    let deep = deep.join("trace.jsonl").into_os_string().into_string().unwrap();
    let names =
        ["plain.jsonl", "-x", "--all", "two words.jsonl", "'\"new\nline", "\u{9b}\u{202e}", &deep];
    for name in names {
        fs::copy(sample, folder.path().join(name)).unwrap();
    }
    for name in names.into_iter().chain(["-"]) {
        let options = if name == "-" { &[][..] } else { &["--"] };
        let arguments: Vec<_> = ["overview"].iter().chain(options).chain([&name]).collect();
        let arguments: Vec<_> = arguments.into_iter().map(OsStr::new).collect();
        let output = run_in(folder.path(), &arguments);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let next = found["next_queries"].as_array().unwrap();
        assert_eq!(next.len(), 2, "{name:?}");
        for next in next {
            let argv = next["argv"].as_array().unwrap();
            let argv: Vec<_> = argv.iter().map(|one| one.as_str().unwrap()).collect();
            assert_eq!(argv[0], "tmrun");
            let arguments: Vec<_> = argv[1..].iter().map(OsStr::new).collect();
            let output = run_in(folder.path(), &arguments);
            assert_eq!(output.status.code(), Some(0), "{argv:?}");
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(answer["result"]["total"].as_u64() > Some(0), "{argv:?}: {answer}");
        }
    }
}

#[test]
fn nothing_comes_next_where_no_text_names_the_input() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace/train.trace.jsonl");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(sample, folder.path().join("plain.jsonl")).unwrap();
    let name = OsStr::from_bytes(b"\xff.jsonl");
    fs::copy(sample, folder.path().join(name)).unwrap();
    let output = run_in(folder.path(), &[OsStr::new("overview"), name]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["next_queries"], json!([]));
}
