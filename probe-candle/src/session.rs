//! Tensors in sessions.

use std::borrow::Borrow;

use candle_core::{Tensor, Var};
use tmrun_probe_core::Level;
use tmrun_probe_core::session::{
    ExecutionStep, MemoryCategory, MemoryRecord, SessionError, SpanId, StatsRecord, TraceSession,
};

use crate::candle;
use crate::error::CandleError;
use crate::identity::{storage_bytes, storage_id};
use crate::memory::{self, Held, MemoryCounts};
use crate::stats::TensorStats;
use crate::{lifetimes, text};

/// Records candle tensors in a session. None of it keeps a tensor alive.
///
/// A session looks texts up: labels, types and identities, some hundred nanoseconds each. Identities of
/// tensors and storages are names of the session, of which it holds so many
/// ([`SessionBuilder::names`](tmrun_probe_core::session::SessionBuilder::names)). What records many
/// tensors a step is better off with a probe and a [`CandleRecorder`](crate::CandleRecorder).
///
/// Captures of tensors and operations are recorded by [`candle::record_tensor`] and
/// [`candle::record_op`]: a session's own `record_tensor` and `record_op` take what any backend knows.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use tmrun_probe_candle::SessionExt as _;
/// use tmrun_probe_core::session::{ExecutionStep, ProfileRun, SpanKind, TraceSession};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("update-1.tmrun");
/// let session = TraceSession::open(path, ProfileRun::training("trainer::update", 1, "cpu"))?;
/// {
///     let forward = session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Module);
///     let hidden = Tensor::ones((4, 8), DType::BF16, &Device::Cpu)?;
///     session.record_tensor_stats(forward.id(), "block-0/out", &hidden)?;
///     let step = Some(ExecutionStep::Forward);
///     session.record_tensor_with_label(forward.id(), "block-0/out", &hidden, step)?;
/// }
/// session.finish()?;
/// # Ok(())
/// # }
/// ```
///
/// Storages that come and go, as a part of a span that is around both:
///
/// ```
/// use candle_core::{DType, Device, Tensor, Var};
/// use tmrun_probe_candle::{SessionExt as _, Tracked};
/// use tmrun_probe_core::session::{MemoryCategory, ProfileRun, TraceSession};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("update-1.tmrun");
/// let weight = Var::ones((8, 8), DType::F32, &Device::Cpu)?;
/// let session = TraceSession::open(path, ProfileRun::training("trainer::update", 1, "cpu"))?;
/// {
///     let measured = session.begin_measurement("update/1");
///     let counts = session.record_parameters(measured.id(), [("head.weight", &weight)])?;
///     assert_eq!((counts.recorded, counts.bytes), (1, 256)); // they stay: no free
///     let cache = Tensor::zeros((4, 8), DType::F32, &Device::Cpu)?;
///     let cache = Tracked::in_session(&session, &measured, cache, MemoryCategory::Other)?;
///     assert_eq!(cache.dims(), [4, 8]);
/// } // the cache is freed, and then the span ends
/// session.finish()?;
/// # Ok(())
/// # }
/// ```
pub trait SessionExt {
    /// A tensor's statistics (level 3), under a label that is the same from run to run: how many elements
    /// and how many of them are NaN or infinite, and over the others the root of the mean square, the
    /// greatest absolute value, the mean, and the range.
    ///
    /// It looks at every element and waits as [`TensorStats::of`] does. On the processor it allocates
    /// nothing. Where the session does not ask for them nothing is computed.
    ///
    /// # Errors
    ///
    /// When candle cannot look at the tensor, the label is blank or the span none of this session's.
    fn record_tensor_stats(
        &self,
        span: SpanId,
        label: &str,
        tensor: &Tensor,
    ) -> Result<(), CandleError>;

