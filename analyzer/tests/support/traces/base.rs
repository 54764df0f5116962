//! Traces that break no rule, of every shape.

use super::{Rng, Sketch, SpanSketch};
use serde_json::{Value, json};

const LEVELS: [&str; 3] = ["none", "partial", "complete"];

/// A trace without a structural error: one in four failed, each plane of events there or not.
pub fn sketch(rng: &mut Rng) -> Sketch {
    let mut sketch = Sketch { meta: meta(rng), slack: rng.below(3), ..Sketch::default() };
    if rng.one_in(4) {
        sketch.failed = Some("out of memory".to_owned());
    }
    spans(&mut sketch, rng);
    for plane in [ops, tensors, stats, memory, device_memory, intervals, gradients, edges, labels] {
        if !rng.one_in(3) {
            plane(&mut sketch, rng);
        }
    }
    sketch
}

fn meta(rng: &mut Rng) -> Value {
    let step = rng.between(1, 9);
    let mut meta = json!({
        "schema": "candle-graph/trace/10", "run_id": "run-1", "correlation_id": "c/1",
        "entrypoint": "demo::step", "phase": *rng.pick(&["train", "infer"]),
        "timestamp": "2026-01-01T00:00:00.000Z", "capture_step": step,
        "warmup_steps": rng.between(0, step - 1), "device": "cpu",
        "timing_mode": *rng.pick(&["host", "device_synchronized"]),
        "capture_contract": {
            "measurement_scope": *rng.pick(&["unknown", "profiled_work", "production_equivalent"]),
        },
        "tags": {},
    });
    for plane in [
        "operations",
        "activations",
        "tensors",
        "logical_memory",
        "physical_memory",
        "device_timing",
    ] {
        meta["capture_contract"][plane] = json!(rng.pick(&LEVELS));
    }
    meta["capture_contract"]["gradients"] = json!(rng.pick(&LEVELS[..2]));
    if rng.one_in(3) {
        meta["comparison_identity"] = identity();
    }
    meta
}

/// An identity with every field.
pub fn identity() -> Value {
    json!({
        "implementation_id": "git:a", "workload_id": "w", "model_id": "m", "config_id": "c",
        "data_id": "d", "seed_policy": "fixed", "physical_batch": 1, "accumulation_steps": 1,
        "precision": "f32", "device_state": "exclusive", "pair_id": "p",
    })
}

fn spans(sketch: &mut Sketch, rng: &mut Rng) {
    let failed = sketch.failed.is_some();
    let count = 1 + rng.place(9);
    let measured = rng.place(count.min(3));
    for at in 0..count {
        let id = format!("s{}", at + 1);
        let parent = (at > 0).then(|| sketch.spans[rng.place(at)].clone());
        let (low, high) = match &parent {
            None => (rng.below(5), 1000),
            Some(parent) if parent.duration.is_some() => (parent.start, parent.end()),
            Some(parent) => (parent.start, parent.start + 500),
        };
        let start = rng.between(low, high.max(low));
        let end = rng.between(start, high.max(start));
        let open = failed && rng.one_in(3);
        let kind = *rng.pick(&["function", "op", "module"]);
        sketch.spans.push(SpanSketch {
            name: if rng.one_in(4) { "repeated".to_owned() } else { format!("name {id}") },
            id,
            parent: parent.map(|parent| parent.id),
            start,
            duration: (!open).then_some(end - start),
            kind,
            measured: at == measured && !(failed && rng.one_in(3)),
            step: *rng.pick(&[None, Some("forward"), Some("backward"), Some("optimizer")]),
        });
    }
}

/// A span and a time in it.
fn moment(sketch: &Sketch, rng: &mut Rng) -> (String, u64, u64) {
    let span = rng.pick(&sketch.spans);
    let end = if span.duration.is_some() { span.end() } else { span.start + 100 };
    let start = rng.between(span.start, end);
    (span.id.clone(), start, rng.between(start, end))
}

fn tensor_id(rng: &mut Rng) -> String {
    format!("t{}", rng.below(7))
}

fn ops(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(6) {
        let (span, start, end) = moment(sketch, rng);
        let inputs: Vec<_> = (0..rng.below(3)).map(|_| tensor_id(rng)).collect();
        let output = (!rng.one_in(3)).then(|| tensor_id(rng));
        let dtype = *rng.pick(&["f32", "BF16", " u8", "q4"]);
        let device = *rng.pick(&["cpu", "CPU:0", "cuda:0"]);
        let named = rng.one_in(3);
        let op = sketch.add_op(&span, start, end - start);
        op["inputs"] = json!(inputs);
        (op["dtype"], op["device"]) = (json!(dtype), json!(device));
        if let Some(output) = output {
            op["output"] = json!(output);
        }
        if named {
            op["op_name"] = json!("matmul");
        }
    }
}

fn tensors(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(5) {
        let (span, _, _) = moment(sketch, rng);
        let (id, label) = (tensor_id(rng), rng.one_in(3));
        let category = *rng.pick(&["parameter", "activation", "gradient", "optimizer", "other"]);
        let tensor = sketch.add_tensor(&span, &id);
        tensor["category"] = json!(category);
        if label {
            tensor["label"] = json!("seen");
        }
    }
}

fn stats(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let (span, _, _) = moment(sketch, rng);
        sketch.stats.push(json!({
            "span_id": span, "label": format!("l{}", rng.below(3)), "shape": [2], "dtype": "f32",
            "elements": 2, "non_finite": rng.below(3), "rms": 0.25, "abs_max": 0.5, "mean": -0.125,
        }));
    }
}

