//! Traces that break no rule and crowd their planes: short times, so that much coincides, deep and
//! wide trees, ids that sort in other ways than they come, and numbers at the end of their range.

use super::{Rng, Sketch, SpanSketch, base};
use serde_json::{Value, json};

const CATEGORIES: [&str; 6] =
    ["activation", "activation", "parameter", "gradient", "optimizer", "other"];

/// A trace without a structural error: one in six failed.
pub fn sketch(rng: &mut Rng) -> Sketch {
    let mut meta = base::sketch(rng).meta;
    let contract = meta["capture_contract"].as_object_mut().unwrap();
    contract.retain(|key, _| !key.contains("labels") && key != "gradient_contract");
    contract["gradients"] = json!("none");
    let mut sketch = Sketch { meta, slack: rng.below(3), ..Sketch::default() };
    if rng.one_in(6) {
        sketch.failed = Some("out of memory".to_owned());
    }
    spans(&mut sketch, rng);
    for plane in [ops, tensors, memory, device_memory, intervals, gradients, edges] {
        if !rng.one_in(5) {
            plane(&mut sketch, rng);
        }
    }
    sketch
}

fn spans(sketch: &mut Sketch, rng: &mut Rng) {
    let count = 1 + rng.place(40);
    let measured = rng.place(count.min(4));
    let shape = rng.below(3);
    // Some are at the end of all time, and their ends are cut there.
    let (low, high) = *rng.pick(&[(0, 30), (0, 400), (0, 30), (u64::MAX - 9, u64::MAX)]);
    for at in 0..count {
        let parent = (at > 0).then(|| match (shape, rng.below(3)) {
            (0, 0 | 1) => at - 1,
            (1, 0 | 1) => 0,
            _ => rng.place(at),
        });
        let parent = parent.map(|at| sketch.spans[at].clone());
        let (from, until) =
            parent.as_ref().map_or((low, high), |parent| (parent.start, parent.end()));
        let start = if rng.one_in(3) { from } else { rng.between(from, until) };
        let end = if rng.one_in(3) { until } else { rng.between(start, until) };
        let past = if end == u64::MAX { rng.below(6) } else { 0 };
        let failed = sketch.failed.is_some();
        sketch.spans.push(SpanSketch {
            id: span_id(sketch, rng),
            parent: parent.map(|parent| parent.id),
            name: format!("name {}", rng.below(9)),
            start,
            duration: (!(failed && rng.one_in(4))).then_some(end - start + past),
            kind: rng.pick::<&str>(&["function", "op", "op", "module"]),
            measured: at == measured && !(failed && rng.one_in(3)),
            step: None,
        });
    }
}

/// An id that no span has, and that is not where numbers would have it.
fn span_id(sketch: &Sketch, rng: &mut Rng) -> String {
    loop {
        let stem = *rng.pick(&["s", "s1", "Z", "tensor", "ä"]);
        let tail = *rng.pick(&["", "!", "/", "/op", "0"]);
        let id = format!("{stem}{}{tail}", rng.below(60));
        if sketch.spans.iter().all(|span| span.id != id) {
            return id;
        }
    }
}

/// A span and two times in it.
fn moment(sketch: &Sketch, rng: &mut Rng) -> (String, u64, u64) {
    let span = rng.pick(&sketch.spans);
    let end = if span.duration.is_some() { span.end() } else { span.start.saturating_add(40) };
    let start = rng.between(span.start, end);
    (span.id.clone(), start, rng.between(start, end))
}

fn tensor_id(rng: &mut Rng) -> String {
    format!("{}{}", rng.pick(&["t", "t", "s1/op/"]), rng.below(9))
}

fn ops(sketch: &mut Sketch, rng: &mut Rng) {
    let mut places: Vec<_> = (0..rng.below(40)).map(|_| moment(sketch, rng)).collect();
    for span in sketch.spans.iter().filter(|span| span.kind == "op") {
        if rng.one_in(2) {
            places.retain(|(id, _, _)| *id != span.id);
            places.push((span.id.clone(), span.start, span.end()));
        }
    }
    rng.shuffle(&mut places);
    for (span, start, end) in places {
        let past = if end == u64::MAX { rng.below(6) } else { 0 };
        let inputs: Vec<_> = (0..rng.below(4)).map(|_| tensor_id(rng)).collect();
        let output = (!rng.one_in(4)).then(|| tensor_id(rng));
        let (dtype, device) = (
            *rng.pick(&["f32", "BF16", " u8", "q4"]),
            *rng.pick(&["cpu", "CPU:0", "cuda:0", "cuda:1", "cpux", "ä"]),
        );
        let name = *rng.pick(&["matmul", "add", "relu"]);
        let (is_scalar, says_bytes) = (rng.one_in(5), rng.one_in(5));
        let op = sketch.add_op(&span, start, end - start + past);
        (op["op_name"], op["inputs"]) = (json!(name), json!(inputs));
        (op["dtype"], op["device"]) = (json!(dtype), json!(device));
        if let Some(output) = output {
            op["output"] = json!(output);
        }
        if is_scalar {
            op["shape"] = json!([]);
        }
        if says_bytes {
            op["output_dense_bytes"] = json!(7);
        }
    }
}

fn tensors(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(12) {
        let (span, _, _) = moment(sketch, rng);
        let id = tensor_id(rng);
        let label = rng.one_in(3).then(|| format!("label {}", rng.below(3)));
        let (category, is_scalar) = (*rng.pick(&CATEGORIES), rng.one_in(4));
        let tensor = sketch.add_tensor(&span, &id);
        tensor["category"] = json!(category);
        if let Some(label) = label {
            tensor["label"] = json!(label);
        }
        if is_scalar {
            tensor["shape"] = json!([]);
        }
    }
}

