//! Ids of nodes, and their order.

use super::super::ranks::{self, rank};
use super::super::{EvidenceError, Index};
use rayon::prelude::*;
use std::borrow::Cow;
use tmrun_formats::trace::{Op, TraceDocument};

/// The nodes of a graph by number: spans in the order of their ids, operations in that of the trace,
/// tensors in the order of their ids.
pub(super) struct Ids<'d> {
    ids: Vec<Cow<'d, str>>,
    /// Nodes in the order of all ids.
    pub order: Vec<u32>,
    /// The place of each node there.
    ranks: Vec<u32>,
    /// The node of each span.
    span_nodes: Vec<u32>,
    first_op: u32,
    first_tensor: u32,
    /// Tensors in the order of their ids.
    pub tensors: Vec<u32>,
    /// The place of each tensor there.
    tensor_ranks: Vec<u32>,
}

impl<'d> Ids<'d> {
    pub fn of(trace: &'d TraceDocument<'_>, index: &Index<'d>) -> Result<Self, EvidenceError> {
        let shown = index.tensors.ids.get(..index.tensors.shown).unwrap_or(&[]);
        let mut tensors: Vec<u32> = (0..).zip(shown).map(|(tensor, _)| tensor).collect();
        let tensor = |tensor: u32| shown.get(tensor as usize).copied().unwrap_or("");
        tensors.par_sort_unstable_by_key(|&it| tensor(it));
        let tensor_ranks = ranks::inverse(tensors.iter().map(|&it| it as usize), tensors.len());

        let spans = trace.by_id.iter().filter_map(|&span| trace.spans.get(span));
        let mut ids: Vec<Cow<'d, str>> = spans.map(|span| Cow::Borrowed(&*span.id)).collect();
        let first_op = number(ids.len())?;
        let ops = trace.ops.par_iter().zip(&index.op_numbers).with_min_len(4096);
        ids.par_extend(ops.map(|(op, &number)| Cow::Owned(op_id(op, number))));
        let first_tensor = number(ids.len())?;
        ids.par_extend(tensors.par_iter().map(|&it| Cow::Owned(format!("tensor/{}", tensor(it)))));
        number(ids.len())?;

        let id = |node: u32| ids.get(node as usize).map_or("", |id| &**id);
        let mut order: Vec<u32> = (0..).zip(&ids).map(|(node, _)| node).collect();
        order.par_sort_unstable_by(|&left, &right| id(left).cmp(id(right)));
        if let Some(twice) = order.windows(2).find_map(|pair| match pair {
            &[left, right] if id(left) == id(right) => Some(id(left)),
            _ => None,
        }) {
            return Err(EvidenceError::NodeTwice { id: twice.to_owned() });
        }
        let ranks = ranks::inverse(order.iter().map(|&node| node as usize), ids.len());
        let span_nodes = ranks::of_spans(trace);
        Ok(Self { ids, order, ranks, span_nodes, first_op, first_tensor, tensors, tensor_ranks })
    }

    /// The id of a node.
    pub fn id(&self, node: u32) -> Cow<'d, str> {
        self.ids.get(node as usize).cloned().unwrap_or_default()
    }

    /// The place of a node in the order of all ids.
    pub fn rank(&self, node: u32) -> u32 {
        rank(&self.ranks, node as usize)
    }

    /// The node of a span.
    pub fn span(&self, span: usize) -> u32 {
        rank(&self.span_nodes, span)
    }

    /// The node of an operation.
    pub fn op(&self, op: usize) -> u32 {
        self.first_op.saturating_add(u32::try_from(op).unwrap_or(u32::MAX))
    }

    /// The node of a tensor.
    pub fn tensor(&self, tensor: usize) -> u32 {
        self.first_tensor.saturating_add(rank(&self.tensor_ranks, tensor))
    }
}

fn op_id(op: &Op<'_>, number: u32) -> String {
    format!("{}/op/{number}", op.span_id)
}

fn number(nodes: usize) -> Result<u32, EvidenceError> {
    u32::try_from(nodes)
        .ok()
        .filter(|&nodes| nodes < u32::MAX)
        .ok_or(EvidenceError::TooMany { what: "nodes of the graph", found: nodes })
}
