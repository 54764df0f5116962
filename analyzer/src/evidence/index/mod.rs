//! Who is whose: every id of a trace resolved to a place, once.

mod spans;
mod storages;
mod tensors;

use super::{EvidenceError, Groups, Link};
pub use spans::Tree;
pub use storages::Storages;
pub use tensors::Tensors;

use spans::Ids;
use tmrun_formats::trace::{Edge, TraceDocument};

/// Where everything that a trace names is, in linear time and memory.
///
/// A *span* is its place in [`TraceDocument::spans`], a *tensor* and a *storage* the place of its id
/// among those of the trace, in the order in which they are first seen.
#[derive(Debug)]
pub struct Index<'d> {
    /// The spans' tree.
    pub tree: Tree,
    /// The span of each operation.
    pub op_spans: Vec<Link>,
    /// The span of each tensor event.
    pub tensor_spans: Vec<Link>,
    /// The span of each statistics event.
    pub stats_spans: Vec<Link>,
    /// The span of each memory event.
    pub memory_spans: Vec<Link>,
    /// The span of each device interval.
    pub interval_spans: Vec<Link>,
    /// Both ends of each edge: spans of a call; of data, tensors that a tensor event or an operation
    /// has.
    pub edges: Vec<(Link, Link)>,
    /// The operations of each span.
    pub ops: Groups,
    /// The number of each operation among those of its span.
    pub op_numbers: Vec<u32>,
    /// The tensors.
    pub tensors: Tensors<'d>,
    /// The storages.
    pub storages: Storages,
}

impl<'d> Index<'d> {
    /// Resolves everything.
    ///
    /// # Errors
    /// [`EvidenceError::TooMany`]
    pub fn of(trace: &'d TraceDocument<'_>) -> Result<Self, EvidenceError> {
        for (what, found) in [
            ("spans", trace.spans.len()),
            ("operations", trace.ops.len()),
            ("tensor events", trace.tensors.len()),
            ("tensor_stats events", trace.tensor_stats.len()),
            ("memory events", trace.memory.len()),
            ("device intervals", trace.device_intervals.len()),
            ("edges", trace.edges.len()),
        ] {
            Link::hold(what, found)?;
        }
        let (by_span, by_name) = rayon::join(
            || {
                let ids = Ids::of(&trace.spans);
                let tree = Tree::of(trace, &ids);
                let op_spans = ids.resolve(&trace.ops, |op| &op.span_id);
                (
                    tree,
                    op_spans,
                    ids.resolve(&trace.tensors, |tensor| &tensor.span_id),
                    ids.resolve(&trace.tensor_stats, |stats| &stats.span_id),
                    ids.resolve(&trace.memory, |event| &event.span_id),
                    ids.resolve(&trace.device_intervals, |interval| &interval.span_id),
                    ids,
                )
            },
            || rayon::join(|| Tensors::of(trace), || Storages::of(trace)),
        );
        let (tree, op_spans, tensor_spans, stats_spans, memory_spans, interval_spans, ids) =
            by_span;
        let (tensors, storages) = by_name;
        let (tensors, data_edges) = tensors?;
        let mut data_edges = data_edges.into_iter();
        let edges = trace.edges.iter().map(|edge| match edge {
            Edge::Call(call) => (ids.get(&call.from_span), ids.get(&call.to_span)),
            Edge::Data(_) => data_edges.next().unwrap_or((Link::NONE, Link::NONE)),
        });
        let edges = edges.collect();
        let pairs = op_spans.iter().enumerate().map(|(op, &span)| (span, op));
        let ops = Groups::new(trace.spans.len(), pairs);
        let op_numbers = numbers(&ops, trace);
        Ok(Self {
            tree,
            op_spans,
            tensor_spans,
            stats_spans,
            memory_spans,
            interval_spans,
            edges,
            ops,
            op_numbers,
            tensors,
            storages,
        })
    }
}