fn memory(sketch: &mut Sketch, rng: &mut Rng) {
    let mut moments: Vec<_> = (0..1 + rng.below(10)).map(|_| moment(sketch, rng)).collect();
    moments.sort_by_key(|(_, at, _)| *at);
    let mut live: Vec<(String, String, u64, Vec<String>)> = Vec::new();
    for (span, at, _) in moments {
        let device = *rng.pick(&["cpu", "cuda:0"]);
        let (action, storage, device, bytes, tensor) = match rng.below(3) {
            0 if !live.is_empty() => {
                let (storage, device, bytes, tensors) = live.remove(rng.place(live.len()));
                ("free", storage, device, bytes, rng.pick(&tensors).clone())
            }
            1 if !live.is_empty() => {
                let tensor = sketch.name("alias");
                let at = rng.place(live.len());
                live[at].3.push(tensor.clone());
                let (storage, device, bytes, _) = live[at].clone();
                ("alloc", storage, device, bytes, tensor)
            }
            _ => {
                let free =
                    |storage: &String| !live.iter().any(|(s, d, _, _)| s == storage && d == device);
                let storage = Some(format!("pool{}", rng.below(4))).filter(free);
                let storage = storage.unwrap_or_else(|| sketch.name("p"));
                let (bytes, tensor) = (rng.below(64), tensor_id(rng));
                live.push((storage.clone(), device.to_owned(), bytes, vec![tensor.clone()]));
                ("alloc", storage, device.to_owned(), bytes, tensor)
            }
        };
        sketch.add_memory(action, at, &storage, &tensor, &span, bytes);
        let event = sketch.memory.last_mut().unwrap();
        event["device"] = json!(device);
        event["category"] = json!(rng.pick(&["activation", "activation", "parameter", "other"]));
        if rng.one_in(2) {
            event["op_name"] = json!(rng.pick(&["matmul", "op1", "op2"]));
        }
    }
}

fn device_memory(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let field = *rng.pick(&["used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes"]);
        sketch.device_memory.push(json!({
            "timestamp_ns": rng.below(900), "device": *rng.pick(&["cuda:0", "cuda:1"]),
            field: rng.below(100), "used_bytes": rng.below(100),
        }));
    }
}

fn intervals(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(5) {
        let (span, _, _) = moment(sketch, rng);
        sketch.add_interval(&span, rng.below(50), 1 + rng.below(20));
        let interval = sketch.intervals.last_mut().unwrap();
        interval["device"] = json!(rng.pick(&["cuda:0", "cuda:1"]));
        interval["stream_id"] = json!(rng.pick(&["7", "8"]));
        interval["clock_id"] = json!(rng.pick(&["k", "l"]));
    }
}

fn gradients(sketch: &mut Sketch, rng: &mut Rng) {
    if rng.one_in(2) {
        for _ in 0..1 + rng.below(4) {
            let key = format!("k{}", rng.below(3));
            let (state, norm) = *rng.pick(&[
                ("present", Some(1.5)),
                ("present", Some(5e-324)),
                ("zero", Some(0.0)),
                ("missing", None),
                ("non_finite", None),
            ]);
            sketch.add_gradient("vb", &key, state, norm);
        }
        return;
    }
    // A failed capture may not have come to all of them.
    let unseen = if sketch.failed.is_some() && rng.one_in(2) { "" } else { "missing" };
    sketch.add_family("active", 1, &["present", "zero"]);
    if rng.one_in(2) {
        sketch.add_family("inactive", 0, &[unseen, "missing"]);
    }
    if rng.one_in(2) {
        sketch.add_family("data_conditional", 2, &["missing", "zero"]);
        sketch.add_family("data_conditional", 2, &["present", "present", unseen]);
    }
}

fn edges(sketch: &mut Sketch, rng: &mut Rng) {
    for span in &sketch.spans {
        let Some(parent) = span.parent.as_ref().filter(|_| rng.one_in(2)) else { continue };
        sketch.edges.push(json!({
            "edge_kind": "call", "from_span": parent, "to_span": span.id,
            "host_duration_ns": span.duration.unwrap_or(7),
        }));
    }
    let mut tensors: Vec<Value> =
        sketch.tensors.iter().map(|tensor| tensor["tensor_id"].clone()).collect();
    for op in &sketch.ops {
        tensors.extend(op["inputs"].as_array().into_iter().flatten().cloned());
        tensors.extend(op.get("output").cloned());
    }
    for _ in 0..if tensors.is_empty() { 0 } else { rng.below(3) } {
        sketch.edges.push(json!({
            "edge_kind": "data", "from_tensor": rng.pick(&tensors), "to_tensor": rng.pick(&tensors),
        }));
    }
}

fn labels(sketch: &mut Sketch, rng: &mut Rng) {
    let mut once: Vec<_> = sketch.spans.iter().map(|span| span.name.clone()).collect();
    once.retain(|name| name != "repeated");
    rng.shuffle(&mut once);
    once.truncate(rng.place(4));
    let gpu = rng.place(once.len() + 1);
    if rng.one_in(2) {
        sketch.contract()["gpu_expected_semantic_labels"] = json!(&once[..gpu]);
        sketch.contract()["cpu_only_semantic_labels"] = json!(&once[gpu..]);
    }
    sketch.contract()["required_semantic_labels"] = json!(once);
}