    /// A tensor's metadata (level 2), as [`candle::record_tensor_with_label`] records it.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    fn record_tensor_with_label(
        &self,
        span: SpanId,
        label: impl Into<String>,
        tensor: &Tensor,
        step: Option<ExecutionStep>,
    ) -> Result<(), SessionError>;

    /// An allocation (level 2): the whole storage behind a tensor, which came into being for it; and
    /// whether it is recorded. What that means is as with
    /// [`candle_alloc`](crate::CandleRecorder::candle_alloc). It allocates nothing.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    fn record_tensor_alloc(
        &self,
        span: SpanId,
        tensor: &Tensor,
        category: MemoryCategory,
    ) -> Result<bool, SessionError>;

    /// The free of a storage whose allocation was recorded (level 2): the caller is about to drop the last
    /// that holds it, see [`candle_free`](crate::CandleRecorder::candle_free). It allocates nothing.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    fn record_tensor_free(
        &self,
        span: SpanId,
        tensor: &Tensor,
        category: MemoryCategory,
    ) -> Result<bool, SessionError>;

    /// The allocations of all parameters (level 2), by name; those that share a storage are recorded once.
    /// With a `candle_nn::VarMap` they are `varmap.data().lock().unwrap().iter()`.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    fn record_parameters<N: AsRef<str>, V: Borrow<Var>>(
        &self,
        span: SpanId,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Result<MemoryCounts, SessionError>;
}

impl SessionExt for TraceSession {
    fn record_tensor_stats(
        &self,
        span: SpanId,
        label: &str,
        tensor: &Tensor,
    ) -> Result<(), CandleError> {
        if !self.wants(label, Level::NUMERICS) {
            return Ok(());
        }
        let failed = |source| CandleError::Candle { label: label.to_owned(), source };
        let stats = TensorStats::of(tensor).map_err(failed)?;
        let record = StatsRecord {
            label,
            shape: tensor.dims(),
            dtype: tensor.dtype().as_str(),
            stats: stats.to_stats(),
            range: Some(stats.to_range()),
        };
        Ok(self.record_stats(span, record)?)
    }

    fn record_tensor_with_label(
        &self,
        span: SpanId,
        label: impl Into<String>,
        tensor: &Tensor,
        step: Option<ExecutionStep>,
    ) -> Result<(), SessionError> {
        candle::record_tensor_with_label(self, span, label, tensor, step)
    }

    fn record_tensor_alloc(
        &self,
        span: SpanId,
        tensor: &Tensor,
        category: MemoryCategory,
    ) -> Result<bool, SessionError> {
        Ok(alloc(self, span, tensor, category, None)?.is_some())
    }

    fn record_tensor_free(
        &self,
        span: SpanId,
        tensor: &Tensor,
        category: MemoryCategory,
    ) -> Result<bool, SessionError> {
        let bytes = storage_bytes(tensor).filter(|_| self.wants("", Level::METADATA));
        let Some(bytes) = bytes else { return Ok(false) };
        free(self, span, Held { storage: storage_id(tensor), bytes }, tensor, category)?;
        Ok(true)
    }

    fn record_parameters<N: AsRef<str>, V: Borrow<Var>>(
        &self,
        span: SpanId,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Result<MemoryCounts, SessionError> {
        memory::each_storage(parameters, |name, tensor| {
            let held = alloc(self, span, tensor, MemoryCategory::Parameter, Some(name))?;
            Ok(held.map(|held| held.bytes))
        })
    }
}

/// Records an allocation, if the session wants it and its bytes are known. The operation is what it
/// happened in.
pub(crate) fn alloc(
    session: &TraceSession,
    span: SpanId,
    tensor: &Tensor,
    category: MemoryCategory,
    op_name: Option<&str>,
) -> Result<Option<Held>, SessionError> {
    let held = if session.wants("", Level::METADATA) { memory::hold(tensor) } else { None };
    if let Some(held) = held {
        with_record(held, tensor, (category, op_name), |record| {
            session.record_memory_alloc(span, record)
        })?;
    }
    Ok(held)
}

/// Records a free and ends the lifetime.
pub(crate) fn free(
    session: &TraceSession,
    span: SpanId,
    held: Held,
    tensor: &Tensor,
    category: MemoryCategory,
) -> Result<(), SessionError> {
    with_record(held, tensor, (category, None), |record| session.record_memory_free(span, record))?;
    lifetimes::end(held.storage);
    Ok(())
}

fn with_record<R>(
    held: Held,
    tensor: &Tensor,
    (category, op_name): (MemoryCategory, Option<&str>),
    record: impl FnOnce(MemoryRecord<'_>) -> R,
) -> R {
    let (storage, id) = (text::of_storage(held.storage), text::of_tensor(tensor));
    let device = text::of_device(tensor.device().location());
    record(MemoryRecord {
        storage_id: storage.as_str(),
        tensor_id: id.as_str(),
        device: device.as_str(),
        bytes: held.bytes,
        dtype: tensor.dtype().as_str(),
        category,
        timestamp_ns: None,
        op_name,
        shape: tensor.dims(),
    })
}
