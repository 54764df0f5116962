//! All of it, put together.

use super::memory::Lifetimes;
use super::{
    EvidenceError, Index, activations, capabilities, facts, findings, gaps, gpu, graph, health,
    memory, timing,
};
use crate::trace::Told;
use tmrun_formats::evidence::{
    Evidence, EvidenceSchema, Gpu, Graph, Health, HealthIssue, HealthSeverity, TensorStats,
};
use tmrun_formats::trace::{self, TraceDocument};

/// Everything that a trace says. `gpu` is what was read of Nsight's reports and bound to this trace;
/// none where there are none. `told` is what the trace does not say, where somebody knows: the reasons say
/// what was taken back of what the run declared, and of which spans there are times.
///
/// # Errors
/// A trace of too many events, and a valid one whose graph would have two nodes of one id.
pub fn derive<'d>(
    trace: &'d TraceDocument<'_>,
    gpu: Option<Gpu<'d>>,
    told: Option<&Told>,
) -> Result<Evidence<'d>, EvidenceError> {
    let index = Index::of(trace)?;
    let gpu = gpu.unwrap_or_else(gpu::absent);
    let (health, (timing, lifetimes)) = rayon::join(
        || health::of(trace, &index),
        || rayon::join(|| timing::of(trace, &index), || Lifetimes::of(trace, &index)),
    );
    let has_graph = health.capture_complete && health.structurally_valid;
    let (graph, (memory, mut activations)) = rayon::join(
        || has_graph.then(|| graph::of(trace, &index, &lifetimes, &timing)).transpose(),
        || {
            rayon::join(
                || memory::of(trace, &index, &lifetimes),
                || activations::of(trace, &index, &lifetimes, &timing),
            )
        },
    );
    let graph = graph?;
    let capabilities = capabilities::of(trace, &health, activations.operations.len(), &gpu, told);
    activations::qualify(&mut activations, &capabilities);
    Ok(Evidence {
        schema: EvidenceSchema,
        provenance: trace.run.clone(),
        findings: findings::of(&health, &capabilities, graph.as_ref(), &activations, &gpu),
        facts: facts::of(trace, &health, &capabilities, &memory, &activations),
        gaps: gaps::of(&health, &capabilities),
        health,
        capabilities,
        graph,
        tensor_stats: trace.tensor_stats.iter().map(stats).collect(),
        timing,
        memory,
        activations,
        gpu,
    })
}

/// The graph of a capture that its gradients alone make invalid, also of one that failed for them: what a
/// NaN among them takes out of the [evidence](derive()) when it is wanted most. `None` where the evidence
/// has it, or where anything else is wrong.
///
/// # Errors
/// As those of [`derive()`].
pub fn graph_despite_gradients<'d>(
    trace: &'d TraceDocument<'_>,
    health: &Health<'_>,
) -> Result<Option<Graph<'d>>, EvidenceError> {
    let of_gradients = |issue: &HealthIssue<'_>| issue.code.as_str().contains("gradient");
    let mut errors = health.issues.iter().filter(|i| i.severity == HealthSeverity::Error);
    if health.structurally_valid || !errors.all(of_gradients) {
        return Ok(None);
    }
    let index = Index::of(trace)?;
    let (timing, lifetimes) =
        rayon::join(|| timing::of(trace, &index), || Lifetimes::of(trace, &index));
    graph::of(trace, &index, &lifetimes, &timing).map(Some)
}

fn stats<'d>(of: &'d trace::TensorStats<'_>) -> TensorStats<'d> {
    TensorStats {
        span_id: (&*of.span_id).into(),
        label: (&*of.label).into(),
        shape: (&*of.shape).into(),
        dtype: (&*of.dtype).into(),
        elements: of.elements,
        non_finite: of.non_finite,
        rms: of.rms,
        abs_max: of.abs_max,
        mean: of.mean,
    }
}
