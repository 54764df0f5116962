//! What Nsight's reports say is what the neighbour makes of them, value by value.

#[path = "support/reports.rs"]
mod reports;
#[path = "support/traces/mod.rs"]
mod traces;

use candle_graph_v10 as theirs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tmrun::evidence::derive;
use tmrun::nsight;
use tmrun_formats::evidence::{GpuBinding, GpuStatus};
use tmrun_formats::trace::TraceDocument;
use traces::neighbour::{self, without_prose};
use traces::{Rng, Sketch, base, cohorts};

/// Holds what both make of a trace and a directory against each other, and returns it.
fn judge(text: &str, folder: &Path) -> Value {
    let trace = TraceDocument::parse(text).unwrap();
    let gpu = nsight::read(&folder.join("nsight"), &trace.run);
    let ours = serde_json::to_value(derive(&trace, Some(gpu), None).unwrap()).unwrap();
    let path = folder.join("trace.jsonl");
    fs::write(&path, text).unwrap();
    let theirs = theirs::build_evidence(&path, Some(&folder.join("nsight"))).unwrap();
    let theirs = serde_json::to_value(theirs).unwrap();
    for diagnostic in ours["gpu"]["diagnostics"].as_array().unwrap() {
        let text = diagnostic.as_str().unwrap();
        assert!(!text.contains(folder.to_str().unwrap()), "{text}: says where the directory was");
    }
    let (shown, theirs) = (ours.clone(), without_prose(theirs));
    for part in ["gpu", "capabilities", "findings", "gaps"] {
        let (ours, theirs) = (&without_prose(ours.clone())[part], &theirs[part]);
        if let Some(found) = neighbour::difference(ours, theirs) {
            panic!("{part}{found}\n{}\n{text}", shown["gpu"]["diagnostics"]);
        }
    }
    shown
}

/// What a directory came to, in words that are counted.
fn rules(gpu: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().map_or(0, Vec::len);
    let (correlation, ledger) = (&gpu["correlation"], &gpu["correlation"]["ledger"]);
    let mut met = vec![
        format!("status {}", gpu["status"]),
        format!("binding {}", gpu["provenance"]["binding"]),
        format!("correlation {}, complete: {}", correlation["mode"], correlation["complete"]),
    ];
    for field in
        ["matched", "missing_expected", "unexpected_observed", "unexpected_cpu_only", "duplicates"]
    {
        if list(&ledger[field]) > 0 {
            met.push(format!("ledger {field}"));
        }
    }
    for field in ["diagnostics", "kernels", "phase_attribution", "nvtx_ranges", "gpu_timeline"] {
        if list(&gpu[field]) > 0 {
            met.push(field.to_owned());
        }
    }
    for phase in gpu["phase_attribution"].as_array().unwrap() {
        met.push(format!("phases joined by {}", phase["join_keys"]));
        if phase["gpu_operation_count"] != 0 {
            met.push("phases with work".to_owned());
        }
    }
    let limits = gpu["limits"].as_object().unwrap();
    met.extend(limits.values().map(|limit| format!("truncated: {}", limit["truncated"])));
    met.sort();
    met.dedup();
    met
}

#[test]
fn directories_of_every_kind_say_what_the_neighbour_makes_of_them() {
    let mut met = BTreeMap::<String, u64>::new();
    let mut see = |evidence: &Value| {
        rules(&evidence["gpu"]).into_iter().for_each(|rule| *met.entry(rule).or_default() += 1);
    };
    for seed in 0..700 {
        let mut rng = Rng::new(seed);
        let sketch = if rng.one_in(3) { base::sketch(&mut rng) } else { labelled(&mut rng) };
        let folder = tempfile::tempdir().unwrap();
        reports::reports(&sketch.meta, &mut rng).write(&folder.path().join("nsight"));
        see(&judge(&sketch.text(&mut rng), folder.path()));
    }
    let nowhere = tempfile::tempdir().unwrap();
    see(&judge(&base::sketch(&mut Rng::new(0)).text(&mut Rng::new(0)), nowhere.path()));
    for (rule, count) in &met {
        println!("{count:6} {rule}");
    }
    for rule in [
        r#"status "available""#,
        r#"status "unavailable""#,
        r#"status "failed""#,
        r#"binding "bound""#,
        r#"binding "partial""#,
        r#"binding "mismatch""#,
        r#"correlation "none", complete: false"#,
        r#"correlation "nvtx_projected_range", complete: false"#,
        r#"correlation "nvtx_projected_range", complete: true"#,
        "ledger matched",
        "ledger missing_expected",
        "ledger unexpected_observed",
        "ledger unexpected_cpu_only",
        "ledger duplicates",
        "diagnostics",
        "kernels",
        "phase_attribution",
        "phases with work",
        "nvtx_ranges",
        "gpu_timeline",
        "truncated: true",
        "truncated: false",
        r#"phases joined by ["correlation_id"]"#,
        r#"phases joined by ["device","stream"]"#,
        r#"phases joined by ["correlation_id","device","stream"]"#,
    ] {
        assert!(met.contains_key(rule), "{rule} was not met");
    }
}

