//! `tmrun diff`: the slow layer is named first, and what a gap hides is not called gone.

mod support;

#[path = "support/probed.rs"]
mod probed;

use serde_json::{Value, json};
use support::Builder;
use support::command::Folder;
use support::record::{gap, scalar, span_in, step};
use tmrun_formats::GapReason;
use tmrun_formats::wire::{Frame, Record};

const STEP_NAMES: [(u32, &str); 5] =
    [(10, "forward pass"), (11, "layer.0"), (12, "layer.1"), (13, "norm"), (14, "loss")];

fn named(builder: Builder) -> Builder {
    let frames = STEP_NAMES.map(|(id, name)| Frame::Name(support::name(id, name)));
    builder.meta(&frames)
}

/// A step that begins at `at`: two layers in a pass, the second one with two norms in it.
/// Children end before what is around them, as they are recorded.
fn one_step(number: u64, at: u64, layers: [u64; 2], norms: usize) -> Vec<Record> {
    let id = |of: u32| number as u32 * 100 + of;
    let mut records = vec![step(at, number, false)];
    let (first, second) = (at + 10 + layers[0], at + 20 + layers[0] + layers[1]);
    records.push(span_in(id(1), (at + 10, first), id(2), 11));
    for norm in 0..norms {
        let begin = first + 10 + 20 * norm as u64;
        records.push(span_in(id(3), (begin, begin + 5), id(4 + norm as u32), 13));
    }
    records.push(span_in(id(1), (first + 10, second), id(3), 12));
    records.push(span_in(0, (at + 5, second + 5), id(1), 10));
    records.push(scalar(second + 6, 14, 0.5 * number as f64));
    records.push(step(second + 10, number, true));
    records
}

fn diff(folder: &Folder, arguments: &[&str]) -> (i32, Value, String) {
    let (code, out, err) = folder.tmrun(&[&["diff"], arguments].concat());
    let found = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    (code, found, err)
}

#[test]
fn the_layer_that_became_slow_is_the_first_row() {
    let file = named(Builder::started())
        .records(0, &one_step(1, 10_000, [1_000, 2_000], 2))
        .records(0, &one_step(2, 20_000, [1_000, 9_000], 3))
        .finish();
    let folder = Folder::with(&file);
    let (code, found, err) = diff(&folder, &["in.tmrun", "--step", "1", "--step", "2"]);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(found["schema"], "tmrun/diff/1");
    assert_eq!(found["change_ns"], 7_000);
    let rows = found["spans"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["path"], json!(["step", "forward pass", "layer.1"]));
    assert_eq!(rows[0]["change_ns"], 7_000 - 5, "one more norm is in it");
    assert_eq!(rows[0]["under_gap"], Value::Null);
    // Siblings are added up, and counted.
    let norms = rows.iter().find(|row| row["path"][3] == "norm").unwrap();
    assert_eq!((&norms["a"]["count"], &norms["b"]["count"]), (&2.into(), &3.into()));
    assert_eq!((&norms["a"]["own_ns"], &norms["b"]["own_ns"]), (&10.into(), &15.into()));
    assert_eq!(norms["only_in"], Value::Null);
    // What did not change is counted and not shown.
    assert!(rows.iter().all(|row| row["path"][2] != "layer.0"));
    assert!(found["spans"]["same"].as_u64() >= Some(2), "{}", found["spans"]["same"]);
    let loss = &found["statistics"]["rows"][0];
    assert_eq!((&loss["label"], &loss["rms_ratio"]), (&"loss".into(), &2.0.into()));
    // The other way round every change is the opposite.
    let (_, back, _) = diff(&folder, &["in.tmrun", "--step", "2", "--step", "1"]);
    assert_eq!(back["spans"]["rows"][0]["change_ns"], -6_995);
    assert_eq!(back["statistics"]["rows"][0]["rms_ratio"], 0.5);
}