/// A storage that is live: device, id, bytes and its tensors.
struct LiveStorage {
    device: &'static str,
    id: String,
    bytes: u64,
    tensors: Vec<String>,
}

fn memory(sketch: &mut Sketch, rng: &mut Rng) {
    let mut moments: Vec<_> = (0..1 + rng.below(40)).map(|_| moment(sketch, rng)).collect();
    moments.sort_by_key(|(_, at, _)| *at);
    let mut live: Vec<LiveStorage> = Vec::new();
    for (span, at, _) in moments {
        let (action, place) = match rng.below(5) {
            0 | 1 if !live.is_empty() => ("free", rng.place(live.len())),
            2 if !live.is_empty() => ("alloc", rng.place(live.len())),
            _ => {
                let device = *rng.pick(&["cpu", "cuda:0"]);
                let id = format!("p{}", rng.below(6));
                let is_live = |one: &LiveStorage| one.id == id && one.device == device;
                if live.iter().any(is_live) {
                    continue;
                }
                let other = rng.below(99);
                let bytes = *rng.pick(&[0, 1, 8, 8, 64, other, u64::MAX / 2 + 1]);
                live.push(LiveStorage { device, id, bytes, tensors: Vec::new() });
                ("alloc", live.len() - 1)
            }
        };
        let storage = &mut live[place];
        let tensor = match (action, rng.one_in(4)) {
            ("free", false) => rng.pick(&storage.tensors).clone(),
            _ => loop {
                let id = tensor_id(rng);
                if !storage.tensors.contains(&id) {
                    break id;
                }
                if storage.tensors.len() > 6 {
                    break sketch.name("alias");
                }
            },
        };
        storage.tensors.push(tensor.clone());
        sketch.add_memory(action, at, &storage.id, &tensor, &span, storage.bytes);
        let event = sketch.memory.last_mut().unwrap();
        event["device"] = json!(storage.device);
        event["category"] = json!(rng.pick(&CATEGORIES));
        event["shape"] = json!(rng.pick(&[vec![], vec![2, 3]]));
        if rng.one_in(2) {
            event["op_name"] = json!(rng.pick(&["matmul", "add", "relu", "softmax"]));
        }
        if action == "free" {
            live.remove(place);
        }
    }
    // What happens at one time stays in its order; the rest of the file need not be in that of time.
    if rng.one_in(2) {
        let time = |event: &Value| event["timestamp_ns"].as_u64();
        let groups = sketch.memory.chunk_by(|left, right| time(left) == time(right));
        let mut groups: Vec<_> = groups.map(<[Value]>::to_vec).collect();
        rng.shuffle(&mut groups);
        sketch.memory = groups.concat();
    }
}

fn device_memory(sketch: &mut Sketch, rng: &mut Rng) {
    let end = sketch.spans[0].end();
    for _ in 0..1 + rng.below(8) {
        let mut sample = json!({
            "timestamp_ns": rng.between(end.saturating_sub(9), end),
            "device": *rng.pick(&["cuda:0", "cuda:1"]),
        });
        for field in ["used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes"] {
            if rng.one_in(2) {
                sample[field] = json!(rng.below(3));
            }
        }
        if sample.as_object().unwrap().len() == 2 {
            sample["used_bytes"] = json!(u64::MAX);
        }
        sketch.device_memory.push(sample);
    }
}

fn intervals(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..1 + rng.below(30) {
        let (span, _, _) = moment(sketch, rng);
        let start = if rng.one_in(9) { u64::MAX - rng.below(5) } else { rng.below(30) };
        sketch.add_interval(&span, start, 1 + rng.below(9));
        let interval = sketch.intervals.last_mut().unwrap();
        interval["device"] = json!(rng.pick(&["cuda:0", "cuda:1"]));
        interval["stream_id"] = json!(rng.pick(&["7", "8", "10"]));
        interval["clock_id"] = json!(rng.pick(&["k", "l"]));
        interval["backend"] = json!(rng.pick(&["cuda", "event"]));
    }
}

fn gradients(sketch: &mut Sketch, rng: &mut Rng) {
    for _ in 0..rng.below(4) {
        let (state, norm) =
            *rng.pick(&[("present", Some(0.1)), ("zero", Some(0.0)), ("missing", None)]);
        sketch.add_gradient("vb", &format!("k{}", rng.below(2)), state, norm);
    }
}

fn edges(sketch: &mut Sketch, rng: &mut Rng) {
    for span in &sketch.spans {
        let Some(parent) = &span.parent else { continue };
        for _ in 0..*rng.pick(&[0, 0, 1, 2]) {
            sketch.edges.push(json!({
                "edge_kind": "call", "from_span": parent, "to_span": span.id,
                "host_duration_ns": span.duration.unwrap_or(0),
            }));
        }
    }
    let of_events = sketch.tensors.iter().map(|tensor| tensor["tensor_id"].clone());
    let of_ops = sketch.ops.iter().flat_map(|op| op["inputs"].as_array().unwrap().clone());
    let tensors: Vec<_> = of_events.chain(of_ops).collect();
    for _ in 0..if tensors.is_empty() { 0 } else { rng.below(6) } {
        sketch.edges.push(json!({
            "edge_kind": "data", "from_tensor": rng.pick(&tensors), "to_tensor": rng.pick(&tensors),
        }));
    }
}
