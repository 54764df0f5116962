//! What the graph of an invocation answers.

use serde_json::{Value, json};
use tmrun_formats::evidence::{Evidence, Graph, GraphNode, GraphNodeKind, HealthSeverity};

use super::Question;
use super::answer::SpanRows;

/// As many operations as are ranked by what they allocated.
const HEAVIEST: usize = 50;

pub(super) fn slowest_host(graph: &Graph<'_>) -> Value {
    json!({
        "entrypoint": graph.summary.entrypoint,
        "outer_wall_time_ns": graph.summary.outer_wall_time_ns,
        "slowest_host_spans": graph.summary.slowest_host_spans,
    })
}

pub(super) fn slowest_device(graph: &Graph<'_>) -> Value {
    json!({
        "entrypoint": graph.summary.entrypoint,
        "slowest_device_spans": graph.summary.slowest_device_spans,
    })
}

pub(super) fn heaviest(graph: &Graph<'_>) -> Value {
    let mut ops: Vec<(u64, &GraphNode<'_>)> = graph
        .spans
        .iter()
        .filter(|node| node.kind == GraphNodeKind::Op)
        .filter_map(|node| Some((node.allocated_bytes?, node)))
        .collect();
    ops.sort_by(|(left, a), (right, b)| right.cmp(left).then_with(|| a.id.cmp(&b.id)));
    let ops: Vec<_> = ops.into_iter().take(HEAVIEST).map(|(_, node)| node).collect();
    json!({
        "entrypoint": graph.summary.entrypoint,
        "heaviest_spans": graph.summary.heaviest_spans,
        "heaviest_ops": ops,
    })
}

pub(super) fn spans<'e>(question: &Question, graph: &'e Graph<'e>) -> SpanRows<'e> {
    let nodes = graph.spans.iter().filter(|node| question.wants(&node.name)).collect();
    let page = question.page();
    let is_all = page.all && question.filter.is_none();
    SpanRows {
        nodes: page.cut(graph.spans.len(), nodes),
        edges: is_all.then_some(&*graph.edges),
        edges_reason: (!is_all)
            .then_some("edges come with all nodes: ask with --all and without a label"),
    }
}

/// Why a trace has no graph.
pub(super) fn why_none(evidence: &Evidence<'_>) -> String {
    let issues = &evidence.health.issues;
    let mut errors = issues.iter().filter(|issue| issue.severity == HealthSeverity::Error);
    if let Some(first) = errors.next() {
        return match errors.count() {
            0 => format!("this one has an error ({}: {})", first.code, first.message),
            more => format!(
                "this one has {} errors (the first is {}: {})",
                more.saturating_add(1),
                first.code,
                first.message
            ),
        };
    }
    "this one's capture failed".to_owned()
}
