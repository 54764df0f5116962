//! What a session records besides spans.

use tmrun_formats::trace::GradientState;
use tmrun_formats::wire::{
    Alloc, DeviceInterval, DeviceMemory, Edge, Free, Gradient, Op, Payload, RecordHeader, Scalar,
    Tensor, flags,
};
use tmrun_formats::{EdgeKind, Level, NameId, StorageId, StreamId, TensorId, Ticks};

use super::records::{
    DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, StatsRecord, TensorRecord,
};
use super::trace::{interval, text};
use super::{SessionClock, SessionError, SpanId, StatsFault, TraceSession, codes};
use crate::clock::Clock;
use crate::facts::{DeviceMemoryFact, MemoryFact, OpFact, TensorFact};

type Recorded = Result<(), SessionError>;

impl TraceSession {
    /// Records an operation of this span.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    pub fn record_op(&self, span: SpanId, op: OpRecord<'_>) -> Recorded {
        let (ground, span) = (&self.ground, self.ground.check(span)?);
        if !ground.wants(NameId::NONE, Level::TIMING) {
            return Ok(());
        }
        let began = match op.timestamp_ns {
            0 => self.elapsed_ns().saturating_sub(op.duration_ns),
            given => given,
        };
        let (probe, start) = (ground.probe(), ground.at(began));
        let inputs: Vec<TensorId> = op.inputs.iter().map(|id| self.tensor_id(id)).collect();
        let output = op.output.map_or(TensorId::NONE, |id| self.tensor_id(id));
        let fact = OpFact {
            op: ground.name(op.op_name),
            start,
            end: Ticks(start.0.saturating_add(op.duration_ns)),
            output,
            shape: Some(op.shape),
            dtype: probe.dtype(op.dtype),
            device: probe.device(op.device),
            inputs: &inputs,
            input_bytes: Some(op.input_dense_bytes),
            ..OpFact::default()
        };
        let mut header = ground.header::<Op>(span, start, NameId::NONE);
        header.flags |= flag(flags::OP_OUTPUT_NAMED, output.0);
        ground.recorder().store_op(header, &fact, true);
        Ok(())
    }

    /// Records a tensor's metadata. (That it lives is recorded by allocations alone.)
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    pub fn record_tensor(&self, span: SpanId, tensor: TensorRecord<'_>) -> Recorded {
        let (ground, span) = (&self.ground, self.ground.check(span)?);
        let label = tensor.label.unwrap_or_default();
        let Some(label) = ground.wanted(label, Level::METADATA) else { return Ok(()) };
        let fact = TensorFact {
            tensor: self.tensor_id(tensor.tensor_id),
            shape: tensor.shape,
            dtype: ground.probe().dtype(tensor.dtype),
            device: ground.probe().device(tensor.device),
            category: codes::category(tensor.category),
            requires_grad: tensor.requires_grad,
            ..TensorFact::default()
        };
        let mut header = self.header_now::<Tensor>(span, label);
        header.flags |= flag(flags::TENSOR_NAMED, fact.tensor.0);
        ground.recorder().store_tensor(header, &fact, None);
        Ok(())
    }

    /// Records one number that the application has, such as a loss. It may be any, NaN and infinities
    /// among them.
    ///
    /// # Errors
    ///
    /// When the label is blank, or the span none of this session's.
    pub fn record_scalar(&self, span: SpanId, label: &str, value: f64) -> Recorded {
        let (label, span) = (text("the label of a scalar", label)?, self.ground.check(span)?);
        if let Some(label) = self.ground.wanted(label, Level::PULSE) {
            let header = self.header_now::<Scalar>(span, label);
            self.ground.recorder().store(header, &Scalar { value });
        }
        Ok(())
    }

    /// Records statistics of a tensor that the application or its adapter has computed.
    ///
    /// # Errors
    ///
    /// When the label is blank, the statistics contradict themselves or the shape, or the span is none
    /// of this session's.
    pub fn record_stats(&self, span: SpanId, record: StatsRecord<'_>) -> Recorded {
        let label = text("the label of statistics", record.label)?;
        check_stats(&record).map_err(|fault| SessionError::Stats { fault })?;
        let (ground, span) = (&self.ground, self.ground.check(span)?);
        let Some(label) = ground.wanted(label, Level::NUMERICS) else { return Ok(()) };
        let fact = TensorFact {
            shape: record.shape,
            dtype: ground.probe().dtype(record.dtype),
            ..TensorFact::default()
        };
        let header = self.header_now::<Tensor>(span, label);
        let flags = header.flags | flags::TENSOR_CONTEXT;
        let header = RecordHeader { level: Level::NUMERICS, flags, ..header };
        let stats = (&record.stats, record.range.as_ref());
        ground.recorder().store_tensor(header, &fact, Some(stats));
        Ok(())
    }

    /// Records that a storage was allocated.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    pub fn record_memory_alloc(&self, span: SpanId, memory: MemoryRecord<'_>) -> Recorded {
        if let Some((header, fact)) = self.memory::<Alloc>(span, &memory)? {
            self.ground.recorder().store_alloc(header, &fact);
        }
        Ok(())
    }

    /// Records that a storage was freed.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    pub fn record_memory_free(&self, span: SpanId, memory: MemoryRecord<'_>) -> Recorded {
        if let Some((header, fact)) = self.memory::<Free>(span, &memory)? {
            self.ground.recorder().store_free(header, &fact);
        }
        Ok(())
    }

    fn memory<'m, P: Payload>(
        &self,
        span: SpanId,
        memory: &MemoryRecord<'m>,
    ) -> Result<Option<(RecordHeader, MemoryFact<'m>)>, SessionError> {
        let (ground, span) = (&self.ground, self.ground.check(span)?);
        if !ground.wants(NameId::NONE, Level::METADATA) {
            return Ok(None);
        }
        let ticks = memory.timestamp_ns.map_or_else(SessionClock::ticks, |ns| ground.at(ns));
        let fact = MemoryFact {
            storage: StorageId(ground.name(memory.storage_id).0.into()),
            tensor: self.tensor_id(memory.tensor_id),
            bytes: memory.bytes,
            op: memory.op_name.map_or(NameId::NONE, |name| ground.name(name)),
            shape: Some(memory.shape),
            dtype: ground.probe().dtype(memory.dtype),
            device: ground.probe().device(memory.device),
            category: codes::category(memory.category),
        };
        let mut header = ground.header::<P>(span, ticks, NameId::NONE);
        header.flags |= flag(flags::STORAGE_NAMED, fact.storage.0);
        header.flags |= flag(flags::TENSOR_NAMED, fact.tensor.0);
        Ok(Some((header, fact)))
    }

    /// Records a sample of a device's memory.
    ///
    /// # Errors
    ///
    /// When it holds no value.
    pub fn record_device_memory(&self, sample: DeviceMemoryRecord<'_>) -> Recorded {
        let ground = &self.ground;
        let values =
            [sample.used_bytes, sample.free_bytes, sample.reserved_bytes, sample.capacity_bytes];
        if values.iter().all(Option::is_none) {
            return Err(SessionError::EmptyDeviceMemory);
        }
        if !ground.wants(NameId::NONE, Level::METADATA) {
            return Ok(());
        }
        let ticks = sample.timestamp_ns.map_or_else(SessionClock::ticks, |ns| ground.at(ns));
        let [used, free, reserved, capacity] = values;
        let device = ground.probe().device(sample.device);
        let fact = DeviceMemoryFact { device, used, free, reserved, capacity };
        let header = ground.header::<DeviceMemory>(ground.enclosing(), ticks, NameId::NONE);
        ground.recorder().store_device_memory(header, &fact);
        Ok(())
    }

    /// Records a stretch of time on a device's own clock that work of this span took.
    ///
    /// # Errors
    ///
    /// When it lasts no time, or the span is none of this session's.
    pub fn record_device_interval(
        &self,
        span: SpanId,
        record: DeviceIntervalRecord<'_>,
    ) -> Recorded {
        let end = interval("a device interval", record.start_ns, record.duration_ns)?;
        let (ground, span) = (&self.ground, self.ground.check(span)?);
        if !ground.wants(NameId::NONE, Level::TIMING) {
            return Ok(());
        }
        let (probe, stream) = (ground.probe(), ground.name(record.stream_id));
        let device = probe.device(record.device);
        let mut header = self.header_now::<DeviceInterval>(span, NameId::NONE);
        header.flags |= flag(flags::STREAM_NAMED, stream.0.into());
        let payload = DeviceInterval {
            start: record.start_ns,
            end,
            stream: StreamId(stream.0.into()),
            seen: header.ticks,
            span: header.span,
            lane: ground.block().id(),
            device,
            clock: probe.device_clock(record.clock_id, device, record.backend),
        };
        ground.recorder().store(header, &payload);
        Ok(())
    }

    /// Records that one span called the other, which took so long.
    ///
    /// # Errors
    ///
    /// When either is none of this session's.
    pub fn record_call_edge(&self, from: SpanId, to: SpanId, duration_ns: u64) -> Recorded {
        let (from, to) = (self.ground.check(from)?.raw(), self.ground.check(to)?.raw());
        let lane = self.ground.block().id();
        let (from_lane, to_lane, kind) = (lane, lane, EdgeKind::CALL);
        self.edge(0, &Edge { from, to, duration: duration_ns, from_lane, to_lane, kind });
        Ok(())
    }

    /// Records that one tensor was made from the other.
    ///
    /// # Errors
    ///
    /// When either has no id.
    pub fn record_data_edge(&self, from: &str, to: &str) -> Recorded {
        if from.is_empty() || to.is_empty() {
            return Err(SessionError::Blank { what: "the id of a tensor" });
        }
        let (from, to) = (self.tensor_id(from).0, self.tensor_id(to).0);
        let named = flag(flags::EDGE_FROM_NAMED, from) | flag(flags::EDGE_TO_NAMED, to);
        self.edge(named, &Edge { from, to, kind: EdgeKind::DATA, ..Edge::default() });
        Ok(())
    }

    fn edge(&self, flags: u16, edge: &Edge) {
        if self.ground.wants(NameId::NONE, Level::TIMING) {
            let header = self.header_now::<Edge>(self.ground.enclosing(), NameId::NONE);
            self.ground.recorder().store(RecordHeader { flags, ..header }, edge);
        }
    }

    /// Records what became of a parameter's gradient: each parameter of the contract once.
    ///
    /// # Errors
    ///
    /// When root or key is blank, or the norm does not go with the state: a present gradient has a
    /// finite one above 0, a zero one 0.0 and not −0.0, others none.
    pub fn record_gradient(
        &self,
        root: impl AsRef<str>,
        key: impl AsRef<str>,
        state: GradientState,
        norm: Option<f64>,
    ) -> Recorded {
        let root = text("the root of a gradient", root.as_ref())?;
        let key = text("the key of a gradient", key.as_ref())?;
        let goes_with = match state {
            GradientState::Present => norm.is_some_and(|norm| norm.is_finite() && norm > 0.0),
            GradientState::Zero => norm.is_some_and(|norm| norm.to_bits() == 0),
            GradientState::Missing | GradientState::NonFinite => norm.is_none(),
        };
        if !goes_with {
            return Err(SessionError::Gradient { state, norm });
        }
        let ground = &self.ground;
        if let Some(key) = ground.wanted(key, Level::METADATA) {
            let root = ground.name(root);
            let header = self.header_now::<Gradient>(ground.enclosing(), key);
            ground.recorder().store_gradient(header, root, codes::gradient(state), norm);
        }
        Ok(())
    }

    fn header_now<P: Payload>(&self, span: SpanId, name: NameId) -> RecordHeader {
        self.ground.header::<P>(span, SessionClock::ticks(), name)
    }

    fn tensor_id(&self, id: &str) -> TensorId {
        TensorId(self.ground.name(id).0.into())
    }
}

/// The flag that says that an id is a name; none when the name found no room.
const fn flag(flag: u16, name: u64) -> u16 {
    if name == 0 { 0 } else { flag }
}

/// Holds what a reader of statistics holds.
fn check_stats(record: &StatsRecord<'_>) -> Result<(), StatsFault> {
    let stats = &record.stats;
    let dims = record.shape.iter().map(|&dim| dim as u64);
    let product = dims.into_iter().try_fold(1_u64, u64::checked_mul);
    if product != Some(stats.count) {
        return Err(StatsFault::Elements { count: stats.count, product });
    }
    let non_finite = u64::from(stats.nan).saturating_add(stats.inf.into());
    if non_finite > stats.count {
        return Err(StatsFault::NonFinite { count: stats.count, non_finite });
    }
    let least =
        [("rms", stats.rms, 0.0), ("abs_max", stats.abs_max, 0.0), ("mean", stats.mean, f64::MIN)];
    match least.into_iter().find(|(_, value, least)| !value.is_finite() || value < least) {
        Some((field, value, _)) => Err(StatsFault::Value { field, value }),
        None => Ok(()),
    }
}
