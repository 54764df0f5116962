//! The tensors of a trace.

use super::super::{EvidenceError, Link};
use std::collections::HashMap;
use tmrun_formats::trace::{Edge, TraceDocument};

/// The tensors of a trace, in the order in which tensor events, then operations, then memory events
/// name them.
#[derive(Debug)]
pub struct Tensors<'d> {
    /// Their ids.
    pub ids: Vec<&'d str>,
    /// How many of them a tensor event or an operation names: those that edges may connect and that
    /// a graph shows. The rest are of memory events alone.
    pub shown: usize,
    /// The tensor of each tensor event.
    pub of_events: Vec<Link>,
    /// The tensor that comes out of each operation.
    pub of_outputs: Vec<Link>,
    /// The tensors that go in, of all operations one after another.
    inputs: Vec<Link>,
    /// Where those of each operation end.
    inputs_end: Vec<u32>,
    /// The tensor of each memory event.
    pub of_memory: Vec<Link>,
}

impl<'d> Tensors<'d> {
    /// The tensors, and the two ends of each data edge.
    pub(super) fn of(
        trace: &'d TraceDocument<'_>,
    ) -> Result<(Self, Vec<(Link, Link)>), EvidenceError> {
        let inputs = trace.ops.iter().fold(0, |sum: usize, op| sum.saturating_add(op.inputs.len()));
        Link::hold("inputs of operations", inputs)?;
        let most = trace.tensors.len().saturating_add(trace.ops.len()).saturating_add(inputs);
        Link::hold("tensors", most.saturating_add(trace.memory.len()))?;

        let mut names = Names::default();
        let of_events =
            trace.tensors.iter().map(|tensor| names.intern(&tensor.tensor_id)).collect();
        let mut of_inputs = Vec::with_capacity(inputs);
        let mut inputs_end = Vec::with_capacity(trace.ops.len());
        let mut of_outputs = Vec::with_capacity(trace.ops.len());
        for op in &trace.ops {
            of_inputs.extend(op.inputs.iter().map(|input| names.intern(input)));
            inputs_end.push(u32::try_from(of_inputs.len()).unwrap_or(u32::MAX));
            of_outputs.push(op.output.as_deref().map_or(Link::NONE, |output| names.intern(output)));
        }
        let shown = names.ids.len();
        let data_edges = trace.edges.iter().filter_map(|edge| match edge {
            Edge::Call(_) => None,
            Edge::Data(data) => Some((names.get(&data.from_tensor), names.get(&data.to_tensor))),
        });
        let data_edges = data_edges.collect();
        let of_memory = trace.memory.iter().map(|event| names.intern(&event.tensor_id)).collect();
        let (inputs, ids) = (of_inputs, names.ids);
        Ok((Self { ids, shown, of_events, of_outputs, inputs, inputs_end, of_memory }, data_edges))
    }

    /// The tensors that go into an operation, in its order.
    #[must_use]
    pub fn inputs(&self, op: usize) -> &[Link] {
        let before = op.checked_sub(1).and_then(|before| self.inputs_end.get(before));
        let (begin, end) = (before.copied().unwrap_or(0), self.inputs_end.get(op).copied());
        self.inputs.get(begin as usize..end.unwrap_or(begin) as usize).unwrap_or(&[])
    }
}

/// Gives each text a number.
#[derive(Default)]
struct Names<'d> {
    by_id: HashMap<&'d str, Link>,
    ids: Vec<&'d str>,
}

impl<'d> Names<'d> {
    fn intern(&mut self, id: &'d str) -> Link {
        *self.by_id.entry(id).or_insert_with(|| {
            let link = Link::to(self.ids.len());
            self.ids.push(id);
            link
        })
    }

    fn get(&self, id: &str) -> Link {
        self.by_id.get(id).copied().unwrap_or(Link::NONE)
    }
}
