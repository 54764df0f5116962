//! The recorder in the hot loop: `no_std`, no allocation, no lock, no system call.
//!
//! Guarantees:
//!
//! - Recording never blocks, allocates, panics or makes a system call (claiming a lane, interning a
//!   name and changing a level are set-up, not recording).
//! - A record is one cache line, stored word by word into a preallocated ring and published with one
//!   release store. A disarmed site costs one load and one branch; a site above the compile-time cap
//!   is no code at all.
//! - When the ring is full or no lane is left, the newest record is dropped and counted; nothing
//!   stored is written over, unless the clock is [`Overwrite`]: then a full ring gives up its oldest
//!   record, and a hole says so. Every drop is in the file: attempted = stored + dropped, exactly.
//! - A fact of several records (a tensor with statistics, an operation with inputs) is stored whole
//!   or dropped whole.
//! - A span is one record, written when it ends; its start is one clock read and its end another.
//! - All memory is in [`Probe`], which is all zeros and lies in a `static`.
//!
//! The smallest program, which records and reads back:
//!
//! ```
//! use tmrun_formats::wire::{Chunks, Kind, Walked};
//! use tmrun_probe_core::{Level, ProfileRun, probe, scalar, span};
//!
//! probe!(static PROBE: lanes = 4, slots = 1 << 10);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("run.tmrun");
//! let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
//! let recording = PROBE.record(&path, run)?;
//! for update in 1..=3 {
//!     let _step = PROBE.step(update);
//!     let _forward = span!(PROBE, "forward");
//!     scalar!(PROBE, "loss", 1.0 / update as f64);
//! }
//! recording.finish()?;
//!
//! let file = std::fs::read(&path)?;
//! let chunks = Chunks::new(&file).filter_map(|walked| match walked {
//!     Walked::Chunk(chunk) => Some(chunk.records()),
//!     _ => None,
//! });
//! let spans = chunks.flatten().filter(|record| record.kind() == Some(Kind::Span)).count();
//! assert_eq!(spans, 3);
//! # Ok(())
//! # }
//! ```
//!
//! Libraries record with `span!("name")` and `scalar!("label", v)` on the probe that the program
//! installs (`install`). What moves between threads is a [`DetachedSpan`]; a future is put in one by
//! [`InSpanExt`]. With feature `tracing` there is a layer for what is instrumented with that.
//!
//! With `std`, a `session` records one step with texts for names, as programs do that were written
//! for `candle-graph`.
//!
//! Without `std`, [`Probe::new`] goes into a `static`, [`ProbeRef::claim`] gives a [`Lane`], the
//! macros take the lane, and the application polls a [`Drain`] into any [`Sink`].
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(all(loom, test), allow(dead_code, reason = "no model looks at the installed probe"))]

#[cfg(feature = "std")]
mod calibrate;
mod clock;
mod codes;
mod detached;
mod device;
mod drain;
mod facts;
// (It is statics, which a model's atomics cannot be in.)
#[cfg(all(feature = "std", not(all(loom, test))))]
mod global;
mod image;
mod in_span;
mod lane;
mod levels;
mod macros;
mod meta;
#[cfg(all(loom, test))]
mod models;
mod names;
mod places;
mod probe;
mod record;
#[cfg(feature = "std")]
mod recording;
mod ring;
#[cfg(all(feature = "std", not(all(loom, test))))]
pub mod session;
mod shared;
mod sink;
mod site;
mod span;
mod step;
mod sync;
#[cfg(all(feature = "std", not(all(loom, test))))]
mod thread;
#[cfg(all(feature = "tracing", not(all(loom, test))))]
mod tracing_layer;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", feature = "std"))]
pub use clock::AutoClock;
#[cfg(feature = "std")]
pub use clock::MonotonicClock;
pub use clock::{Clock, Overrun, Overwrite};
#[doc(hidden)]
pub use detached::begin_detached;
pub use detached::{DetachedSpan, Segment};
pub use device::{DeviceGap, DeviceIntervalFact, Launch};
pub use drain::{Drain, Flush, Polled, Start, Summary, Unavailable};
#[doc(hidden)]
pub use facts::record_scalar;
pub use facts::{DeviceMemoryFact, MemoryFact, OpFact, TensorFact};
#[cfg(all(feature = "std", not(all(loom, test))))]
#[doc(hidden)]
pub use global::Entry;
#[cfg(all(feature = "std", not(all(loom, test))))]
pub use global::{AlreadyInstalled, Global, StaticProbe, install};
pub use in_span::{InSpan, InSpanExt};
#[doc(hidden)]
pub use lane::LaneBlock;
pub use lane::MAX_DEPTH;
pub use levels::FocusError;
#[doc(hidden)]
pub use macros::Settings;
pub use names::Node;
pub use places::DevicePlace;
pub use probe::{NoLane, Probe, ProbeRef};
pub use record::{Lane, Recorder, Target};
#[cfg(feature = "std")]
pub use recording::{DumpOn, ProfileRun, RecordError, Recording};
pub use sink::{MemoryFull, Sink, SliceSink};
pub use site::Site;
#[doc(hidden)]
pub use span::open_span;
pub use span::{SpanGuard, SpanShape};
pub use step::StepGuard;
#[cfg(all(feature = "std", not(all(loom, test))))]
#[doc(hidden)]
pub use thread::{GiveBack, ThreadLane};
#[cfg(all(feature = "tracing", not(all(loom, test))))]
pub use tracing_layer::TmrunLayer;

pub use tmrun_formats::wire::{Kind, Range, Stats};
pub use tmrun_formats::{
    Category, ClockCode, DType, DeviceCode, ExecutionStep, GapReason, GradientState, LaneId, Level,
    NameId, Pattern, PatternError, Phase, Planes, SpanId, SpanKind, StorageId, StreamId, TensorId,
    Ticks,
};

/// Whether the probe is compiled out.
const OFF: bool = cfg!(feature = "off");

/// The quick start of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