/// The number of each operation among those of its span; 0 where it has none.
fn numbers(ops: &Groups, trace: &TraceDocument<'_>) -> Vec<u32> {
    let mut numbers = vec![0; trace.ops.len()];
    for span in 0..trace.spans.len() {
        for (number, op) in (0..).zip(ops.of(span)) {
            if let Some(place) = numbers.get_mut(op) {
                *place = number;
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#"{"kind":"meta","schema":"candle-graph/trace/10","run_id":"r","correlation_id":"c","entrypoint":"e","phase":"infer","timestamp":"t","capture_step":1,"warmup_steps":0,"device":"cpu","timing_mode":"host","capture_contract":{"measurement_scope":"unknown","operations":"none","logical_memory":"none","physical_memory":"none","device_timing":"none"},"tags":{}}"#;

    fn trace(events: &[String]) -> String {
        let end = r#"{"kind":"terminal","outcome":"complete","timestamp_ns":99}"#;
        format!("{META}\n{}\n{end}", events.join("\n"))
    }

    fn span(id: &str, parent: Option<&str>, measured: bool) -> String {
        let parent = parent.map_or_else(String::new, |id| format!(r#""parent_id":"{id}","#));
        format!(
            r#"{{"kind":"span_start","id":"{id}",{parent}"name":"n","start_ns":0,"span_kind":"module","measured":{measured}}}"#
        )
    }

    fn op(span: &str, inputs: &[&str], output: &str) -> String {
        format!(
            r#"{{"kind":"op","span_id":"{span}","op_name":"o","inputs":{inputs:?},"output":"{output}","shape":[],"dtype":"f32","device":"cpu","duration_ns":0,"input_dense_bytes":0}}"#
        )
    }

    fn memory(at: u64, device: &str, storage: &str, tensor: &str) -> String {
        format!(
            r#"{{"kind":"memory","timestamp_ns":{at},"storage_id":"{storage}","tensor_id":"{tensor}","span_id":"a","device":"{device}","bytes":1,"action":"alloc","dtype":"f32"}}"#
        )
    }

    fn ids(trace: &TraceDocument<'_>, spans: impl IntoIterator<Item = usize>) -> Vec<String> {
        spans.into_iter().map(|span| trace.spans[span].id.to_string()).collect()
    }

    fn all(spans: &[u32]) -> impl Iterator<Item = usize> {
        spans.iter().map(|&span| span as usize)
    }

    #[test]
    fn spans_are_listed_by_their_ids_and_parents_before_children() {
        let text = trace(&[
            span("s2", Some("s1"), true),
            span("s10", Some("s2"), false),
            span("s1", None, false),
            span("s1a", Some("s1"), false),
            span("lost", Some("nowhere"), false),
            span("s11", Some("s2"), false),
        ]);
        let trace = TraceDocument::parse(&text).unwrap();
        let Index { tree, .. } = Index::of(&trace).unwrap();
        assert_eq!(ids(&trace, all(&tree.roots)), ["s1"], "one with a parent's id is no root");
        assert_eq!(ids(&trace, all(&tree.top_down)), ["lost", "s1", "s1a", "s2", "s10", "s11"]);
        assert_eq!(ids(&trace, tree.children.of(2)), ["s1a", "s2"]);
        assert_eq!(tree.parents[1], Link::to(0));
        assert_eq!(tree.parents[4], Link::NONE);
        assert_eq!(ids(&trace, all(&tree.measured)), ["s2"]);
        assert_eq!(tree.in_measured, [true, true, false, false, false, true]);
        assert_eq!(tree.cyclic, [false; 6]);
    }

    #[test]
    fn a_span_below_a_cycle_is_cyclic_and_one_beside_it_is_not() {
        let text = trace(&[
            span("a", Some("c"), false),
            span("b", Some("a"), false),
            span("c", Some("b"), true),
            span("below", Some("b"), false),
            span("self", Some("self"), false),
            span("root", None, false),
        ]);
        let trace = TraceDocument::parse(&text).unwrap();
        let Index { tree, .. } = Index::of(&trace).unwrap();
        assert_eq!(tree.cyclic, [true, true, true, true, true, false]);
        assert_eq!(ids(&trace, all(&tree.top_down)), ["root"]);
        assert_eq!(tree.in_measured, [true, true, true, true, false, false], "all the way round");
    }

    #[test]
    fn a_chain_of_200_000_spans_costs_no_stack() {
        let chain = (1..200_000).map(|n: u32| Some(format!("s{}", n - 1)));
        let spans = std::iter::once(None).chain(chain).enumerate();
        let spans: Vec<_> =
            spans.map(|(n, parent)| span(&format!("s{n}"), parent.as_deref(), n == 9)).collect();
        let text = trace(&spans);
        let trace = TraceDocument::parse(&text).unwrap();
        let Index { tree, .. } = Index::of(&trace).unwrap();
        assert_eq!(tree.top_down.len(), 200_000);
        assert_eq!(tree.in_measured.iter().filter(|measured| **measured).count(), 199_991);
    }

    #[test]
    fn operations_are_counted_in_their_spans_and_tensors_by_their_ids() {
        let text = trace(&[
            op("a", &["x", "w"], "y"),
            op("b", &["y"], "z"),
            span("b", Some("a"), false),
            op("a", &[], "x"),
            op("nowhere", &["q"], "y"),
            r#"{"kind":"tensor","span_id":"a","tensor_id":"w","shape":[],"dtype":"f32","device":"cpu"}"#
                .to_owned(),
            span("a", None, false),
            memory(7, "cpu", "s", "w"),
            memory(7, "cpu", "s", "m"),
            memory(3, "cuda:0", "s", "y"),
            r#"{"kind":"edge","edge_kind":"data","from_tensor":"w","to_tensor":"m"}"#.to_owned(),
            r#"{"kind":"edge","edge_kind":"call","from_span":"a","to_span":"b","host_duration_ns":0}"#
                .to_owned(),
            r#"{"kind":"edge","edge_kind":"data","from_tensor":"?","to_tensor":"z"}"#.to_owned(),
        ]);
        let trace = TraceDocument::parse(&text).unwrap();
        let index = Index::of(&trace).unwrap();
        assert_eq!(index.op_spans, [Link::to(1), Link::to(0), Link::to(1), Link::NONE]);
        assert_eq!(index.op_numbers, [0, 0, 1, 0]);
        assert_eq!(index.ops.of(1).collect::<Vec<_>>(), [0, 2]);

        let tensors = &index.tensors;
        assert_eq!(tensors.ids, ["w", "x", "y", "z", "q", "m"]);
        assert_eq!(tensors.shown, 5, "memory alone names m");
        assert_eq!(tensors.inputs(0), [Link::to(1), Link::to(0)]);
        assert_eq!(tensors.inputs(1), [Link::to(2)]);
        assert!(tensors.inputs(2).is_empty() && tensors.inputs(4).is_empty());
        assert_eq!(tensors.of_outputs[0], tensors.of_outputs[3]);
        assert_eq!(tensors.of_memory, [Link::to(0), Link::to(5), Link::to(2)]);
        let (span, tensor) = (Link::to, Link::to);
        let none = Link::NONE;
        assert_eq!(index.edges, [(tensor(0), none), (span(1), span(0)), (none, tensor(3))]);

        let storages = &index.storages;
        assert_eq!(storages.of_events, [Link::to(0), Link::to(0), Link::to(1)]);
        assert_eq!(storages.first, [0, 2]);
        assert_eq!(storages.by_time, [2, 0, 1]);
        assert_eq!(index.memory_spans, [Link::to(1); 3]);
    }
}
