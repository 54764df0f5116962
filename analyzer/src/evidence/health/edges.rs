//! Edges say what spans, operations and tensors say too.

use super::{HealthCode, Issues, Subject};
use crate::evidence::Link;
use tmrun_formats::trace::{CallEdge, DataEdge, Edge};

/// Edge by edge.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    for (edge, &ends) in subject.trace.edges.iter().zip(&subject.index.edges) {
        match edge {
            Edge::Call(call) => check_call(subject, call, ends, issues),
            Edge::Data(data) => check_data(data, ends, issues),
        }
    }
}

fn check_call(
    subject: &Subject<'_>,
    CallEdge { from_span: from, to_span: to, host_duration_ns }: &CallEdge<'_>,
    (outer, inner): (Link, Link),
    issues: &mut Issues,
) {
    let Subject { trace, index, .. } = subject;
    let edge = || format!("call edge from {from:?} to {to:?}");
    let (true, Some(span)) = (outer.is_some(), inner.of(&trace.spans)) else {
        let message = format!("{}: expected both spans to be in the trace", edge());
        return issues.add(HealthCode::UnknownCallEdgeSpan, message);
    };
    if inner.of(&index.tree.parents) != Some(&outer) {
        let message = format!("{}: expected the parent, which is {:?}", edge(), span.parent);
        issues.add(HealthCode::CallEdgeHierarchyMismatch, message);
    }
    if let Some(duration) = span.duration_ns.filter(|duration| duration != host_duration_ns) {
        let message = format!(
            "{}: host_duration_ns is {host_duration_ns}: expected the span's, {duration}",
            edge()
        );
        issues.add(HealthCode::CallEdgeDurationMismatch, message);
    }
}

fn check_data(
    DataEdge { from_tensor: from, to_tensor: to }: &DataEdge<'_>,
    (source, target): (Link, Link),
    issues: &mut Issues,
) {
    if from.is_empty() || to.is_empty() {
        let message = format!("data edge from {from:?} to {to:?}: expected the ids of two tensors");
        return issues.add(HealthCode::EmptyDataEdgeEndpoint, message);
    }
    if !source.is_some() || !target.is_some() {
        let message = format!(
            "data edge from {from:?} to {to:?}: expected a tensor event or an operation to name both"
        );
        issues.add(HealthCode::UnknownDataEdgeTensor, message);
    }
}
