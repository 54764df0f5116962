//! Why there is no device time.

use crate::driver::{Code, LoadError};

/// Why something of the device could not be had. The program can go on without.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The driver could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The driver is there, and finds no device.
    #[error(
        "{library} finds no CUDA device ({code}): check `nvidia-smi`, the permissions of /dev/nvidia*, \
         and CUDA_VISIBLE_DEVICES"
    )]
    NoDevice {
        /// The driver's file.
        library: &'static str,
        /// What it said.
        code: Code,
    },
    /// There are devices, and not this one.
    #[error("there is no CUDA device {ordinal}: {found} found, numbered from 0")]
    NoSuchDevice {
        /// What was asked for.
        ordinal: u32,
        /// How many there are.
        found: i32,
    },
    /// The driver refused.
    #[error("{call}: {code}")]
    Driver {
        /// The function.
        call: &'static str,
        /// What it returned.
        code: Code,
    },
    /// The driver said something that is no number.
    #[error("{call} says a time that is no number: the driver is broken")]
    NoNumber {
        /// The function.
        call: &'static str,
    },
    /// An earlier error of the device is there to stay: the process has to be restarted.
    #[error("the device failed earlier, for good: {code}; restart the process")]
    Dead {
        /// The first such error.
        code: Code,
    },
    /// The stream is of another context than the probe's device has.
    #[error(
        "the stream is of another context: it is timed by a probe that was opened for its device \
         ({stream} against {probe})"
    )]
    ContextMismatch {
        /// Ordinal of the stream's device.
        stream: usize,
        /// Ordinal of the probe's.
        probe: u32,
    },
    /// The stream is each thread's own, and this thread is not the one that the timer was made on.
    #[error("this stream is each thread's own: use the timer on the thread that it was made on")]
    WrongThread,
    /// The stream is being captured into a graph, where nothing can be measured now.
    #[error("the stream is being captured into a graph: do it before or behind the capture")]
    Capturing,
    /// Work that was to be waited for did not end in time.
    #[error("the stream was still busy after {waited_ms} ms")]
    Busy {
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// A pool needs room for at least four intervals, and has it for at most 2³⁰.
    #[error("a pool of {intervals} intervals: from 4 to 2^30 can be had")]
    PoolSize {
        /// What was asked for.
        intervals: usize,
    },
    /// Every event of the pool is in use.
    #[error("every event of the timer's pool is in use: drain it, or give it more")]
    PoolExhausted,
    /// Device time is recorded on a lane of its own.
    #[error("every lane of the probe is taken: give it one more for each device")]
    NoLane,
    /// The probe was finished.
    #[error("the device probe was finished")]
    Finished,
    /// No thread could be had for draining.
    #[error("no thread could be had for draining: {reason}")]
    Thread {
        /// What the operating system said.
        reason: String,
    },
}

impl CudaError {
    pub(crate) const fn driver(call: &'static str) -> impl Fn(Code) -> Self {
        move |code| Self::Driver { call, code }
    }
}