#[test]
fn what_is_around_the_region_counts_with_its_part_of_it_alone() {
    // An epoch around both steps; on another lane one span over the second step and far beyond.
    let mut first = one_step(1, 10_000, [1_000, 2_000], 1);
    first.extend(one_step(2, 20_000, [1_000, 2_000], 1));
    first.push(span_in(0, (1_000, 900_000), 900, 10));
    let file = named(Builder::started())
        .records(0, &first)
        .records(1, &[span_in(0, (20_500, 800_000), 1, 13)])
        .finish();
    let folder = Folder::with(&file);
    let (code, found, _) = diff(&folder, &["in.tmrun", "--step", "1", "--step", "2"]);
    assert_eq!(code, 0);
    let rows = found["spans"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["path"], &rows[0]["only_in"]), (&json!(["norm"]), &"b".into()));
    let step = 10 + 1_000 + 10 + 2_000 + 5 + 5;
    assert_eq!(rows[0]["b"]["own_ns"], step - 500);
}

/// The step without its first layer.
fn without_layer(records: Vec<Record>, name: u32) -> Vec<Record> {
    records.into_iter().filter(|record| record.header().name.0 != name).collect()
}

#[test]
fn a_layer_that_is_missing_because_of_a_gap_is_said_to_be_under_it() {
    let whole = one_step(1, 10_000, [1_000, 2_000], 1);
    let holey = without_layer(one_step(2, 20_000, [1_000, 2_000], 1), 11);
    let lost = gap(20_010, 21_010, 1, 0, GapReason::OVERRUN);
    let build = |gaps: &[Record]| {
        let builder = named(Builder::started()).records(0, &whole).records(0, &holey);
        if gaps.is_empty() { builder } else { builder.records(u16::MAX, gaps) }.finish()
    };
    let folder = Folder::with(&build(&[lost]));
    let (code, found, err) = diff(&folder, &["in.tmrun", "--step", "1", "--step", "2"]);
    assert_eq!(code, 3, "something was lost inside step 2: {err}");
    assert!(err.contains("step 2") && err.contains("overrun"), "{err}");
    assert_eq!(found["b"]["gaps"]["total"], 1);
    assert_eq!(found["a"]["gaps"]["total"], 0);
    let rows = found["spans"]["rows"].as_array().unwrap();
    let layer = rows.iter().find(|row| row["path"][2] == "layer.0").unwrap();
    assert_eq!(layer["only_in"], "a");
    assert_eq!(layer["under_gap"]["reason"], "overrun");
    assert_eq!(layer["under_gap"]["side"], "b");

    // Without a gap it is gone.
    let folder = Folder::with(&build(&[]));
    let (code, found, _) = diff(&folder, &["in.tmrun", "--step", "1", "--step", "2"]);
    assert_eq!(code, 0);
    let rows = found["spans"]["rows"].as_array().unwrap();
    let layer = rows.iter().find(|row| row["path"][2] == "layer.0").unwrap();
    assert_eq!((&layer["only_in"], &layer["under_gap"]), (&"a".into(), &Value::Null));

    // A gap at another time explains nothing.
    let folder = Folder::with(&build(&[gap(22_010, 23_010, 1, 0, GapReason::OVERRUN)]));
    let (_, found, _) = diff(&folder, &["in.tmrun", "--step", "1", "--step", "2"]);
    let rows = found["spans"]["rows"].as_array().unwrap();
    let layer = rows.iter().find(|row| row["path"][2] == "layer.0").unwrap();
    assert_eq!(layer["only_in"], "a");
}

#[test]
fn two_files_are_held_against_each_other_whatever_they_are() {
    let file = |layer: u64| {
        named(Builder::started()).records(0, &one_step(1, 10_000, [1_000, layer], 1)).finish()
    };
    let folder = Folder::with(&file(2_000));
    std::fs::write(folder.path("other.tmrun"), file(4_000)).unwrap();
    let bytes = file(4_000);
    let recording = tmrun::scan::Recording::open(&bytes, "other").unwrap();
    let region = tmrun::slice::Region::of(&recording, Some(1)).unwrap();
    let trace = tmrun::trace::Trace::of(&recording, &region);
    let text = trace.derive().document.write(Vec::new()).unwrap();
    std::fs::write(folder.path("other.jsonl"), text).unwrap();

    let (code, both, _) = diff(&folder, &["in.tmrun", "other.tmrun", "--step", "1"]);
    assert_eq!(code, 0);
    let (code, mixed, _) = diff(&folder, &["in.tmrun", "other.jsonl", "--step", "1"]);
    assert_eq!(code, 0);
    assert_eq!(both["spans"], mixed["spans"]);
    assert_eq!(both["spans"]["rows"][0]["change_ns"], 2_000);
    assert_eq!(mixed["b"]["gaps"], Value::Null, "nobody knows");
    let (_, same, _) = diff(&folder, &["in.tmrun", "in.tmrun", "--step", "1"]);
    assert_eq!((&same["spans"]["total"], &same["statistics"]["total"]), (&0.into(), &0.into()));
}

