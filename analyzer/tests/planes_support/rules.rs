//! The rules that a trace meets, by what the trace and its evidence hold.

use super::hits::Hits;
use serde_json::Value;
use std::collections::BTreeMap;
use tmrun::evidence::Index;
use tmrun_formats::trace::{
    CoverageLevel, DeviceInterval, Edge, MemoryAction, MemoryCategory, SpanKind, TraceDocument,
};

pub fn count(trace: &TraceDocument<'_>, index: &Index<'_>, evidence: &Value, hits: &mut Hits) {
    timing(trace, evidence, hits);
    memory(trace, index, evidence, hits);
    physical(trace, hits);
    links(trace, index, evidence, hits);
    activations(evidence, hits);
    if evidence.get("graph").is_some() {
        graph(trace, index, evidence, hits);
        summary(trace, evidence, hits);
    }
}

fn list<'e>(value: &'e Value, path: &str) -> &'e [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn timing(trace: &TraceDocument<'_>, evidence: &Value, hits: &mut Hits) {
    let of = trace.run.capture_contract.device_timing;
    let coverage = &evidence["timing"]["device_coverage"];
    hits.see(
        "timing: none declared, some seen",
        coverage == "partial" && of == CoverageLevel::None,
    );
    let nothing = trace.device_intervals.is_empty();
    hits.see("timing: all declared, none seen", nothing && of == CoverageLevel::Complete);
    let end = |one: &DeviceInterval<'_>| one.start_ns.checked_add(one.duration_ns);
    let pairs = trace.device_intervals.iter().flat_map(|left| {
        let same = move |right: &&DeviceInterval<'_>| {
            !std::ptr::eq(left, *right)
                && left.span_id == right.span_id
                && left.clock_id == right.clock_id
        };
        trace.device_intervals.iter().filter(same).map(move |right| (left, right))
    });
    let pairs: Vec<_> = pairs.filter(|(left, right)| left.device == right.device).collect();
    let any = |is: &dyn Fn(&DeviceInterval<'_>, &DeviceInterval<'_>) -> bool| {
        pairs.iter().any(|(left, right)| is(left, right))
    };
    hits.see(
        "timing: intervals overlap",
        any(&|left, right| {
            left.start_ns < right.start_ns && end(left).is_some_and(|end| end > right.start_ns)
        }),
    );
    hits.see("timing: intervals touch", any(&|left, right| end(left) == Some(right.start_ns)));
    hits.see(
        "timing: one interval in another",
        any(&|left, right| left.start_ns < right.start_ns && end(left) > end(right)),
    );
    hits.see(
        "timing: an end out of range",
        trace.device_intervals.iter().any(|it| end(it).is_none()),
    );
    let rows = list(evidence, "/timing/device_spans");
    let several = |key: &str| rows.iter().any(|row| row[key].as_array().unwrap().len() > 1);
    hits.see("timing: several streams", several("streams"));
    hits.see("timing: several backends", several("backends"));
    let clocks = list(evidence, "/timing/device_clocks").len();
    hits.see("timing: clocks of one device", clocks > 2);
    hits.see("timing: spans share a clock", rows.len() > clocks);
    let unknown = |row: &Value| trace.span(row["span_id"].as_str().unwrap()).is_none();
    hits.see("timing: a span that is not there", rows.iter().any(unknown));
}

fn memory(trace: &TraceDocument<'_>, index: &Index<'_>, evidence: &Value, hits: &mut Hits) {
    let lifetimes = list(evidence, "/memory/logical/lifetimes");
    let peak = &evidence["memory"]["logical"]["peak"];
    let any = |is: &dyn Fn(&Value) -> bool| lifetimes.iter().any(is);
    let tensors = |one: &Value| one["tensor_ids"].as_array().unwrap().len();
    hits.see("memory: an alias", any(&|one| tensors(one) > 1));
    hits.see("memory: no bytes", any(&|one| one["bytes"] == 0));
    hits.see("memory: live at the end", any(&|one| one.get("end_timestamp_ns").is_none()));
    hits.see(
        "memory: freed when allocated",
        any(&|one| one.get("end_timestamp_ns") == Some(&one["start_timestamp_ns"])),
    );
    let key = |one: &Value| {
        (one["start_timestamp_ns"].clone(), one["device"].clone(), one["storage_id"].clone())
    };
    let again = lifetimes.windows(2).any(|pair| key(&pair[0]) == key(&pair[1]));
    hits.see("memory: twice at one time", again);
    let at_peak = list(peak, "/live_allocations");
    let whole = |one: &Value| {
        let same = |it: &&Value| key(it) == key(one);
        lifetimes.iter().filter(same).any(|it| tensors(it) > tensors(one))
    };
    hits.see("memory: an alias after the peak", at_peak.iter().any(whole));
    hits.see("memory: the peak is the sum of several", at_peak.len() > 2);
    let timeline = list(evidence, "/memory/logical/timeline");
    let as_high = timeline.iter().filter(|point| point["live_bytes"] == peak["live_bytes"]);
    hits.see("memory: the peak is reached again", as_high.count() > 1);
    hits.see("memory: a point with nothing live", timeline.iter().any(|it| it["live_bytes"] == 0));
    let limit = |it: &Value| it["live_bytes"] == u64::MAX;
    hits.see("memory: more than 64 bits", timeline.iter().any(limit));
    let devices = list(evidence, "/memory/logical/by_device");
    hits.see("memory: two devices", devices.len() > 1);
    let never = |it: &Value| it["storage_allocation_count"] == 0;
    hits.see("memory: a device without an allocation", devices.iter().any(never));
    let by_time = &index.storages.by_time;
    hits.see("memory: the file is not in the order of time", !by_time.is_sorted());
    let frees = trace.memory.iter().filter(|event| event.action == MemoryAction::Free).count();
    let matched = evidence["memory"]["logical"]["matched_storage_free_count"].as_u64();
    hits.see("memory: a free of nothing", matched.is_some_and(|matched| matched < frees as u64));
}

