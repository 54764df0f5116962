//! The first look at an invocation: whatever it is of, no more than a page.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tmrun_formats::evidence::{Activation, Evidence, HealthSeverity};
use tmrun_formats::trace::{CaptureContract, TraceRun};

use super::activations::ranked;
use super::envelope::TOOL;
use super::gpu;
use super::page::{Bounded, Page};
use crate::escape::json;
use crate::source::Subject;

/// The label of the document.
pub const OVERVIEW_SCHEMA: &str = "tmrun/overview/1";
/// The neighbour's, whose keys it has.
pub const OVERVIEW_FOLLOWS: &str = "candle-graph/overview/2";
/// The document has no more bytes than this.
pub const OVERVIEW_BYTES: usize = 64 << 10;

/// Rows of a list, and of the list of slow spans.
const ROWS: usize = 20;
const SPANS: usize = 5;
/// Bytes of a text; the next one is tried where the document is too long.
const TEXTS: [usize; 4] = [256, 96, 32, 16];

/// The overview as JSON text in which nothing [acts](crate::escape), of [`OVERVIEW_BYTES`] at most, with a
/// line end.
pub fn overview(subject: &Subject<'_>, evidence: &Evidence<'_>) -> String {
    let whole = document(subject, evidence);
    let mut text = String::new();
    for longest in TEXTS {
        let mut short = whole.clone();
        shorten(&mut short, longest);
        text = json(&format!("{short:#}\n")).into_owned();
        if text.len() <= OVERVIEW_BYTES {
            break;
        }
    }
    text
}

fn document(subject: &Subject<'_>, evidence: &Evidence<'_>) -> Value {
    let issues = &evidence.health.issues;
    let count = |severity| issues.iter().filter(|issue| issue.severity == severity).count();
    let summary = evidence.graph.as_ref().map(|graph| &graph.summary);
    let timing = summary.map(|summary| {
        json!({
            "outer_wall_time_ns": summary.outer_wall_time_ns,
            "entrypoint": summary.entrypoint,
            "slowest_host_spans": Bounded::of(&summary.slowest_host_spans, SPANS),
        })
    });
    let unavailable = "there is no graph: the capture failed, or the trace is structurally invalid";
    let stats = &evidence.tensor_stats;
    json!({
        "schema": OVERVIEW_SCHEMA,
        "follows": OVERVIEW_FOLLOWS,
        "tool": TOOL,
        "input": subject.input,
        "provenance": provenance(&evidence.provenance),
        "health": {
            "structurally_valid": evidence.health.structurally_valid,
            "capture_complete": evidence.health.capture_complete,
            "error_count": count(HealthSeverity::Error),
            "warning_count": count(HealthSeverity::Warning),
        },
        "missing": missing(subject),
        "capabilities": evidence.capabilities,
        "findings": Bounded::of(&evidence.findings, ROWS),
        "gaps": Bounded::of(&evidence.gaps, ROWS),
        "counts": {
            "tensor_stat_events": stats.len(),
            "tensor_stat_non_finite_events": stats.iter().filter(|one| one.non_finite > 0).count(),
            "graph_spans": evidence.graph.as_ref().map(|graph| graph.spans.len()),
        },
        "timing": timing,
        "timing_unavailable_reason": summary.is_none().then_some(unavailable),
        "memory": memory(evidence),
        "activations": activations(evidence),
        "gpu": gpu::summary(evidence),
        NEXT: next(subject),
    })
}

/// What is missing of the recording, where somebody has it.
fn missing(subject: &Subject<'_>) -> Option<Value> {
    let told = subject.told.as_ref()?;
    let lost = subject.lost().fold(0_u64, |sum, gap| sum.saturating_add(gap.records));
    Some(json!({
        "gaps": told.gaps.len(),
        "lost_gaps": subject.lost().count(),
        "lost_records": lost,
        "refuted": told.refuted.iter().map(|one| one.plane).collect::<Vec<_>>(),
    }))
}

fn memory(evidence: &Evidence<'_>) -> Value {
    let logical = evidence.memory.logical.as_ref();
    let totals = logical.map(|memory| {
        json!({
            "storage_allocation_count": memory.storage_allocation_count,
            "matched_storage_free_count": memory.matched_storage_free_count,
            "total_allocated_bytes": memory.total_allocated_bytes,
            "peak_live_bytes": memory.peak.as_ref().map(|peak| peak.live_bytes),
            "peak_timestamp_ns": memory.peak.as_ref().map(|peak| peak.timestamp_ns),
        })
    });
    json!({
        "logical": logical.is_some(),
        "physical": evidence.memory.physical.is_some(),
        "logical_totals": totals,
    })
}