#[test]
fn a_bundle_is_of_one_step_as_for_every_other_command() {
    let file = named(Builder::started())
        .records(0, &one_step(1, 10_000, [1_000, 2_000], 0))
        .records(0, &one_step(2, 20_000, [1_000, 3_000], 0))
        .finish();
    let folder = Folder::with(&file);
    for step in ["1", "2"] {
        let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", step, "-o", step]);
        assert_eq!(code, 0, "{err}");
    }
    let (code, bundles, _) = diff(&folder, &["./1", "./2"]);
    assert_eq!(code, 0);
    let (code, steps, _) = diff(&folder, &["./1", "./2", "--step", "1", "--step", "2"]);
    assert_eq!((code, &steps), (0, &bundles));
    let (code, mixed, _) = diff(&folder, &["in.tmrun", "./2", "--step", "1", "--step", "2"]);
    assert_eq!((code, &mixed["spans"]), (0, &bundles["spans"]));
    for arguments in [
        &["diff", "./1", "./2", "--step", "7"][..],
        &["diff", "./1", "./2", "--step", "1"],
        &["diff", "in.tmrun", "./2", "--step", "1"],
        &["diff", "./1", "./2", "--step", "2", "--step", "1"],
        &["summary", "./1", "--step", "7"],
    ] {
        let (code, out, err) = folder.tmrun(arguments);
        assert_eq!((code, &*out), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains("alone; leave out --step"), "{err}");
    }
}

#[test]
fn a_step_that_broke_off_is_said_to_and_lasts_until_then() {
    let folder = Folder::with(b"");
    probed::failed(&folder.path("run.tmrun"));
    let (code, found, err) = diff(&folder, &["run.tmrun", "--step", "1", "--step", "2"]);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(
        (&found["a"]["capture_complete"], &found["b"]["capture_complete"]),
        (&json!(true), &json!(false))
    );
    assert_eq!((&found["b"]["wall_ns"], &found["change_ns"]), (&Value::Null, &Value::Null));
    let rows = found["spans"]["rows"].as_array().unwrap();
    let of = |path: Value| rows.iter().find(|row| row["path"] == path).unwrap();
    let (step, forward) = (of(json!(["step"])), of(json!(["step", "forward"])));
    assert_eq!((&step["b"]["open"], &forward["b"]["open"]), (&json!(1), &json!(1)));
    assert!(forward["b"]["total_ns"].as_u64() > Some(0), "{forward}");
    assert!(step["b"]["total_ns"].as_u64() >= forward["b"]["total_ns"].as_u64());
    let backward = of(json!(["step", "backward"]));
    assert_eq!((&backward["only_in"], &backward["under_gap"]), (&json!("a"), &Value::Null));
}