fn physical(trace: &TraceDocument<'_>, hits: &mut Hits) {
    let samples = &trace.device_memory;
    let pairs = |is: &dyn Fn(usize, usize) -> bool| {
        (0..samples.len()).any(|left| (0..left).any(|right| is(left, right)))
    };
    let (device, used) = (|at: usize| &samples[at].device, |at: usize| samples[at].used_bytes);
    hits.see(
        "physical: the most is reached twice",
        pairs(&|left, right| {
            device(left) == device(right) && used(left).is_some() && used(left) == used(right)
        }),
    );
    let time = |at: usize| samples[at].timestamp_ns;
    hits.see(
        "physical: two devices at one time",
        pairs(&|left, right| time(left) == time(right) && device(left) != device(right)),
    );
    hits.see(
        "physical: one device twice at one time",
        pairs(&|left, right| time(left) == time(right) && device(left) == device(right)),
    );
    hits.see("physical: nothing used is said", samples.iter().any(|it| it.used_bytes.is_none()));
    hits.see(
        "physical: an empty sample",
        samples.iter().any(|it| {
            [it.used_bytes, it.free_bytes, it.reserved_bytes, it.capacity_bytes] == [None; 4]
        }),
    );
}

/// What links a storage of an activation to an operation: how many put out a tensor of it, how many
/// have the name, and whether those are the same.
fn links(trace: &TraceDocument<'_>, index: &Index<'_>, evidence: &Value, hits: &mut Hits) {
    let few = |count: usize| ["none", "one", "several"][count.min(2)];
    for outputs in 0..3 {
        for named in 0..3 {
            for shared in 0..=outputs.min(named).min(1) {
                hits.see(&link(few(outputs), few(named), shared > 0), false);
            }
        }
    }
    for lifetime in list(evidence, "/memory/logical/lifetimes") {
        let Some(span) = trace.span_index(lifetime["allocation_span_id"].as_str().unwrap()) else {
            continue;
        };
        if lifetime["category"] != "activation" || !index.tree.in_measured[span] {
            continue;
        }
        let tensors = list(lifetime, "/tensor_ids");
        let puts_out = |op: &usize| {
            let output = trace.ops[*op].output.as_deref();
            output.is_some_and(|output| tensors.iter().any(|tensor| tensor == output))
        };
        let is_named = |op: &usize| lifetime["op_name"] == *trace.ops[*op].op_name;
        let outputs: Vec<_> = index.ops.of(span).filter(puts_out).collect();
        let named: Vec<_> = index.ops.of(span).filter(is_named).collect();
        let shared = outputs.iter().any(|op| named.contains(op));
        hits.see(&link(few(outputs.len()), few(named.len()), shared), true);
    }
    let is_activation =
        |it: &tmrun_formats::trace::Memory<'_>| it.category == MemoryCategory::Activation;
    let outside = trace.memory.iter().zip(&index.memory_spans).any(|(event, span)| {
        is_activation(event) && span.get().is_some_and(|span| !index.tree.in_measured[span])
    });
    hits.see("activations: a storage outside the measured span", outside);
}

fn link(outputs: &str, named: &str, shared: bool) -> String {
    let shared = if shared { ", one is both" } else { "" };
    format!("activations: {outputs} by output, {named} by name{shared}")
}

