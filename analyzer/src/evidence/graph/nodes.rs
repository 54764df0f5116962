//! The nodes.

use super::super::{Groups, Link};
use super::Context;
use rayon::prelude::*;
use std::borrow::Cow;
use tmrun_formats::evidence::{GraphDeviceTiming, GraphNode, GraphNodeKind, Timing};
use tmrun_formats::trace::{Op, Span, SpanKind, Tensor, dense_bytes};

/// Spans, operations and tensors, in the order of [`Ids`](super::ids::Ids).
pub(super) fn of<'d>(
    context: &Context<'_, 'd, '_>,
    timing: &Timing<'d>,
    rows: &Groups,
) -> Vec<GraphNode<'d>> {
    let Context { trace, index, ids, .. } = *context;
    let spans = trace.by_id.par_iter().with_min_len(1024);
    let spans = spans.filter_map(|&at| {
        let mut node = span(context, at, trace.spans.get(at)?);
        let rows = rows.of(at).filter_map(|row| timing.device_spans.get(row));
        node.device_timings = rows
            .map(|row| GraphDeviceTiming {
                device: row.device.clone(),
                clock_id: row.clock_id.clone(),
                busy_ns: row.busy_ns,
            })
            .collect();
        Some(node)
    });
    let ops = trace.ops.par_iter().enumerate().with_min_len(1024);
    let ops = ops.map(|(at, it)| op(context, at, it));
    let seen = seen(context);
    let tensors = ids.tensors.par_iter().with_min_len(1024).map(|&at| {
        let event = seen.get(at as usize).and_then(|event| event.of(&trace.tensors));
        let id = index.tensors.ids.get(at as usize).copied().unwrap_or("");
        tensor(context, at as usize, id, event)
    });
    spans.chain(ops).chain(tensors).collect()
}

/// Whether a span is listed among those that time or storage is laid to: those of one operation are
/// not.
pub(super) fn is_scope(span: &Span<'_>) -> bool {
    span.parent.is_none() || span.kind != SpanKind::Op
}

fn span<'d>(context: &Context<'_, 'd, '_>, at: usize, span: &'d Span<'_>) -> GraphNode<'d> {
    let kind = match (span.parent.is_none(), span.kind) {
        (true, _) => GraphNodeKind::Root,
        (false, SpanKind::Function) => GraphNodeKind::Function,
        (false, SpanKind::Module) => GraphNodeKind::Module,
        (false, SpanKind::Op) => GraphNodeKind::Op,
    };
    let time = context.host.time(at);
    let peak = context.storage.peak(at);
    GraphNode {
        parent_id: span.parent.as_deref().map(Cow::Borrowed),
        start_ns: span.start_ns,
        host_self_time_ns: time.own,
        host_total_time_ns: time.total,
        allocated_bytes: context.storage.of_span(at),
        peak_live_bytes: peak.map(|peak| peak.bytes),
        residual_bytes: peak.map(|peak| peak.residual),
        ..empty(context.ids.id(context.ids.span(at)), (&*span.name).into(), kind)
    }
}

fn op<'d>(context: &Context<'_, 'd, '_>, at: usize, op: &'d Op<'_>) -> GraphNode<'d> {
    GraphNode {
        parent_id: Some((&*op.span_id).into()),
        start_ns: op.timestamp_ns,
        host_self_time_ns: op.duration_ns,
        host_total_time_ns: op.duration_ns,
        shape: shape(&op.shape),
        dtype: Some((&*op.dtype).into()),
        device: Some((&*op.device).into()),
        allocated_bytes: context.storage.ops.get(at).copied().flatten(),
        dense_bytes: op.output_dense_bytes.or_else(|| dense_bytes(&op.shape, &op.dtype)),
        ..empty(context.ids.id(context.ids.op(at)), (&*op.op_name).into(), GraphNodeKind::Op)
    }
}

fn tensor<'d>(
    context: &Context<'_, 'd, '_>,
    at: usize,
    id: &'d str,
    event: Option<&'d Tensor<'_>>,
) -> GraphNode<'d> {
    let name = event.and_then(|event| event.label.as_deref()).unwrap_or(id);
    GraphNode {
        parent_id: event.map(|event| (&*event.span_id).into()),
        shape: event.and_then(|event| shape(&event.shape)),
        dtype: event.map(|event| (&*event.dtype).into()),
        device: event.map(|event| (&*event.device).into()),
        dense_bytes: event.and_then(|event| event.dense_bytes),
        ..empty(context.ids.id(context.ids.tensor(at)), name.into(), GraphNodeKind::Tensor)
    }
}

/// The event that speaks for each tensor: the first one with a label, else the first one.
fn seen(context: &Context<'_, '_, '_>) -> Vec<Link> {
    let tensors = &context.index.tensors;
    let mut seen = vec![(Link::NONE, false); tensors.shown];
    let events = tensors.of_events.iter().zip(&context.trace.tensors).enumerate();
    for (event, (tensor, Tensor { label, .. })) in events {
        let Some(seen) = tensor.get().and_then(|tensor| seen.get_mut(tensor)) else { continue };
        let is_labelled = label.is_some();
        if !seen.0.is_some() || (is_labelled && !seen.1) {
            *seen = (Link::to(event), is_labelled);
        }
    }
    seen.into_iter().map(|(event, _)| event).collect()
}

/// A node of which nothing is known but what it is called.
fn empty<'d>(id: Cow<'d, str>, name: Cow<'d, str>, kind: GraphNodeKind) -> GraphNode<'d> {
    GraphNode {
        id,
        parent_id: None,
        name,
        kind,
        start_ns: 0,
        host_self_time_ns: 0,
        host_total_time_ns: 0,
        device_timings: Vec::new(),
        shape: None,
        dtype: None,
        device: None,
        allocated_bytes: None,
        peak_live_bytes: None,
        residual_bytes: None,
        dense_bytes: None,
    }
}

fn shape(shape: &[u64]) -> Option<Cow<'_, [u64]>> {
    (!shape.is_empty()).then_some(Cow::Borrowed(shape))
}
