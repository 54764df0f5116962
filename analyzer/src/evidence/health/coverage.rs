//! How much of each kind there is.

use super::{HealthCode, HealthCoverage, Index, Issues, Subject};
use tmrun_formats::trace::{Edge, TraceDocument, TracePhase, TraceStep};

pub(super) fn of(trace: &TraceDocument<'_>, index: &Index<'_>) -> HealthCoverage {
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let step = |step| count(trace.spans.iter().filter(|span| span.step == Some(step)).count());
    let calls = trace.edges.iter().filter(|edge| matches!(edge, Edge::Call(_))).count();
    HealthCoverage {
        spans: count(trace.spans.len()),
        closed_spans: count(trace.spans.iter().filter(|span| span.duration_ns.is_some()).count()),
        root_spans: count(index.tree.roots.len()),
        measured_spans: count(index.tree.measured.len()),
        operations: count(trace.ops.len()),
        tensors: count(trace.tensors.len()),
        memory_events: count(trace.memory.len()),
        device_memory_samples: count(trace.device_memory.len()),
        device_intervals: count(trace.device_intervals.len()),
        gradients: count(trace.gradients.len()),
        call_edges: count(calls),
        data_edges: count(trace.edges.len().saturating_sub(calls)),
        forward_spans: step(TraceStep::Forward),
        backward_spans: step(TraceStep::Backward),
        optimizer_spans: step(TraceStep::Optimizer),
    }
}

/// What there is none of.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    use HealthCode as Code;
    let coverage = &subject.coverage;
    let any_run = [
        (coverage.operations, Code::OperationsAbsent, "no operations: found no op event"),
        (coverage.tensors, Code::TensorsAbsent, "no tensors: found no tensor event"),
        (coverage.memory_events, Code::LogicalMemoryAbsent, "no storages: found no memory event"),
        (
            coverage.device_memory_samples,
            Code::PhysicalMemoryAbsent,
            "no memory of a device: found no device_memory event",
        ),
        (
            coverage.device_intervals,
            Code::DeviceTimingAbsent,
            "no time on a device: found no device_interval event",
        ),
    ];
    let training = [
        (coverage.gradients, Code::GradientsAbsent, "training without a gradient event"),
        (coverage.forward_spans, Code::ForwardAbsent, "training without a span of step forward"),
        (coverage.backward_spans, Code::BackwardAbsent, "training without a span of step backward"),
        (
            coverage.optimizer_spans,
            Code::OptimizerAbsent,
            "training without a span of step optimizer",
        ),
    ];
    let trains = subject.trace.run.phase == TracePhase::Train;
    let expected = any_run.into_iter().chain(training.into_iter().filter(|_| trains));
    for (count, code, message) in expected {
        if count == 0 {
            issues.add(code, message);
        }
    }
}