fn activations(evidence: &Evidence<'_>) -> Value {
    let profile = &evidence.activations;
    let top = |cost: &dyn Fn(&Activation<'_>) -> Option<u64>, key: &str| {
        let first = ranked(profile, cost).into_iter().next()?;
        Some(json!({ "id": first.id, "name": first.name, key: cost(first) }))
    };
    json!({
        "observed_operations": profile.operations.len(),
        "coverage": profile.coverage,
        "host_time": profile.host_time,
        "device_time": profile.device_time,
        "top_observed_host": top(&|one| Some(one.observed_host_duration_ns), "duration_ns"),
        "top_dense_output": top(&|one| one.dense_output_bytes, "bytes"),
    })
}

/// The run, without the lists that it may carry.
fn provenance(run: &TraceRun) -> Value {
    let contract = &run.capture_contract;
    let first = |labels: &[String]| labels.iter().take(ROWS).cloned().collect::<Vec<_>>();
    let short = TraceRun {
        capture_contract: CaptureContract {
            gradient_contract: None,
            required_semantic_labels: first(&contract.required_semantic_labels),
            gpu_expected_semantic_labels: first(&contract.gpu_expected_semantic_labels),
            cpu_only_semantic_labels: first(&contract.cpu_only_semantic_labels),
            ..contract.clone()
        },
        tags: run.tags.iter().take(ROWS).map(|(key, tag)| (cut(key, 64), tag.clone())).collect(),
        ..run.clone()
    };
    let mut value = json!(short);
    let mut insert = |place: &str, key: &str, found: Value| {
        if let Some(fields) = value.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.insert(key.to_owned(), found);
        }
    };
    if let Some(gradients) = &contract.gradient_contract {
        let counts = json!({
            "manifest_sha256": gradients.manifest_sha256,
            "expected": gradients.expected.len(),
            "families": gradients.families.len(),
        });
        insert("/capture_contract", "gradient_contract", counts);
    }
    let more = [
        ("tags", run.tags.len()),
        ("required_semantic_labels", contract.required_semantic_labels.len()),
        ("gpu_expected_semantic_labels", contract.gpu_expected_semantic_labels.len()),
        ("cpu_only_semantic_labels", contract.cpu_only_semantic_labels.len()),
    ];
    let more: BTreeMap<_, _> = more.into_iter().filter(|(_, total)| *total > ROWS).collect();
    if !more.is_empty() {
        insert("", "totals", json!(more));
    }
    value
}

/// The key of command lines, which are of no use when they are cut.
const NEXT: &str = "next_queries";

/// What to ask next: nothing, where no argument names the input, or none that fits on the page.
fn next(subject: &Subject<'_>) -> Value {
    /// Of an argument as JSON.
    const LONGEST: usize = 8 << 10;
    let fits = |argument: &&str| json(&json!(argument).to_string()).len() <= LONGEST;
    let Some(input) = subject.argument.filter(fits) else { return json!([]) };
    let query = |purpose: &str, kind: &str, rest: &[&str]| {
        let mut argv = vec!["tmrun", "query", input];
        let step = subject.input.step.unwrap_or_default().to_string();
        if subject.input.region == Some("step") {
            argv.extend(["--step", &step]);
        }
        argv.extend(["--kind", kind]);
        argv.extend(rest);
        json!({ "purpose": purpose, "argv": argv })
    };
    let limit = Page::DEFAULT_LIMIT.to_string();
    json!([
        query("which labels there are", "labels", &[]),
        query("the first scalars and statistics", "tensor-stats", &["--limit", &limit]),
    ])
}

/// Cuts every text in a value.
fn shorten(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => *text = cut(text, longest),
        Value::Array(all) => all.iter_mut().for_each(|one| shorten(one, longest)),
        Value::Object(fields) => {
            let fields = fields.iter_mut().filter(|(key, _)| *key != NEXT);
            fields.for_each(|(_, value)| shorten(value, longest));
        }
        _ => {}
    }
}

fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}
