//! A device that is timed: opening it, its timers, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUstream;
use tmrun_probe_core::{
    Clock, DeviceGap, DevicePlace, GapReason, LaneId, Planes, ProbeRef, StreamId,
};

use crate::context::Context;
use crate::drain::{Drain, Drained};
use crate::error::CudaError;
use crate::pool::{Pool, Stream};
use crate::shared::Shared;
use crate::summary::CudaCounts;
use crate::timer::{LocalTimer, Timer};

/// How long a look at a device that is waited for is put off.
const PAUSE: Duration = Duration::from_micros(200);

/// One device, timed into one probe. Clones are the same device.
///
/// It has a lane of the probe of its own, on which it records what it reads: give the probe a lane more
/// for each device. Somebody has to read: [`drain_every`](Self::drain_every) starts a thread, or the
/// application calls [`poll`](Self::poll) where it suits it, of any thread.
pub struct CudaProbe<C: Clock> {
    pub(crate) shared: Arc<Shared<C>>,
}

impl<C: Clock> Clone for CudaProbe<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// How a timer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerSettings {
    intervals: usize,
    graphs: bool,
}

impl Default for TimerSettings {
    fn default() -> Self {
        Self { intervals: 256, graphs: true }
    }
}

impl TimerSettings {
    /// How many intervals can be open or wait for the device at once; 256 without. Two events are made
    /// for each.
    #[must_use]
    pub const fn intervals(mut self, intervals: usize) -> Self {
        self.intervals = intervals;
        self
    }

    /// The application never captures this stream: one call of the driver less for each event. What is
    /// timed within a capture all the same is found out later, as a gap, once the capture has ended.
    /// On the stream that is each thread's own this changes nothing.
    #[must_use]
    pub const fn without_graphs(mut self) -> Self {
        self.graphs = false;
        self
    }
}

impl<C: Clock> CudaProbe<C> {
    /// Opens a device by its ordinal. Whatever is missing (a driver, a function of it, the device) is an
    /// error that says what was looked for, and the program goes on without device time; where a
    /// recording runs, [`unavailable`] writes into its file why there is none.
    ///
    /// # Errors
    ///
    /// When there is no driver, it lacks a function, there is no such device, or no lane is left.
    pub fn open(probe: ProbeRef<'static, C>, ordinal: u32) -> Result<Self, CudaError> {
        let context = Arc::new(Context::retain(ordinal)?);
        let device = probe.device_at(DevicePlace::Cuda(ordinal));
        let backend = context.driver.elapsed_name;
        let clock = probe.device_clock("cuda-event", device, backend);
        let lane = probe.claim(&format!("device time of {}", DevicePlace::Cuda(ordinal)));
        let lane = lane.map_err(|_| CudaError::NoLane)?;
        let shared = Shared::new(context, probe, (device, clock), Drain::new(lane));
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A timer for this stream, on the calling thread: what launches work on it. Not during a capture.
    ///
    /// # Errors
    ///
    /// When the stream is of another context, or the driver refuses.
    pub fn timer(
        &self,
        stream: &Arc<CudaStream>,
        settings: TimerSettings,
    ) -> Result<Timer<C>, CudaError> {
        if !self.shared.context.is(stream.context().cu_ctx()) {
            let (stream, probe) = (stream.context().ordinal(), self.shared.context.ordinal);
            return Err(CudaError::ContextMismatch { stream, probe });
        }
        let pool = self.pool(Stream(stream.cu_stream()), settings)?;
        Ok(Timer::new(&self.shared, pool, settings.graphs, Some(Arc::clone(stream))))
    }

    /// The same, and the compiler keeps it on its thread: for the stream that is each thread's own.
    ///
    /// # Errors
    ///
    /// As [`timer`](Self::timer).
    pub fn local_timer(
        &self,
        stream: &Arc<CudaStream>,
        settings: TimerSettings,
    ) -> Result<LocalTimer<C>, CudaError> {
        self.timer(stream, settings).map(LocalTimer::new)
    }

    /// The same for a stream that no `CudaStream` stands for.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    ///
    /// # Safety
    ///
    /// The stream is one of this device's primary context, and lives for as long as the timer.
    pub unsafe fn timer_of(
        &self,
        stream: CUstream,
        settings: TimerSettings,
    ) -> Result<Timer<C>, CudaError> {
        let pool = self.pool(Stream(stream), settings)?;
        Ok(Timer::new(&self.shared, pool, settings.graphs, None))
    }

    fn pool(&self, stream: Stream, settings: TimerSettings) -> Result<Arc<Pool>, CudaError> {
        let context = &self.shared.context;
        if self.shared.is_finished() {
            return Err(CudaError::Finished);
        }
        if let Some(code) = context.dead() {
            return Err(CudaError::Dead { code });
        }
        let _entered = context.enter()?;
        // The handle of a per-thread stream is the same for all: without the driver's number for it (before
        // CUDA 12.0) the streams of all threads are one in the file.
        let handle = stream.0.addr() as u64;
        let id = context.driver.stream_id(stream.0).unwrap_or(handle);
        let pool =
            Pool::new(context, stream, StreamId(id), (settings.intervals, !settings.graphs))?;
        let pool = Arc::new(pool);
        self.shared.add(Arc::clone(&pool));
        Ok(pool)
    }

    /// Reads what the device has done, and records it. It waits for nothing, and does not call the driver
    /// where nothing was timed.
    pub fn poll(&self) -> Drained {
        self.shared.drain().poll(&self.shared)
    }

    /// The counts so far. (A thread that is timing may be in the middle of an interval.)
    pub fn counts(&self) -> CudaCounts {
        self.shared.drain().counts()
    }

    /// What the device is called.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn device_name(&self) -> Result<String, CudaError> {
        self.shared.context.device_name()
    }

    /// The version of the driver, as 1000 · major + 10 · minor.
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn driver_version(&self) -> Result<i32, CudaError> {
        let version = self.shared.context.driver.version();
        version.map_err(CudaError::driver("cuDriverGetVersion"))
    }

    /// The file that the driver was loaded from, and the function of it that tells distances.
    pub fn driver_functions(&self) -> (&'static str, &'static str) {
        let driver = self.shared.context.driver;
        (driver.library, driver.elapsed_name)
    }

    /// Ends timing: reads what is done until nothing waits or `patience` is over, and counts the rest as
    /// not ready. Call it before the recording is finished, and when no thread times any more: then
    /// attempted = recorded + missing, exactly. Timers that are left do nothing.
    pub fn finish(&self, patience: Duration) -> CudaCounts {
        let began = Instant::now();
        loop {
            let drained = self.poll();
            if drained.waiting == 0 || began.elapsed() >= patience {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.shared.drain().finish(&self.shared)
    }
}

/// Says in the recording that the device time which was asked for is missing, and why: a gap of reason
/// `driver-unavailable`. It takes a lane for that moment; without one nothing is said.
pub fn unavailable<C: Clock>(probe: ProbeRef<'static, C>, error: &CudaError) {
    let why = probe.name(&error.to_string());
    let Ok(lane) = probe.claim("no device time") else { return };
    let now = C::ticks();
    lane.recorder().device_gap(&DeviceGap {
        reason: GapReason::DRIVER_UNAVAILABLE,
        lane: LaneId::RECORDER,
        first: now,
        last: now,
        records: 0,
        planes: Planes::DEVICE_TIMING,
        why,
    });
}

impl<C: Clock> std::fmt::Debug for CudaProbe<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaProbe").field("ordinal", &self.shared.context.ordinal).finish()
    }
}
