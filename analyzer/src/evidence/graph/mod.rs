//! A run as nodes and edges: `candle-graph/graph/5`.

mod edges;
mod host;
mod ids;
mod nodes;
mod peaks;
mod storage;
mod summary;

use super::memory::Lifetimes;
use super::{EvidenceError, Index, timing};
pub(crate) use host::Host;
use ids::Ids;
use storage::Storage;
use tmrun_formats::evidence::{Graph, GraphGradient, GraphSchema, GraphTensor, Timing};
use tmrun_formats::trace::TraceDocument;

/// The graph of a trace, which means something where the trace is complete and structurally valid.
///
/// # Errors
/// [`EvidenceError::NodeTwice`]
pub fn of<'d>(
    trace: &'d TraceDocument<'_>,
    index: &Index<'d>,
    lifetimes: &Lifetimes,
    timing: &Timing<'d>,
) -> Result<Graph<'d>, EvidenceError> {
    let ids = Ids::of(trace, index)?;
    let rows = timing::by_span(trace, timing);
    let (host, storage) =
        rayon::join(|| Host::of(trace, index), || Storage::of(trace, index, lifetimes));
    let context = Context { trace, index, ids: &ids, host: &host, storage: &storage };
    let (spans, edges) = rayon::join(|| nodes::of(&context, timing, &rows), || edges::of(&context));
    let summary = summary::of(&context, timing, &rows);
    Ok(Graph {
        schema: GraphSchema,
        spans,
        edges,
        tensors: tensors(trace).collect(),
        gradients: gradients(trace).collect(),
        summary,
    })
}

/// The tensors of a trace, as a graph has them.
pub fn tensors<'d>(trace: &'d TraceDocument<'_>) -> impl ExactSizeIterator<Item = GraphTensor<'d>> {
    trace.tensors.iter().map(|tensor| GraphTensor {
        span_id: (&*tensor.span_id).into(),
        tensor_id: (&*tensor.tensor_id).into(),
        label: tensor.label.as_deref().map(Into::into),
        shape: (&*tensor.shape).into(),
        dtype: (&*tensor.dtype).into(),
        device: (&*tensor.device).into(),
        requires_grad: tensor.requires_grad,
        dense_bytes: tensor.dense_bytes,
        category: tensor.category,
    })
}

/// The gradients of a trace, as a graph has them.
pub fn gradients<'d>(
    trace: &'d TraceDocument<'_>,
) -> impl ExactSizeIterator<Item = GraphGradient<'d>> {
    trace.gradients.iter().map(|gradient| GraphGradient {
        root: (&*gradient.root).into(),
        key: (&*gradient.key).into(),
        state: gradient.state,
        norm: gradient.norm,
    })
}

/// What every part of the graph is made of.
struct Context<'c, 'd, 'a> {
    trace: &'d TraceDocument<'a>,
    index: &'c Index<'d>,
    ids: &'c Ids<'d>,
    host: &'c Host,
    storage: &'c Storage,
}