#[test]
fn what_has_no_path_is_counted_and_never_left_out_silently() {
    let file = named(Builder::started()).records(0, &one_step(1, 10_000, [10, 20], 0)).finish();
    let recording = tmrun::scan::Recording::open(&file, "in").unwrap();
    let region = tmrun::slice::Region::of(&recording, Some(1)).unwrap();
    let trace = tmrun::trace::Trace::of(&recording, &region);
    let text = trace.derive().document.write(Vec::new()).unwrap();
    let lines: Vec<Value> =
        text.split(|&b| b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let span = lines.iter().find(|line| line["name"] == "layer.0").unwrap();
    let like = |id: &str, parent: &str| {
        let mut span = span.clone();
        (span["id"], span["parent_id"]) = (id.into(), parent.into());
        span
    };
    let op = json!({"kind": "op", "span_id": "round", "op_name": "matmul", "timestamp_ns": 10,
        "duration_ns": 5, "inputs": [], "shape": [], "dtype": "f32", "device": "cpu",
        "input_dense_bytes": 0});
    let odd = [like("round", "about"), like("about", "round"), like("orphan", "nobody"), op];
    let last = lines.len() - 1;
    let all = lines[..last].iter().chain(&odd).chain(&lines[last..]);
    let all: String = all.map(|line| format!("{line}\n")).collect();

    let folder = Folder::with(&file);
    std::fs::write(folder.path("odd.jsonl"), all).unwrap();
    let (code, found, err) = diff(&folder, &["in.tmrun", "odd.jsonl", "--step", "1"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("odd.jsonl") && err.contains("2 spans and 1 operation"), "{err}");
    let without = |side: &str| {
        (found[side]["spans_without_path"].clone(), found[side]["operations_without_path"].clone())
    };
    assert_eq!((without("a"), without("b")), ((0.into(), 0.into()), (2.into(), 1.into())));
    // One whose parent is not there is still what it is.
    let rows = found["spans"]["rows"].as_array().unwrap();
    let orphan = rows.iter().find(|row| row["path"] == json!(["layer.0"])).unwrap();
    assert_eq!(orphan["only_in"], "b");
}

#[test]
fn one_file_needs_two_steps() {
    let file = named(Builder::started()).records(0, &one_step(1, 10_000, [10, 20], 0)).finish();
    let folder = Folder::with(&file);
    for arguments in [
        &["in.tmrun"][..],
        &["in.tmrun", "--step", "1"],
        &["in.tmrun", "in.tmrun"],
        &["in.tmrun", "in.tmrun", "--step", "1", "--step", "1", "--step", "1"],
    ] {
        let (code, out, err) = folder.tmrun(&[&["diff"], arguments].concat());
        assert_eq!((code, &*out), (2, ""), "{arguments:?}: {err}");
    }
    let (code, _, err) = folder.tmrun(&["diff", "in.tmrun", "--step", "1", "--step", "9"]);
    assert_eq!(code, 1);
    assert!(err.contains("step 9"), "{err}");
}

#[test]
fn rows_are_bounded_and_the_deepest_path_is_cut() {
    let deep = |slow: u64| {
        let mut lines = vec![json!({
            "kind": "meta", "schema": "candle-graph/trace/10", "run_id": "r", "correlation_id": "c",
            "entrypoint": "e", "phase": "infer", "timestamp": "t", "capture_step": 1,
            "warmup_steps": 0, "device": "cpu", "timing_mode": "host", "tags": {},
            "capture_contract": {
                "measurement_scope": "unknown", "operations": "none", "logical_memory": "none",
                "physical_memory": "none", "device_timing": "none",
            },
        })];
        const DEPTH: u64 = 50_000;
        for at in 0..DEPTH {
            let mut start = json!({
                "kind": "span_start", "id": format!("s{at}"), "name": format!("n{at}"),
                "start_ns": at, "span_kind": "module", "measured": at == 0,
            });
            if at > 0 {
                start["parent_id"] = json!(format!("s{}", at - 1));
            }
            lines.push(start);
            let duration = 2 * (DEPTH - at) * slow;
            lines.push(
                json!({ "kind": "span_end", "id": format!("s{at}"), "duration_ns": duration }),
            );
        }
        lines.push(json!({ "kind": "terminal", "outcome": "complete", "timestamp_ns": 1_000_000 }));
        lines.iter().map(|line| format!("{line}\n")).collect::<String>()
    };
    let folder = Folder::with(b"");
    std::fs::write(folder.path("a.jsonl"), deep(1)).unwrap();
    std::fs::write(folder.path("b.jsonl"), deep(2)).unwrap();
    let (code, found, _) = diff(&folder, &["a.jsonl", "b.jsonl", "--limit", "7"]);
    assert_eq!(code, 0);
    let rows = found["spans"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    assert!(found["spans"]["total"].as_u64() > Some(49_000));
    assert!(rows.iter().all(|row| row["path"].as_array().unwrap().len() <= 65));
}
