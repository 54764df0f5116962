//! Single records. Their sequence numbers are the builder's to fill in.

use tmrun_formats::wire::{
    Gap, Gradient, LevelChange, Payload, Record, RecordHeader, Scalar, Span, Stats, Step, Tensor,
    flags,
};
use tmrun_formats::{
    DType, GapReason, GradientState, LaneId, Level, LevelSource, NameId, Phase, Planes, SpanId,
    TensorId, Ticks,
};

fn record<P: Payload>(ticks: u64, name: u32, flags: u16, payload: &P) -> Record {
    let header = RecordHeader::of::<P>(P::KIND.level());
    Record::new(RecordHeader { ticks: Ticks(ticks), name: NameId(name), flags, ..header }, payload)
}

/// A span.
pub fn span(start: u64, end: u64, id: u32, name: u32) -> Record {
    let payload = Span { end: Ticks(end), ..Span::default() };
    let header = RecordHeader::of::<Span>(Level::TIMING);
    let (ticks, name) = (Ticks(start), NameId(name));
    Record::new(RecordHeader { ticks, name, span: id, ..header }, &payload)
}

/// A span that says that it is the measured region.
pub fn measured_span(start: u64, end: u64, id: u32, name: u32) -> Record {
    let header =
        RecordHeader { flags: flags::SPAN_MEASURED, ..span(start, end, id, name).header() };
    Record::new(header, &Span { end: Ticks(end), ..Span::default() })
}

/// The begin or end of a training step.
pub fn step(ticks: u64, number: u64, end: bool) -> Record {
    let flags = if end { flags::STEP_END } else { 0 };
    record(ticks, 0, flags, &Step { number, phase: Phase::TRAIN, ..Step::default() })
}

/// The begin or end of a micro-batch.
pub fn micro_batch(ticks: u64, number: u64, micro_batch: u32, end: bool) -> Record {
    let flags = flags::STEP_MICRO_BATCH | if end { flags::STEP_END } else { 0 };
    record(ticks, 0, flags, &Step { number, micro_batch, phase: Phase::TRAIN })
}

/// A number.
pub fn scalar(ticks: u64, name: u32, value: f64) -> Record {
    record(ticks, name, 0, &Scalar { value })
}

/// The head of a group.
pub fn tensor(ticks: u64, name: u32) -> Record {
    let payload = Tensor { tensor: TensorId(9), rank: 1, dtype: DType::F32, ..Tensor::default() };
    record(ticks, name, 0, &payload)
}

/// A record that continues a [`tensor`].
pub fn stats(ticks: u64, rms: f64) -> Record {
    record(ticks, 0, flags::CONTINUES, &Stats { count: 4, rms, ..Stats::default() })
}

/// A change of the level.
pub fn level(asked: u64, armed: u64, old: u8, new: u8) -> Record {
    let (asked, armed, old, new) = (Ticks(asked), Ticks(armed), Level(old), Level(new));
    let source = if old == new { LevelSource::START } else { LevelSource::ATTACH };
    record(asked.0, 0, 0, &LevelChange { asked, armed, old, new, source })
}

/// A gap of host time on a lane.
pub fn gap(first: u64, last: u64, records: u64, lane: u16, reason: GapReason) -> Record {
    let payload = Gap {
        first: Ticks(first),
        last: Ticks(last),
        records,
        groups: records,
        planes: Planes::HOST_TIME,
        lane: LaneId(lane),
        reason,
    };
    record(first, 0, 0, &payload)
}

/// A gradient that is not finite, of the root that is name 1.
pub fn gradient(ticks: u64, key: u32, norm: Option<f64>) -> Record {
    let flags = if norm.is_some() { flags::GRADIENT_NORM } else { 0 };
    let (root, state) = (NameId(1), GradientState::NON_FINITE);
    record(ticks, key, flags, &Gradient { norm: norm.unwrap_or_default(), root, state })
}

/// A span in another one of its lane.
pub fn span_in(parent: u32, (start, end): (u64, u64), id: u32, name: u32) -> Record {
    let payload = Span { end: Ticks(end), parent: SpanId(parent.into()), ..Span::default() };
    let header = RecordHeader::of::<Span>(Level::TIMING);
    let (ticks, name) = (Ticks(start), NameId(name));
    Record::new(RecordHeader { ticks, name, span: id, ..header }, &payload)
}

/// A number that was recorded within a span of its lane.
pub fn scalar_in(span: u32, ticks: u64, name: u32, value: f64) -> Record {
    let header = RecordHeader::of::<Scalar>(Level::PULSE);
    let (ticks, name) = (Ticks(ticks), NameId(name));
    Record::new(RecordHeader { ticks, name, span, ..header }, &Scalar { value })
}