/// A run of labels that are all spans' names, and of nothing else.
fn labelled(rng: &mut Rng) -> Sketch {
    let mut sketch = cohorts::run("run-1", "i", 100);
    let labels: Vec<_> = (0..1 + rng.below(3)).map(|n| format!("phase/{n}")).collect();
    for label in &labels {
        let at = sketch.add_span(Some(0), 0, Some(1));
        sketch.spans[at].name.clone_from(label);
    }
    let gpu = rng.place(labels.len() + 1);
    if rng.one_in(2) {
        sketch.contract()["gpu_expected_semantic_labels"] = json!(&labels[..gpu]);
        sketch.contract()["cpu_only_semantic_labels"] = json!(&labels[gpu..]);
    }
    sketch.contract()["required_semantic_labels"] = json!(labels);
    sketch
}

#[test]
fn a_whole_directory_is_bound_and_correlated() {
    let mut sketch = cohorts::run("run-1", "i", 100);
    sketch.contract()["required_semantic_labels"] = json!(["step"]);
    sketch.spans[0].name = "step".to_owned();
    let text = sketch.text(&mut Rng::new(0));
    let folder = tempfile::tempdir().unwrap();
    let files = reports::whole("run-1", "run-1", "step");
    files.write(&folder.path().join("nsight"));
    let evidence = judge(&text, folder.path());
    let trace = TraceDocument::parse(&text).unwrap();
    let gpu = nsight::read(&folder.path().join("nsight"), &trace.run);
    assert_eq!((gpu.status, gpu.provenance.binding), (GpuStatus::Available, GpuBinding::Bound));
    assert!(gpu.correlation.complete && !gpu.correlation.clock_aligned);
    assert_eq!(gpu.phase_attribution[0].gpu_busy_ns, 110, "from 1010 to 1120");
    assert_eq!(evidence["capabilities"]["gpu_correlation"]["level"], "complete");
    assert_eq!(evidence["capabilities"]["provenance_binding"]["level"], "complete");
}

#[test]
fn ranges_and_work_are_joined_in_the_time_of_a_sort() {
    let rows = |count: u64, range: bool| {
        let heading = "Name,Start (ns),Duration (ns),Projected Start (ns),Projected Duration (ns),Num GPU Ops,CorrId";
        let row = |n| format!("{},{n},1,{n},{count},1,7", if range { "r" } else { "w" });
        let rows: Vec<_> = (0..count).map(row).collect();
        format!("{heading}\n{}", rows.join("\n"))
    };
    // Each against each would be ten billion comparisons.
    let (ranges, work) = (rows(100_000, true), rows(100_000, false));
    use tmrun_formats::evidence::GpuRowKind::{GpuOperation, NvtxRange};
    let ranges = nsight::timeline(ranges.as_bytes(), NvtxRange).unwrap();
    let work = nsight::timeline(work.as_bytes(), GpuOperation).unwrap();
    let phases = nsight::phases(&ranges, &work);
    // Only the last range has no more than the one piece of work that it says.
    assert_eq!(phases.len(), 1);
    assert_eq!((phases[0].projected_start_ns, phases[0].gpu_busy_ns), (99_999, 1));
}