fn activations(evidence: &Value, hits: &mut Hits) {
    let profile = &evidence["activations"];
    let ops = list(profile, "/operations");
    let any = |is: &dyn Fn(&Value) -> bool| ops.iter().any(is);
    for sources in
        [vec!["tensor_output"], vec!["logical_storage"], vec!["tensor_output", "logical_storage"]]
    {
        let rule = format!("activations: by {}", sources.join(" and "));
        hits.see(&rule, any(&|op| op["classification_sources"] == serde_json::json!(sources)));
    }
    let strays = profile["unattributed_activation_storages"].as_u64();
    hits.see("activations: a storage of nobody", strays > Some(0));
    hits.see(
        "activations: storage is known to be none",
        any(&|op| op["logical_allocated_bytes"] == 0),
    );
    hits.see(
        "activations: storage is not known",
        any(&|op| op.get("logical_allocated_bytes").is_none()),
    );
    hits.see(
        "activations: several storages",
        any(&|op| op["logical_storage_count"].as_u64() > Some(1)),
    );
    hits.see(
        "activations: bytes without a measured time",
        any(&|op| {
            op["logical_storage_count"].as_u64() > Some(0)
                && op.get("logical_byte_nanoseconds").is_none()
        }),
    );
    let retained = |op: &Value| op["logical_retained_bytes_at_measured_end"].as_u64();
    hits.see("activations: outlives the measured span", any(&|op| retained(op) > Some(0)));
    hits.see(
        "activations: bytes times time leave 64 bits",
        any(&|op| op["logical_byte_nanoseconds"].as_str().is_some_and(|it| it.len() > 20)),
    );
    hits.see("activations: the span's id", any(&|op| op["id"] == op["span_id"]));
    hits.see("activations: an id of its own", any(&|op| op["id"] != op["span_id"]));
    hits.see(
        "activations: a later operation of its span",
        any(&|op| op["op_index"].as_u64() > Some(0)),
    );
    hits.see("activations: device times", any(&|op| !list(op, "/device_timings").is_empty()));
    hits.see("activations: size not known", any(&|op| op.get("dense_output_bytes").is_none()));
    for part in ["coverage", "host_time", "device_time", "dense_output", "logical_memory"] {
        for level in ["unavailable", "partial", "complete", "invalid"] {
            hits.see(&format!("activations: {part} {level}"), profile[part]["level"] == level);
        }
    }
}

