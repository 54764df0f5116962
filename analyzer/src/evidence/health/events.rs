//! Each event, and how it lies in its span.

use super::{HealthCode, Issues, Subject};
use crate::evidence::Link;
use tmrun_formats::trace::Span;

/// Every event is of a span that is there.
pub(super) fn name_spans(subject: &Subject<'_>, issues: &mut Issues) {
    let Subject { trace, index, .. } = subject;
    let mut check = |what: &str, spans: &[Link], ids: &mut dyn Iterator<Item = &str>| {
        for (_, id) in spans.iter().zip(ids).filter(|(span, _)| !span.is_some()) {
            let message = format!("{what}: span {id:?} is not in the trace");
            issues.add(HealthCode::UnknownSpan, message);
        }
    };
    check("op", &index.op_spans, &mut trace.ops.iter().map(|op| &*op.span_id));
    let tensors = &mut trace.tensors.iter().map(|tensor| &*tensor.span_id);
    check("tensor", &index.tensor_spans, tensors);
    let stats = &mut trace.tensor_stats.iter().map(|stats| &*stats.span_id);
    check("tensor_stats", &index.stats_spans, stats);
    check("memory", &index.memory_spans, &mut trace.memory.iter().map(|event| &*event.span_id));
    let intervals = &mut trace.device_intervals.iter().map(|interval| &*interval.span_id);
    check("device_interval", &index.interval_spans, intervals);
}

/// Device intervals are not empty.
pub(super) fn take_time(subject: &Subject<'_>, issues: &mut Issues) {
    for interval in
        subject.trace.device_intervals.iter().filter(|interval| interval.duration_ns == 0)
    {
        let (span, device) = (&interval.span_id, &interval.device);
        let message = format!(
            "device_interval of span {span:?} on {device:?}: duration_ns is 0: expected more"
        );
        issues.add(HealthCode::EmptyDeviceInterval, message);
    }
}

/// Operations, and storages that come or go, are inside the times of their spans.
pub(super) fn lie_in_spans(subject: &Subject<'_>, issues: &mut Issues) {
    let Subject { trace, index, .. } = subject;
    // The span and its end, of one that ended.
    let closed = |span: Link| -> Option<&Span<'_>> {
        span.of(&trace.spans).filter(|span| span.duration_ns.is_some())
    };
    for (op, &span) in trace.ops.iter().zip(&index.op_spans) {
        let Some(span) = closed(span) else { continue };
        let (start, end) = (op.timestamp_ns, op.timestamp_ns.saturating_add(op.duration_ns));
        if start < span.start_ns || end > span.end_ns() {
            let message = format!(
                "op {:?} takes {start}..={end} ns: expected inside {}..={}, the time of its span {:?}",
                op.op_name,
                span.start_ns,
                span.end_ns(),
                span.id
            );
            issues.add(HealthCode::OperationOutsideSpan, message);
        }
    }
    for (event, &span) in trace.memory.iter().zip(&index.memory_spans) {
        let Some(span) = closed(span) else { continue };
        let at = event.timestamp_ns;
        if at < span.start_ns || at > span.end_ns() {
            let message = format!(
                "memory: {} of storage {:?} at {at} ns: expected inside {}..={}, the time of its \
                 span {:?}",
                event.action,
                event.storage_id,
                span.start_ns,
                span.end_ns(),
                span.id
            );
            issues.add(HealthCode::MemoryOutsideSpan, message);
        }
    }
}

/// Samples of device memory have a number.
pub(super) fn measure(subject: &Subject<'_>, issues: &mut Issues) {
    for sample in &subject.trace.device_memory {
        let numbers =
            [sample.used_bytes, sample.free_bytes, sample.reserved_bytes, sample.capacity_bytes];
        if numbers.iter().all(Option::is_none) {
            let message = format!(
                "device_memory of {:?} at {} ns: expected used_bytes, free_bytes, reserved_bytes or \
                 capacity_bytes, found none",
                sample.device, sample.timestamp_ns
            );
            issues.add(HealthCode::EmptyDeviceMemorySample, message);
        }
    }
}
