//! Time, memory, activations and graph are the neighbour's, value by value and in its order.

#[path = "support/traces/mod.rs"]
mod traces;

mod planes_support;

use planes_support::hits::Hits;
use planes_support::{peaks, rules};
use serde_json::{Value, json};
use tmrun::evidence::{EvidenceError, Index, activations, graph, memory, timing};
use tmrun_formats::evidence::{Capabilities, HealthCode};
use tmrun_formats::trace::TraceDocument;
use traces::neighbour::{self, without_prose};
use traces::{Rng, base, faults, planes};

/// Holds every part of a trace against the neighbour's; panics with the trace where they differ.
fn judge(text: &str, late: &[traces::sketch::Late], hits: &mut Hits) {
    let mut trace = TraceDocument::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut document = neighbour::document(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    neighbour::apply(late, &mut trace, &mut document);
    let index = Index::of(&trace).unwrap();
    let lifetimes = memory::Lifetimes::of(&trace, &index);
    let timing = timing::of(&trace, &index);
    let theirs = match neighbour::evidence(document) {
        Ok(theirs) => theirs,
        Err(error) => {
            assert!(error.contains("duplicate graph node ID"), "{error}\n{text}");
            let error = graph::of(&trace, &index, &lifetimes, &timing).unwrap_err();
            assert!(matches!(error, EvidenceError::NodeTwice { .. }), "{error}\n{text}");
            hits.see("graph: two nodes of one id", true);
            return;
        }
    };
    let given: Capabilities<'_> = serde_json::from_value(theirs["capabilities"].clone()).unwrap();
    let mut activations = activations::of(&trace, &index, &lifetimes, &timing);
    activations::qualify(&mut activations, &given);
    let mut ours = json!({
        "timing": timing,
        "memory": memory::of(&trace, &index, &lifetimes),
        "activations": activations,
    });
    if theirs.get("graph").is_some() {
        let graph = graph::of(&trace, &index, &lifetimes, &timing);
        let graph = graph.unwrap_or_else(|error| panic!("{error}\n{text}"));
        ours["graph"] = serde_json::to_value(graph).unwrap();
        peaks::check(&ours, &trace, text);
    }
    rules::count(&trace, &index, &theirs, hits);
    let (mut theirs, mut ours) = (without_prose(theirs), without_prose(ours));
    if !peaks::neighbour_counts_right(&theirs) {
        peaks::forget(&mut theirs);
        peaks::forget(&mut ours);
    }
    for part in ["timing", "memory", "activations", "graph"] {
        assert_eq!(ours[part], theirs[part], "{part} of\n{text}{late:?}");
    }
}

#[test]
fn crowded_planes_are_as_the_neighbour_has_them() {
    let mut hits = Hits::default();
    for seed in 0..4000 {
        let mut rng = Rng::new(seed);
        let sketch = planes::sketch(&mut rng);
        judge(&sketch.text(&mut rng), &sketch.late, &mut hits);
    }
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let sketch = base::sketch(&mut rng);
        judge(&sketch.text(&mut rng), &sketch.late, &mut hits);
    }
    for &code in HealthCode::ALL {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut sketch = planes::sketch(&mut rng);
            faults::add(code, &mut sketch, &mut rng);
            judge(&sketch.text(&mut rng), &sketch.late, &mut hits);
        }
    }
    hits.hold();
}

#[test]
fn samples_are_as_the_neighbour_has_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace");
    let mut judged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        if TraceDocument::parse(&text).is_ok() {
            judge(&text, &[], &mut Hits::default());
            judged += 1;
        }
    }
    assert!(judged >= 35, "{judged}");
}

#[test]
fn a_chain_of_100_000_spans_costs_no_stack_and_a_peak_each() {
    const DEPTH: u64 = 100_000;
    let mut lines = vec![json!({
        "kind": "meta", "schema": "candle-graph/trace/10", "run_id": "r", "correlation_id": "c",
        "entrypoint": "e", "phase": "infer", "timestamp": "t", "capture_step": 1,
        "warmup_steps": 0, "device": "cpu", "timing_mode": "host", "tags": {},
        "capture_contract": {
            "measurement_scope": "unknown", "operations": "none", "logical_memory": "none",
            "physical_memory": "none", "device_timing": "none",
        },
    })];
    for at in 0..DEPTH {
        let (id, end) = (format!("s{at}"), 3 * DEPTH - at);
        let mut start = json!({
            "kind": "span_start", "id": id, "name": "n", "start_ns": at, "span_kind": "module",
            "measured": at == 0,
        });
        if at > 0 {
            start["parent_id"] = json!(format!("s{}", at - 1));
        }
        lines.push(start);
        lines.push(json!({ "kind": "span_end", "id": id, "duration_ns": end - at }));
        for (action, time) in [("alloc", at), ("free", end - 1)] {
            lines.push(json!({
                "kind": "memory", "timestamp_ns": time, "storage_id": id, "tensor_id": "t",
                "span_id": id, "device": "cpu", "bytes": 2, "action": action, "dtype": "u8",
            }));
        }
    }
    let end = 4 * DEPTH;
    lines.push(json!({ "kind": "terminal", "outcome": "complete", "timestamp_ns": end }));
    let text: String = lines.iter().map(|line: &Value| format!("{line}\n")).collect();
    let trace = TraceDocument::parse(&text).unwrap();
    let index = Index::of(&trace).unwrap();
    let lifetimes = memory::Lifetimes::of(&trace, &index);
    let graph = graph::of(&trace, &index, &lifetimes, &timing::of(&trace, &index)).unwrap();
    for node in graph.spans.iter().filter(|node| node.start_ns % 997 == 0 && node.id != "tensor/t")
    {
        assert_eq!(node.peak_live_bytes, Some(2 * (DEPTH - node.start_ns)), "{}", node.id);
        assert_eq!(node.host_self_time_ns, if node.start_ns + 1 == DEPTH { DEPTH + 2 } else { 2 });
    }
}

/// Where the neighbour is wrong we are not; docs/COMPATIBILITY.md lists it.
#[test]
fn a_storage_that_goes_when_it_comes_is_no_peak() {
    let meta = planes::sketch(&mut Rng::new(0)).meta;
    let mut sketch = traces::Sketch { meta, ..traces::Sketch::default() };
    sketch.add_span(None, 0, Some(10));
    sketch.spans[0].measured = true;
    let span = sketch.spans[0].id.clone();
    sketch.add_memory("alloc", 5, "p", "t", &span, 8);
    sketch.add_memory("free", 5, "p", "t", &span, 8);
    let text = sketch.text(&mut Rng::new(0));
    let trace = TraceDocument::parse(&text).unwrap();
    let index = Index::of(&trace).unwrap();
    let lifetimes = memory::Lifetimes::of(&trace, &index);
    let graph = graph::of(&trace, &index, &lifetimes, &timing::of(&trace, &index)).unwrap();
    assert_eq!(graph.spans[0].peak_live_bytes, Some(0));
    let theirs = neighbour::evidence(neighbour::document(&text).unwrap()).unwrap();
    assert_eq!(theirs["graph"]["spans"][0]["peak_live_bytes"], 8);
}
