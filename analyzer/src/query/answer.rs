//! What one invocation answers.

use serde::Serialize;
use serde_json::Value;
use tmrun_formats::evidence::{
    Capabilities, Evidence, Graph, GraphEdge, GraphGradient, GraphNode, GraphTensor, Memory,
    TensorStats,
};

use super::gaps::GapRows;
use super::labels::LabelRow;
use super::non_finite::{GradientNorm, NonFiniteStats};
use super::page::{Bounded, Paged};
use super::steps::StepRows;
use super::{Kind, QueryError, Question, activations, gaps, gpu, graph, labels, non_finite};
use crate::evidence::graph::{gradients, tensors};
use crate::source::Subject;

/// An answer, which is written as the `result` of its [`Envelope`](super::Envelope).
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "they are called as the kinds are")]
pub enum Answer<'e> {
    /// Of the questions whose answers are small and of a fixed shape.
    Fixed(Value),
    Memory(&'e Memory<'e>),
    Capabilities(&'e Capabilities<'e>),
    Labels(Paged<LabelRow<'e>>),
    Spans(SpanRows<'e>),
    Tensors(Paged<GraphTensor<'e>>),
    TensorStats(StatsRows<'e>),
    Gradients(GradientRows<'e>),
    Gaps(GapRows<'e>),
    SlowSteps(StepRows),
}

/// Nodes, and with all of them their edges.
#[derive(Debug, Serialize)]
pub struct SpanRows<'e> {
    /// The nodes.
    #[serde(flatten)]
    pub nodes: Paged<&'e GraphNode<'e>>,
    /// The edges.
    pub edges: Option<&'e [GraphEdge<'e>]>,
    /// Why there are none.
    pub edges_reason: Option<&'static str>,
}

/// Statistics, and of a recording what the values are that they only count.
#[derive(Debug, Serialize)]
pub struct StatsRows<'e> {
    /// The statistics.
    #[serde(flatten)]
    pub stats: Paged<&'e TensorStats<'e>>,
    /// Values that are not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_finite: Option<Bounded<NonFiniteStats<'e>>>,
}

/// Gradients, and of a recording what the norms are that they only call not finite.
#[derive(Debug, Serialize)]
pub struct GradientRows<'e> {
    /// The gradients.
    #[serde(flatten)]
    pub gradients: Paged<GraphGradient<'e>>,
    /// Norms that are not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_finite: Option<Bounded<GradientNorm<'e>>>,
}

/// Answers a question that is about one invocation. `graph` is that of the evidence, or where only
/// gradients keep it from having one, [that](crate::evidence::graph_despite_gradients).
///
/// # Errors
///
/// When rows cannot be chosen so, or when there is no graph.
pub fn of_trace<'e>(
    question: &Question,
    subject: &'e Subject<'e>,
    evidence: &'e Evidence<'e>,
    graph: Option<&'e Graph<'e>>,
) -> Result<Answer<'e>, QueryError> {
    question.check()?;
    let page = question.page();
    let kind = question.kind;
    let graph_of = || {
        let name = subject.input.path.to_owned();
        graph.ok_or_else(|| QueryError::NoGraph { name, kind, why: graph::why_none(evidence) })
    };
    Ok(match kind {
        Kind::Labels => Answer::Labels(labels::of(question, evidence, graph)),
        Kind::SlowestHost => Answer::Fixed(graph::slowest_host(graph_of()?)),
        Kind::SlowestDevice => Answer::Fixed(graph::slowest_device(graph_of()?)),
        Kind::Heaviest => Answer::Fixed(graph::heaviest(graph_of()?)),
        Kind::Activations => Answer::Fixed(activations::of(&evidence.activations)),
        Kind::Memory => Answer::Memory(&evidence.memory),
        Kind::Capabilities => Answer::Capabilities(&evidence.capabilities),
        Kind::Spans => Answer::Spans(graph::spans(question, graph_of()?)),
        Kind::Tensors => {
            let all = tensors(subject.trace());
            let label = |tensor: &GraphTensor<'_>| {
                question.wants(tensor.label.as_deref().unwrap_or(&tensor.tensor_id))
            };
            let total = all.len();
            Answer::Tensors(page.cut(total, all.filter(label).collect()))
        }
        Kind::TensorStats => {
            let stats = evidence.tensor_stats.iter().filter(|one| question.wants(&one.label));
            Answer::TensorStats(StatsRows {
                stats: page.cut(evidence.tensor_stats.len(), stats.collect()),
                non_finite: non_finite::stats(question, subject),
            })
        }
        Kind::Gradients => {
            let all = gradients(subject.trace());
            let total = all.len();
            let wanted =
                |one: &GraphGradient<'_>| labels::wants_gradient(question, &one.root, &one.key);
            Answer::Gradients(GradientRows {
                gradients: page.cut(total, all.filter(wanted).collect()),
                non_finite: non_finite::gradients(question, subject),
            })
        }
        Kind::Gaps => Answer::Gaps(gaps::of_trace(page, subject, evidence)),
        Kind::SlowSteps => {
            return Err(QueryError::NoRecording { name: subject.input.path.to_owned(), kind });
        }
        Kind::GpuStatus => Answer::Fixed(gpu::status(evidence)),
        Kind::GpuCorrelation => Answer::Fixed(gpu::correlation(evidence)),
        Kind::GpuPhases => Answer::Fixed(gpu::phases(evidence)),
        Kind::GpuKernels => Answer::Fixed(gpu::kernels(evidence)),
        Kind::GpuAttributionGaps => Answer::Fixed(gpu::attribution_gaps(evidence)),
    })
}
