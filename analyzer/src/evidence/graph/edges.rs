//! The edges: those of the trace, and those that spans and operations imply.

use super::super::Link;
use super::Context;
use super::nodes::is_scope;
use rayon::prelude::*;
use std::borrow::Cow;
use tmrun_formats::evidence::GraphEdge;
use tmrun_formats::trace::{Edge, Op};

/// By from, then to, then kind. What is implied is left out where the trace has it, or where it was
/// implied before.
pub(super) fn of<'d>(context: &Context<'_, 'd, '_>) -> Vec<GraphEdge<'d>> {
    let Context { trace, index, .. } = *context;
    let mut lines = Vec::new();
    let mut is_called = vec![false; trace.spans.len()];
    for (edge, &(from, to)) in trace.edges.iter().zip(&index.edges) {
        let (Some(from), Some(to)) = (from.get(), to.get()) else { continue };
        match edge {
            Edge::Call(call) => {
                // A call of the trace is one from the span's parent.
                let is_called = is_called.get_mut(to);
                is_called.into_iter().for_each(|is_called| *is_called = true);
                let what = What::Call { host_duration_ns: call.host_duration_ns, label: None };
                lines.push(line(context, Node::Span(from), Node::Span(to), what));
            }
            Edge::Data(_) => {
                let what = What::Data { label: None };
                lines.push(line(context, Node::Tensor(from), Node::Tensor(to), what));
            }
        }
    }
    for (at, (span, is_called)) in trace.spans.iter().zip(is_called).enumerate() {
        let parent = index.tree.parents.get(at).and_then(|parent| parent.get());
        if let Some(parent) = parent.filter(|_| is_scope(span) && !is_called) {
            let host_duration_ns = context.host.time(at).total;
            let what = What::Call { host_duration_ns, label: None };
            lines.push(line(context, Node::Span(parent), Node::Span(at), what));
        }
    }
    let mut last_into = vec![Link::NONE; index.tensors.shown];
    for (at, op) in trace.ops.iter().enumerate() {
        operation(context, at, op, &mut last_into, &mut lines);
    }
    lines.par_sort_by_key(|line| (line.from, line.to, line.is_data()));
    lines.into_par_iter().with_min_len(1024).map(|line| line.edge(context)).collect()
}

/// The edges that an operation implies.
fn operation<'d>(
    context: &Context<'_, 'd, '_>,
    at: usize,
    op: &'d Op<'_>,
    last_into: &mut [Link],
    lines: &mut Vec<Line<'d>>,
) {
    let index = context.index;
    let of = |links: &[Link]| links.get(at).and_then(|link| link.get());
    if let Some(span) = of(&index.op_spans) {
        let what = What::Call { host_duration_ns: op.duration_ns, label: Some(&op.op_name) };
        lines.push(line(context, Node::Span(span), Node::Op(at), what));
    }
    for tensor in index.tensors.inputs(at).iter().filter_map(|tensor| tensor.get()) {
        let Some(last) = last_into.get_mut(tensor) else { continue };
        if std::mem::replace(last, Link::to(at)) != Link::to(at) {
            let what = What::Data { label: Some("input") };
            lines.push(line(context, Node::Tensor(tensor), Node::Op(at), what));
        }
    }
    if let Some(output) = of(&index.tensors.of_outputs) {
        let what = What::Data { label: Some("output") };
        lines.push(line(context, Node::Op(at), Node::Tensor(output), what));
    }
}

/// An edge by the places of its ends in the order of all ids.
struct Line<'d> {
    from: u32,
    to: u32,
    what: What<'d>,
}

enum What<'d> {
    Call { host_duration_ns: u64, label: Option<&'d str> },
    Data { label: Option<&'static str> },
}

enum Node {
    Span(usize),
    Op(usize),
    Tensor(usize),
}

fn line<'d>(context: &Context<'_, '_, '_>, from: Node, to: Node, what: What<'d>) -> Line<'d> {
    let ids = context.ids;
    let rank = |node| match node {
        Node::Span(span) => ids.rank(ids.span(span)),
        Node::Op(op) => ids.rank(ids.op(op)),
        Node::Tensor(tensor) => ids.rank(ids.tensor(tensor)),
    };
    Line { from: rank(from), to: rank(to), what }
}

impl<'d> Line<'d> {
    fn is_data(&self) -> bool {
        matches!(self.what, What::Data { .. })
    }

    fn edge(self, context: &Context<'_, 'd, '_>) -> GraphEdge<'d> {
        let id = |rank: u32| {
            let node = context.ids.order.get(rank as usize);
            node.map_or(Cow::Borrowed(""), |&node| context.ids.id(node))
        };
        let (from, to) = (id(self.from), id(self.to));
        match self.what {
            What::Call { host_duration_ns, label } => GraphEdge::Call {
                from_span: from,
                to_span: to,
                host_duration_ns,
                label: label.map(Cow::Borrowed),
            },
            What::Data { label } => GraphEdge::Data {
                from_tensor: from,
                to_tensor: to,
                label: label.map(Cow::Borrowed),
            },
        }
    }
}
