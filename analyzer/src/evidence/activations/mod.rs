//! Operations that produce an activation.

mod qualify;
mod storage;

pub use qualify::qualify;

use super::memory::Lifetimes;
use super::{Groups, Index, timing};
use std::borrow::Cow;
use storage::{Cost, Storage};
use tmrun_formats::evidence::{
    Activation, ActivationSource, ActivationTiming, Activations, ByteNanoseconds, Capability,
    Timing,
};
use tmrun_formats::trace::{MemoryCategory, Op, SpanKind, TraceDocument, dense_bytes};

const DEFINITION: &str = "an operation inside the measured span whose output is a tensor of category \
    activation, or whose own allocation is a storage of it; its costs are kept apart";

/// Operations of the measured region whose output is an activation. How far their costs can be
/// compared is for [`qualify`] to say, once capabilities are known.
#[must_use]
pub fn of<'d>(
    trace: &'d TraceDocument<'_>,
    index: &Index<'d>,
    lifetimes: &Lifetimes,
    timing: &Timing<'d>,
) -> Activations<'d> {
    let mut is_activation = vec![false; index.tensors.shown];
    for (tensor, event) in index.tensors.of_events.iter().zip(&trace.tensors) {
        if event.category == MemoryCategory::Activation
            && let Some(is_activation) = tensor.get().and_then(|at| is_activation.get_mut(at))
        {
            *is_activation = true;
        }
    }
    let storage = Storage::of(trace, index, lifetimes);
    let rows = timing::by_span(trace, timing);
    let places = index.op_spans.iter().zip(&index.tensors.of_outputs);
    let operations = trace.ops.iter().enumerate().zip(places);
    let operations = operations.filter_map(|((place, op), (&span, output))| {
        let is_tensor = output.of(&is_activation).copied().unwrap_or(false);
        let storages = storage.of_op(place);
        let sources = [
            (ActivationSource::TensorOutput, is_tensor),
            (ActivationSource::LogicalStorage, storages.len() > 0),
        ];
        let sources = sources.into_iter().filter_map(|(source, holds)| holds.then_some(source));
        let sources: Vec<_> = sources.collect();
        let at = span.get()?;
        if sources.is_empty() || !*index.tree.in_measured.get(at)? {
            return None;
        }
        let of_span = OfSpan { timing, rows: &rows, span: at };
        let is_alone = trace.spans.get(at)?.kind == SpanKind::Op && index.ops.of(at).len() == 1;
        let number = index.op_numbers.get(place).copied().unwrap_or(0);
        let cost = storage.cost(storages, span);
        Some(activation(op, number, is_alone.then_some(of_span), cost, sources))
    });
    let absent = Capability::unavailable("capabilities were not asked for");
    Activations {
        definition: DEFINITION.into(),
        coverage: absent.clone(),
        host_time: absent.clone(),
        device_time: absent.clone(),
        dense_output: absent.clone(),
        logical_memory: absent,
        physical_memory_attribution: Capability::unavailable(
            "a device_memory sample names no operation and no tensor",
        ),
        operations: operations.collect(),
        unattributed_activation_storages: storage.of_nobody,
    }
}

/// Those that have a metric, the greatest first; of several the one with the least id.
#[must_use]
pub fn ranked<'a, 'd, K: Ord>(
    activations: &'a Activations<'d>,
    metric: impl Fn(&Activation<'d>) -> Option<K>,
) -> Vec<&'a Activation<'d>> {
    let rows = activations.operations.iter();
    let mut rows: Vec<_> = rows.filter_map(|row| Some((metric(row)?, row))).collect();
    rows.sort_by(|(left_key, left), (right_key, right)| {
        right_key.cmp(left_key).then_with(|| left.id.cmp(&right.id))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// `own` is there where the span is the operation's alone.
fn activation<'d>(
    op: &'d Op<'_>,
    number: u32,
    own: Option<OfSpan<'_, 'd>>,
    cost: Cost,
    classification_sources: Vec<ActivationSource>,
) -> Activation<'d> {
    let id = match own {
        Some(_) => Cow::Borrowed(&*op.span_id),
        None => Cow::Owned(format!("{}/op/{number}", op.span_id)),
    };
    Activation {
        id,
        span_id: (&*op.span_id).into(),
        op_index: number.into(),
        name: (&*op.op_name).into(),
        output_tensor_id: op.output.as_deref().map(Cow::Borrowed),
        shape: (&*op.shape).into(),
        dtype: (&*op.dtype).into(),
        device: (&*op.device).into(),
        observed_host_duration_ns: op.duration_ns,
        device_timings: own.map_or_else(Vec::new, OfSpan::timings),
        dense_output_bytes: op.output_dense_bytes.or_else(|| dense_bytes(&op.shape, &op.dtype)),
        logical_allocated_bytes: cost.bytes,
        logical_storage_count: cost.storages,
        logical_storage_live_duration_ns: cost.live_ns,
        logical_byte_nanoseconds: cost.byte_ns.map(ByteNanoseconds),
        logical_retained_bytes_at_measured_end: cost.retained,
        classification_sources,
    }
}

/// The device times of one span.
struct OfSpan<'t, 'd> {
    timing: &'t Timing<'d>,
    rows: &'t Groups,
    span: usize,
}

impl<'d> OfSpan<'_, 'd> {
    fn timings(self) -> Vec<ActivationTiming<'d>> {
        let rows = self.rows.of(self.span).filter_map(|row| self.timing.device_spans.get(row));
        rows.map(|row| ActivationTiming {
            device: row.device.clone(),
            clock_id: row.clock_id.clone(),
            backends: row.backends.clone(),
            streams: row.streams.clone(),
            interval_count: row.interval_count,
            busy_ns: row.busy_ns,
        })
        .collect()
    }
}
