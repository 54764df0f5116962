//! Device intervals from CUDA events.
//!
//! Guarantees:
//!
//! - It builds and links without CUDA. A driver that is missing or too old, a function that it lacks, or
//!   no device is a [`CudaError`] that says what was looked for; the program goes on.
//! - Timing an interval calls the driver four times (`cuStreamIsCapturing` and `cuEventRecord` at each
//!   end; two without the former) and does nothing else: no allocation, no lock, no wait, no change of
//!   the current context.
//! - The error that an application's own binding keeps is left alone: the driver is called directly,
//!   and the context is retained once more.
//! - No capture is broken: what is timed within one is counted as a gap, and the drain asks in the
//!   relaxed mode.
//! - Nothing is lost without being counted: attempted = recorded + missing, with a gap in the file for
//!   every reason.
//! - After an error that is there to stay the driver is not called again.
//!
//! **What an interval is:** stream time between two points, not the time that kernels kept the device
//! busy. **What a host span is, around work for a device:** submit time. The two clocks are not related
//! to each other unless [`Timer::calibrate`] was called.
//!
//! ```no_run
//! use std::time::Duration;
//! use tmrun_probe_core::{ProfileRun, probe};
//! use tmrun_probe_cuda::{CudaError, CudaProbe, TimerSettings, unavailable};
//!
//! probe!(static PROBE: lanes = 4);
//!
//! # fn run(stream: std::sync::Arc<cudarc::driver::CudaStream>) -> Result<(), Box<dyn std::error::Error>> {
//! let recording = PROBE.record("run.tmrun", ProfileRun::training("train", 1, "cuda:0"))?;
//! match CudaProbe::open(*PROBE, 0) {
//!     Err(error) => unavailable(*PROBE, &error), // the file says why there is no device time
//!     Ok(device) => {
//!         let draining = device.drain_every(Duration::from_millis(1))?;
//!         let timer = device.local_timer(&stream, TimerSettings::default())?;
//!         timer.calibrate(16, Duration::from_secs(5))?;
//!         let forward = PROBE.name("forward");
//!         for step in 1..=100 {
//!             let _step = PROBE.step(step);
//!             let _interval = timer.interval(&PROBE, forward);
//!             // launch the step's work on `stream`
//!         }
//!         timer.calibrate(16, Duration::from_secs(5))?;
//!         drop(draining);
//!         let counts = device.finish(Duration::from_secs(5));
//!         assert_eq!(counts.attempted, counts.recorded + counts.missing());
//!     }
//! }
//! recording.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! What this could not be tried on is in `docs/LEVELS.md`.

mod anchor;
mod clock_sync;
mod context;
mod distance;
mod drain;
mod draining;
mod driver;
mod error;
mod fit;
mod gaps;
mod graph;
mod looking;
mod memory;
mod pool;
mod probe;
mod ring;
mod shared;
mod summary;
mod thread;
mod timer;

pub use clock_sync::Calibration;
pub use drain::Drained;
pub use draining::Draining;
pub use driver::{Code, LoadError};
pub use error::CudaError;
pub use graph::GraphInterval;
pub use probe::{CudaProbe, TimerSettings, unavailable};
pub use summary::CudaCounts;
pub use timer::{Interval, LocalTimer, Timer};

/// The binding whose types the timers take.
pub use cudarc;
pub use tmrun_formats::DeviceFit;
