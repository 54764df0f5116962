//! Tensors, gradients and statistics of candle, recorded by a `tmrun` probe.
//!
//! Guarantees:
//!
//! - No tensor is kept alive: what is recorded are numbers.
//! - On the processor, recording a tensor, an operation or gradients allocates nothing and does no
//!   work on text; nor do statistics.
//! - Every call says what it may wait for. Metadata waits for a storage's read lock and nothing else.
//!   Statistics and gradients look at every element: on the processor in one pass on the calling
//!   thread, on CUDA by candle's reductions and reading back their results, on Metal by copying the
//!   elements; reading back waits for all work before it.
//! - Statistics and norms are computed in f64 over the finite elements; NaN and infinities are
//!   counted apart. A gradient of subnormals is not taken for zero. Sums are compensated: their error
//!   does not grow with the tensor ([`TensorStats::of`] states it).
//! - On the processor, statistics of a tensor are the same bits every time, whatever the number of
//!   threads and whichever vector unit the processor has.
//! - A parameter without a gradient is a record that says so. Some operations of candle-nn cut the
//!   gradient and tell nobody (`LayerNorm`, `softmax_last_dim`): with instrumented layers the recording has
//!   what names the one where it stops.
//! - A storage is named by its address, and by an epoch from its recorded allocation to its free
//!   ([`storage_id`]): a dropped storage's address comes again, a lifetime does not. Without an epoch,
//!   sharing is told where both tensors are at hand ([`same_storage`]) and nowhere else.
//! - Bytes of elements are a footprint and are never called an allocation.
//! - With feature `cuda`, `open_device` and `device_timer` time a device's work, without a wait.
//!
//! What is recorded, by what, and what a call may wait for beside the storage's read lock (a write of the
//! same storage by another thread: `Var::set`, an in-place operation):
//!
//! | what | with a probe | in a session | may wait for |
//! | --- | --- | --- | --- |
//! | metadata | [`candle_tensor`](CandleRecorder::candle_tensor) | [`candle::record_tensor`] | |
//! | operations | [`candle_op`](CandleRecorder::candle_op) | [`candle::record_op`] | |
//! | statistics | [`candle_stats`](CandleRecorder::candle_stats) | [`record_tensor_stats`](SessionExt::record_tensor_stats) | a pass over the elements; the accelerator |
//! | gradients | [`GradientPlan`] | [`GradientCapturePlan`] | the same, for each parameter |
//! | storages | [`candle_alloc`](CandleRecorder::candle_alloc), [`candle_free`](CandleRecorder::candle_free), [`Tracked::new`] | [`record_tensor_alloc`](SessionExt::record_tensor_alloc), [`record_tensor_free`](SessionExt::record_tensor_free), [`Tracked::in_session`] | |
//! | parameters | [`candle_parameters`](CandleRecorder::candle_parameters) | [`record_parameters`](SessionExt::record_parameters) | (set-up: it allocates) |
//! | the process | [`ProcessMemory::sample_memory`] | [`ProcessMemory::read`] | one system call |
//! | a device's memory | `Timer::sample_memory` of `tmrun-probe-cuda` (feature `cuda`) | | the driver |
//!
//! On the processor all of it allocates nothing, but for parameters and for what is owned text:
//! captures ([`candle`]), and the inputs of a session's operation.
//!
//! Models need not call the recorder themselves. [`instrument`] makes any module report its calls,
//! [`Layer::call`] any closure; with feature `nn` the layers of candle-nn do so by themselves, under the path of
//! their `VarBuilder`: the module `nn` has them by candle-nn's own names.
//!
//! An update's tensors and gradients, recorded and read back:
//!
//! ```
//! use candle_core::{DType, Device, Tensor, Var};
//! use tmrun_probe_candle::{CandleRecorder, GradientPlan};
//! use tmrun_probe_core::{Category, GradientState, Level, ProfileRun, Target, probe};
//! # use tmrun_formats::wire::{Chunks, Gradient, Walked};
//!
//! probe!(static PROBE: lanes = 1, slots = 1 << 10);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! let weight = Var::ones(3, DType::F32, &Device::Cpu)?;
//! let unused = Var::ones(3, DType::F32, &Device::Cpu)?;
//! let plan = GradientPlan::from_named_vars(
//!     &PROBE,
//!     "model",
//!     [("head.weight", &weight), ("old.weight", &unused)],
//! );
//! let head = PROBE.name("head");
//!
//! let run = ProfileRun::training("example", 1, "cpu").level(Level::NUMERICS);
//! let recording = PROBE.record(&path, run)?;
//! let step = PROBE.step(1);
//! let x = Tensor::new(&[1f32, 2., 3.], &Device::Cpu)?;
//! let y = weight.mul(&x)?;
//! PROBE.at(Level::METADATA, |to| to.candle_tensor(head, &y, Category::ACTIVATION));
//! let stats = PROBE.at(Level::NUMERICS, |to| {
//!     to.candle_stats(head, &y, Category::ACTIVATION, false)
//! });
//! assert_eq!(stats.transpose()?.flatten().map(|stats| stats.mean), Some(2.0));
//!
//! let gradients = y.sum_all()?.backward()?;
//! PROBE.at(Level::METADATA, |to| plan.record(&to, &gradients)).transpose()?;
//! drop(step);
//! recording.finish()?;
//!
//! let file = std::fs::read(&path)?;
//! let states: Vec<GradientState> = Chunks::new(&file)
//!     .filter_map(|walked| match walked {
//!         Walked::Chunk(chunk) => Some(chunk.records()),
//!         _ => None,
//!     })
//!     .flatten()
//!     .filter_map(|record| Some(record.payload::<Gradient>()?.state))
//!     .collect();
//! assert_eq!(states, [GradientState::PRESENT, GradientState::MISSING]);
//! # Ok(())
//! # }
//! ```

pub mod candle;
#[cfg(feature = "cuda")]
mod cuda;
mod error;
mod gradient;
mod identity;
mod lifetimes;
mod memory;
mod module;
mod plan;
mod process;
mod recorder;
mod session;
mod stats;
mod text;
mod tracked;

#[cfg(feature = "cuda")]
pub use cuda::{DeviceTimeError, device_timer, open_device};
pub use error::CandleError;
pub use gradient::{Gradient, GradientCounts};
pub use identity::{device_code, dtype_code, same_storage, storage_bytes, storage_id, tensor_id};
pub use lifetimes::{LifetimesInUse, hold_lifetimes, lifetimes_without_epoch};
pub use memory::MemoryCounts;
#[cfg(feature = "nn")]
pub use module::nn;
pub use module::{
    Instrumented, InstrumentedT, Layer, instrument, instrument_on, instrument_t, instrument_t_on,
};
pub use plan::{GradientCapturePlan, GradientPlan};
pub use process::{ProcessMemory, ProcessSample};
pub use recorder::{CandleRecorder, dense_bytes, tensor_fact};
pub use session::SessionExt;
pub use stats::TensorStats;
pub use tracked::{Ledger, OfProbe, OfSession, Tracked};
