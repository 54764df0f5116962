//! Sessions: what an application records of one step, by texts (feature `std`).
//!
//! A [`TraceSession`] is a thin face on a probe of its own. What it is told goes into the same rings,
//! and its file is a `.tmrun` like any other. Names and arguments are those of `candle-graph`, so that
//! a program which was written for that moves over by its imports. What differs:
//!
//! - The file is a `.tmrun`, and one that is there is not written over ([`ProfileRun::replace`]).
//! - Nothing waits for the disk. What finds no room is counted, and the file says so.
//! - Errors are a [`SessionError`].
//!
//! Every call looks its texts up in the session's name table, which takes some hundred nanoseconds:
//! the price of a face without sites. The table is the session's own, so that labels with counters in
//! them fill nobody else's; so are the ring and the one lane, and several sessions may be open at once.
//! Their memory is mapped when they open and goes when they end ([`SessionBuilder`] sizes it).
//!
//! # One measured region
//!
//! The session's root is the run; of what is in it, the measured region is what the step's time is.
//!
//! ```
//! use tmrun_probe_core::session::{
//!     CaptureContract, CaptureSelector, CoverageLevel, ExecutionStep, MeasurementScope, ProfileRun,
//!     SpanKind, TraceSession,
//! };
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("update-7.tmrun");
//! let selector = CaptureSelector::new(7)?;
//! for update in 1..=10 {
//!     if !selector.is_selected(update) {
//!         continue; // the update without a session
//!     }
//!     let contract = CaptureContract {
//!         measurement_scope: MeasurementScope::ProfiledWork,
//!         operations: CoverageLevel::Partial,
//!         required_semantic_labels: vec!["update/7/forward".into()],
//!         ..CaptureContract::default()
//!     };
//!     let run = ProfileRun::training("trainer::update", update, "cpu").capture_contract(contract);
//!     let session = TraceSession::open(&path, run)?;
//!     {
//!         let _measured = session.begin_measurement("update/7");
//!         {
//!             let label = "update/7/forward";
//!             let forward =
//!                 session.begin_step_span(label, ExecutionStep::Forward, SpanKind::Function);
//!             session.record_scalar(forward.id(), "loss/total", 0.25)?;
//!         }
//!     }
//!     session.finish()?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A contract that cannot be kept is refused before there is a file:
//!
//! ```
//! use tmrun_probe_core::session::{
//!     CaptureContract, CoverageLevel, ProfileRun, SessionError, TraceSession,
//! };
//!
//! let contract =
//!     CaptureContract { activations: CoverageLevel::Complete, ..CaptureContract::default() };
//! let run = ProfileRun::inference("serve::request", 1, "cpu").capture_contract(contract);
//! let refused = TraceSession::open("never.tmrun", run).unwrap_err();
//! assert!(matches!(refused, SessionError::Record(_)));
//! assert!(!std::path::Path::new("never.tmrun").exists());
//! ```
//!
//! # Time
//!
//! A session counts nanoseconds since it was opened, on the clock of [`Instant`](std::time::Instant).
//! Work that another thread did meanwhile is reported when it has ended:
//!
//! ```
//! # use tmrun_probe_core::session::{ProfileRun, SpanKind, TraceSession};
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! # let session = TraceSession::open(path, ProfileRun::training("loader", 1, "cpu"))?;
//! let measured = session.begin_measurement("update/1");
//! let loading = std::thread::spawn(|| {
//!     let started = std::time::Instant::now();
//!     // … the next batch is read …
//!     (started, std::time::Instant::now())
//! });
//! let (started, ended) = loading.join().unwrap();
//! let (start_ns, end_ns) = (session.host_timestamp_ns(started)?, session.host_timestamp_ns(ended)?);
//! let took_ns = (end_ns - start_ns).max(1);
//! session.record_completed_host_span("load", SpanKind::Function, start_ns, took_ns)?;
//! drop(measured);
//! # session.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times of a device are on its own clock. They are grouped by it, and added to nothing else:
//!
//! ```
//! # use tmrun_probe_core::session::{DeviceIntervalRecord, ProfileRun, SpanKind, TraceSession};
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! # let session = TraceSession::open(path, ProfileRun::training("train", 1, "cuda:0"))?;
//! let matmul = session.begin_span("matmul", SpanKind::Op);
//! session.record_device_interval(
//!     matmul.id(),
//!     DeviceIntervalRecord {
//!         device: "cuda:0",
//!         stream_id: "stream-7",
//!         clock_id: "cuda-events",
//!         backend: "cudarc",
//!         start_ns: 1_000,
//!         duration_ns: 250,
//!     },
//! )?;
//! # drop(matmul);
//! # session.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory
//!
//! Lifetimes of storages and the memory of a device are two planes: neither is made of the other.
//!
//! ```
//! use tmrun_probe_core::session::{DeviceMemoryRecord, MemoryCategory, MemoryRecord};
//!
//! # use tmrun_probe_core::session::{ProfileRun, SpanKind, TraceSession};
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! # let session = TraceSession::open(path, ProfileRun::training("train", 1, "cuda:0"))?;
//! let span = session.begin_span("forward", SpanKind::Function);
//! let hidden = MemoryRecord {
//!     storage_id: "storage-1",
//!     tensor_id: "hidden",
//!     device: "cuda:0",
//!     bytes: 4096, // what the backend allocated
//!     dtype: "f32",
//!     category: MemoryCategory::Activation,
//!     timestamp_ns: None,
//!     op_name: Some("matmul"),
//!     shape: &[32, 30],
//! };
//! session.record_memory_alloc(span.id(), hidden)?;
//! session.record_device_memory(DeviceMemoryRecord {
//!     device: "cuda:0",
//!     used_bytes: Some(1 << 30),
//!     free_bytes: None,
//!     reserved_bytes: None,
//!     capacity_bytes: None,
//!     timestamp_ns: None,
//! })?;
//! session.record_memory_free(span.id(), hidden)?;
//! # drop(span);
//! # session.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Gradients
//!
//! Complete gradients are those of a manifest, each recorded once:
//!
//! ```
//! use tmrun_probe_core::session::{
//!     CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientFamilyContract,
//!     GradientState, ProfileRun, TraceSession,
//! };
//!
//! let expected = vec![
//!     ExpectedGradient::new("parameters", "head.weight", "trainable"),
//!     ExpectedGradient::new("parameters", "stem.weight", "frozen"),
//! ];
//! let families = vec![
//!     GradientFamilyContract::active("trainable", 1),
//!     GradientFamilyContract::inactive("frozen"),
//! ];
//! let contract = CaptureContract {
//!     gradients: CoverageLevel::Complete,
//!     gradient_contract: Some(GradientContract::new(expected, families)?),
//!     ..CaptureContract::default()
//! };
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! let run = ProfileRun::training("trainer::update", 1, "cpu").capture_contract(contract);
//! let session = TraceSession::open(path, run)?;
//! session.record_gradient("parameters", "head.weight", GradientState::Present, Some(0.5))?;
//! session.record_gradient("parameters", "stem.weight", GradientState::Missing, None)?;
//! let refused = session.record_gradient("parameters", "head.bias", GradientState::Zero, Some(-0.0));
//! assert!(refused.is_err());
//! # session.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What makes runs comparable
//!
//! ```
//! use tmrun_probe_core::session::{ComparisonIdentity, ProfileRun};
//!
//! let identity = ComparisonIdentity {
//!     implementation_id: Some("git:abc123".into()),
//!     workload_id: "training-step".into(),
//!     model_id: "transformer-small".into(),
//!     config_id: "default".into(),
//!     data_id: "shard-0".into(),
//!     seed_policy: "fixed-42".into(),
//!     physical_batch: 64,
//!     accumulation_steps: 2,
//!     precision: "bf16".into(),
//!     device_state: "exclusive".into(),
//!     pair_id: None,
//! };
//! let run = ProfileRun::training("trainer::update", 12, "cuda:0")
//!     .warmup_steps(10)
//!     .correlation_id("nightly/update-12")
//!     .tag("dataset", "small")
//!     .measured_region_device_synchronized()
//!     .comparison_identity(identity);
//! ```
//!
//! # Failure
//!
//! ```
//! # use tmrun_probe_core::session::{ProfileRun, TraceSession};
//! # fn update(session: &TraceSession) -> Result<(), &'static str> { Err("the loss is NaN") }
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! let session = TraceSession::open(path, ProfileRun::training("trainer::update", 1, "cpu"))?;
//! match update(&session) {
//!     Ok(()) => session.finish()?,
//!     Err(reason) => session.finish_failed(reason)?,
//! };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codes;
mod error;
mod ground;
mod memory;
#[cfg(feature = "nvtx")]
mod nvtx;
mod pages;
mod profile;
mod record;
mod records;
mod selector;
mod span;
mod trace;

pub use error::{SessionError, StatsFault};
pub use profile::{ProfileConfig, ProfileSession, TimedOperation};
pub use records::{
    DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, StatsRecord, TensorRecord,
};
pub use selector::{CaptureSelector, ZeroInvocation};
pub use span::{SpanGuard, SpanId};
pub use trace::{SessionBuilder, TraceSession};

pub use crate::drain::Summary;
pub use crate::recording::{ProfileRun, RecordError};
pub use tmrun_formats::trace::{
    CaptureContract, ComparisonIdentity, ContractError, CoverageLevel, ExpectedGradient,
    GRADIENT_MANIFEST_SCHEMA, GradientContract, GradientContractError, GradientFamilyContract,
    GradientFamilyExpectation, GradientState, IdentityError, MeasurementScope, MemoryCategory,
    RunError, SpanKind, TimingMode, TracePhase as ExecutionPhase, TraceStep as ExecutionStep,
};
pub use tmrun_formats::wire::{Range, Stats};

/// The recording clock of a session: it counts the nanoseconds that the application's own times are
/// in, so that no time it hands over is turned into another.
type SessionClock = crate::clock::MonotonicClock;
