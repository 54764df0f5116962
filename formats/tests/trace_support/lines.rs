//! One line of every kind, with every key, as JSON that can be spoilt.

use serde_json::{Map, Value, json};

pub fn meta(schema: &str) -> Value {
    json!({
        "kind": "meta", "schema": schema, "run_id": "r", "correlation_id": "c", "entrypoint": "e",
        "phase": "train", "timestamp": "t", "capture_step": 3, "warmup_steps": 2, "device": "cpu",
        "measured_region_device_synchronized": true, "timing_mode": "device_synchronized",
        "capture_contract": {
            "measurement_scope": "profiled_work", "operations": "partial", "activations": "none",
            "tensors": "partial", "gradients": "complete", "logical_memory": "none",
            "physical_memory": "none", "device_timing": "none",
            "gradient_contract": {
                "manifest_sha256": "sha256:ff",
                "expected": [{"root": "vb", "key": "w", "family": "f"}],
                "families": [{"family": "f", "expectation": "data_conditional", "min_present": 1}],
            },
            "required_semantic_labels": ["a", "b"], "gpu_expected_semantic_labels": ["a"],
            "cpu_only_semantic_labels": ["b"],
        },
        "comparison_identity": {
            "implementation_id": "i", "workload_id": "w", "model_id": "m", "config_id": "c",
            "data_id": "d", "seed_policy": "s", "physical_batch": 1, "accumulation_steps": 2,
            "precision": "f32", "device_state": "idle", "pair_id": "p",
        },
        "tags": {"a": "b"}, "candle_version": "0.11",
    })
}

/// Everything between the first line and the last.
pub fn body() -> Vec<Value> {
    vec![
        json!({"kind": "span_start", "id": "s1", "name": "root", "start_ns": 0, "span_kind": "function", "measured": false}),
        json!({"kind": "span_start", "id": "s2", "parent_id": "s1", "name": "in \"it\"", "start_ns": 5, "span_kind": "module", "measured": true, "step": "forward"}),
        json!({"kind": "op", "span_id": "s2", "op_name": "matmul", "inputs": ["t1", "t2"], "output": "t3", "shape": [2, 3], "dtype": "bf16", "device": "cpu", "duration_ns": 3, "timestamp_ns": 6, "output_dense_bytes": 12, "input_dense_bytes": 24}),
        json!({"kind": "tensor", "span_id": "s2", "tensor_id": "t3", "label": "y", "shape": [2, 3], "dtype": " F32 ", "device": "cpu", "requires_grad": true, "dense_bytes": 24, "category": "activation"}),
        json!({"kind": "tensor_stats", "span_id": "s2", "label": "y", "shape": [2, 3], "dtype": "f32", "elements": 6, "non_finite": 1, "rms": 1.5, "abs_max": 3.0, "mean": -0.25}),
        json!({"kind": "memory", "timestamp_ns": 7, "storage_id": "m1", "tensor_id": "t3", "span_id": "s2", "op_name": "matmul", "device": "cpu", "bytes": 24, "action": "alloc", "shape": [2, 3], "dtype": "f32", "category": "activation"}),
        json!({"kind": "device_memory", "timestamp_ns": 8, "device": "cuda:0", "used_bytes": 1, "free_bytes": 2, "reserved_bytes": 3, "capacity_bytes": 4}),
        json!({"kind": "device_interval", "span_id": "s2", "device": "cuda:0", "stream_id": "0", "clock_id": "k", "backend": "cuda_event", "start_ns": 1000, "duration_ns": 20}),
        json!({"kind": "gradient", "event_id": "g1", "root": "vb", "key": "w", "state": "present", "norm": 0.5}),
        json!({"kind": "edge", "edge_kind": "call", "from_span": "s1", "to_span": "s2", "host_duration_ns": 10}),
        json!({"kind": "edge", "edge_kind": "data", "from_tensor": "t1", "to_tensor": "t3"}),
        json!({"kind": "span_end", "id": "s2", "duration_ns": 10}),
        json!({"kind": "span_end", "id": "s1", "duration_ns": 20}),
    ]
}

pub fn terminal() -> Value {
    json!({"kind": "terminal", "outcome": "complete", "timestamp_ns": 20})
}

/// All of it.
pub fn all(schema: &str) -> Vec<Value> {
    let mut lines = vec![meta(schema)];
    lines.extend(body());
    lines.push(terminal());
    lines
}

/// An object as text, its keys in this order; a key may be there twice.
pub fn text(object: &[(String, String)]) -> String {
    let fields: Vec<String> = object
        .iter()
        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// The fields of an object, each value as text.
pub fn fields(object: &Map<String, Value>) -> Vec<(String, String)> {
    let mut fields: Vec<_> =
        object.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
    // As writers have it: the kind first.
    fields.sort_by_key(|(key, _)| (key != "kind", key != "edge_kind"));
    fields
}

/// The lines as text.
pub fn jsonl(lines: &[Value]) -> String {
    let text = |line: &Value| text(&fields(line.as_object().expect("an object")));
    lines.iter().map(|line| text(line) + "\n").collect()
}