fn graph(trace: &TraceDocument<'_>, index: &Index<'_>, evidence: &Value, hits: &mut Hits) {
    let nodes = list(evidence, "/graph/spans");
    let any = |is: &dyn Fn(&Value) -> bool| nodes.iter().any(is);
    let of_kind = |kind: &'static str| any(&|node| node["kind"] == kind);
    for kind in ["root", "function", "module", "op", "tensor"] {
        hits.see(&format!("graph: a node of kind {kind}"), of_kind(kind));
    }
    let ids: Vec<_> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    hits.see("graph: ids of all nodes are not sorted", !ids.is_sorted());
    let from_below = |span: &tmrun_formats::trace::Span<'_>| {
        let node = nodes.iter().find(|node| node["id"] == *span.id).unwrap();
        span.duration_ns == Some(0) && node["host_total_time_ns"] != 0
    };
    hits.see("graph: a duration from below", trace.spans.iter().any(from_below));
    let is_span = |node: &Value| trace.span(node["id"].as_str().unwrap()).is_some();
    hits.see("graph: a span's peak is zero", any(&|node| node["peak_live_bytes"] == 0));
    hits.see(
        "graph: a span's peak is not known",
        any(&|node| is_span(node) && node.get("peak_live_bytes").is_none()),
    );
    hits.see(
        "graph: a peak of what hangs below",
        any(&|node| node["peak_live_bytes"].as_u64() > node["allocated_bytes"].as_u64()),
    );
    hits.see("graph: a residual", any(&|node| node["residual_bytes"].as_u64() > Some(0)));
    hits.see(
        "graph: storage of an operation",
        any(&|node| {
            !is_span(node) && node["kind"] == "op" && node.get("allocated_bytes").is_some()
        }),
    );
    hits.see(
        "graph: a name that several operations have",
        trace.memory.iter().zip(&index.memory_spans).any(|(event, span)| {
            let ops = span.get().into_iter().flat_map(|span| index.ops.of(span));
            let named = ops.filter(|&op| Some(&trace.ops[op].op_name) == event.op_name.as_ref());
            named.count() > 1
        }),
    );
    hits.see(
        "graph: several clocks of a span",
        any(&|node| list(node, "/device_timings").len() > 1),
    );
    let tensor = |is: &dyn Fn(&Value) -> bool| any(&|node| node["kind"] == "tensor" && is(node));
    hits.see("graph: a tensor without an event", tensor(&|node| node["parent_id"].is_null()));
    hits.see(
        "graph: a tensor's label",
        tensor(&|node| node["id"] != format!("tensor/{}", node["name"].as_str().unwrap())),
    );
    hits.see(
        "graph: a label behind other events",
        trace.tensors.iter().enumerate().any(|(at, it)| {
            it.label.is_some()
                && trace.tensors[..at]
                    .iter()
                    .any(|one| one.tensor_id == it.tensor_id && one.label.is_none())
        }),
    );
    hits.see(
        "graph: a scalar",
        tensor(&|node| node.get("dtype").is_some() && node.get("shape").is_none()),
    );

    let edges = list(evidence, "/graph/edges");
    let key = |edge: &Value| {
        ["from_span", "from_tensor", "to_span", "to_tensor", "kind"]
            .map(|key| edge.get(key).cloned())
    };
    hits.see(
        "graph: an edge twice, as in the trace",
        edges.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])),
    );
    let mut implied = BTreeMap::new();
    for edge in edges {
        let label = edge.get("label").map_or("none", |label| match label.as_str().unwrap() {
            "input" | "output" => label.as_str().unwrap(),
            _ => "a name",
        });
        *implied.entry((edge["kind"].as_str().unwrap(), label)).or_insert(0) += 1;
    }
    for rule in [
        ("call", "none"),
        ("call", "a name"),
        ("data", "none"),
        ("data", "input"),
        ("data", "output"),
    ] {
        hits.see(&format!("graph: {} with label {}", rule.0, rule.1), implied.contains_key(&rule));
    }
    let calls: Vec<_> = trace
        .edges
        .iter()
        .filter_map(|edge| match edge {
            Edge::Call(call) => Some(&*call.to_span),
            Edge::Data(_) => None,
        })
        .collect();
    let called = |id: &str| edges.iter().any(|edge| edge["to_span"] == id);
    let of_op =
        |span: &tmrun_formats::trace::Span<'_>| span.kind == SpanKind::Op && span.parent.is_some();
    hits.see(
        "graph: a span of an operation without a call",
        trace.spans.iter().any(|span| of_op(span) && !called(&span.id)),
    );
    hits.see(
        "graph: a span of an operation with a call",
        calls.iter().any(|id| of_op(trace.span(id).unwrap())),
    );
    hits.see("graph: a call of the trace", !calls.is_empty());
    let again = |op: &tmrun_formats::trace::Op<'_>| {
        (1..op.inputs.len()).any(|at| op.inputs[..at].contains(&op.inputs[at]))
    };
    hits.see("graph: one tensor twice into an operation", trace.ops.iter().any(again));
    let own = |node: &Value| node["host_self_time_ns"] == 0 && node["host_total_time_ns"] != 0;
    hits.see("graph: no time of its own", any(&own));
}

fn summary(trace: &TraceDocument<'_>, evidence: &Value, hits: &mut Hits) {
    let summary = &evidence["graph"]["summary"];
    let slowest = list(summary, "/slowest_host_spans");
    let scope = |scope: &str| slowest.iter().any(|it| it["scope"] == scope);
    hits.see("summary: in the measured span", scope("measured_subtree"));
    hits.see("summary: beside the measured span", scope("concurrent_overlap"));
    hits.see(
        "summary: partly outside",
        slowest.iter().any(|it| {
            it["full_duration_ns"] != it["measured_overlap_duration_ns"]
                && it["host_self_time_ns"] != it["measured_overlap_self_time_ns"]
        }),
    );
    let measured = trace.spans.iter().find(|span| span.measured).unwrap();
    hits.see("summary: something above the measured span", measured.parent.is_some());
    for (list_of, key) in [
        ("slowest_host_spans", "measured_overlap_self_time_ns"),
        ("slowest_device_spans", "device_busy_ns"),
        ("heaviest_spans", "allocated_bytes"),
    ] {
        let rows = list(summary, &format!("/{list_of}"));
        hits.see(&format!("summary: eight of {list_of}"), rows.len() == 8);
        hits.see(
            &format!("summary: equals in {list_of}"),
            rows.windows(2).any(|pair| pair[0][key] == pair[1][key]),
        );
    }
    let tie = |pair: &[Value]| {
        ["measured_overlap_self_time_ns", "host_self_time_ns"]
            .iter()
            .all(|key| pair[0][key] == pair[1][key])
    };
    hits.see("summary: the id decides", slowest.windows(2).any(tie));
    let heavy = list(summary, "/heaviest_spans");
    hits.see(
        "summary: nothing allocated, and that is known",
        heavy.iter().any(|it| it["allocated_bytes"] == 0),
    );
}
