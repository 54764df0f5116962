//! Timing a stream from the thread that launches its work.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::CudaStream;
use tmrun_probe_core::{Clock, GapReason, LaneId, Level, NameId, Recorder, Target};

use crate::driver::Capture;
use crate::pool::{Ended, Pool};
use crate::shared::Shared;
use crate::thread::ThreadNumber;

/// Times work on one stream. It can be moved to another thread but not shared: a thread that launches
/// work of its own on the stream makes a timer of its own.
///
/// # What the numbers are
///
/// An interval is **stream time between two points**: from when the device had done everything that
/// was submitted before it began to when it had done everything up to its end. It is not the time that
/// kernels kept the device busy: gaps in which the stream had nothing to do, because the host was slow
/// to launch, are in it. A host span around the same calls is *submit time*: how long the host took to
/// hand the work over.
///
/// # What it costs
///
/// [`interval`](Self::interval) and the end of its guard each call the driver twice:
/// `cuStreamIsCapturing` and `cuEventRecord`; with
/// [`without_graphs`](crate::TimerSettings::without_graphs) once, `cuEventRecord` (but not on the stream
/// that is each thread's own, where only that thread can look for captures). Neither allocates,
/// locks, waits for the device, or changes the current context. Public measurements of a timed
/// record are 2 to 3 µs: time steps, phases and layers, not every operation.
pub struct Timer<C: Clock> {
    pub(crate) shared: Arc<Shared<C>>,
    pub(crate) pool: Arc<Pool>,
    /// Looks for captures.
    graphs: bool,
    /// The stream is this thread's own, or shared in a way that makes the order of two threads' work
    /// anybody's guess.
    owner: Option<ThreadNumber>,
    /// Keeps the stream.
    _stream: Option<Arc<CudaStream>>,
    /// One thread at a time: `Send`, but not `Sync`.
    one: PhantomData<Cell<()>>,
}

/// A [`Timer`] that stays on its thread, as it must for the stream that is each thread's own (candle's,
/// unless it is told otherwise): whatever that handle is given to on another thread is another stream.
///
/// ```compile_fail
/// fn moves<C: tmrun_probe_core::Clock>(timer: tmrun_probe_cuda::LocalTimer<C>) {
///     std::thread::spawn(move || drop(timer)); // it cannot be sent between threads
/// }
/// ```
pub struct LocalTimer<C: Clock> {
    timer: Timer<C>,
    here: PhantomData<*const ()>,
}

impl<C: Clock> LocalTimer<C> {
    pub(crate) const fn new(timer: Timer<C>) -> Self {
        Self { timer, here: PhantomData }
    }
}

impl<C: Clock> Deref for LocalTimer<C> {
    type Target = Timer<C>;

    fn deref(&self) -> &Timer<C> {
        &self.timer
    }
}

impl<C: Clock> Timer<C> {
    pub(crate) fn new(
        shared: &Arc<Shared<C>>,
        pool: Arc<Pool>,
        graphs: bool,
        stream: Option<Arc<CudaStream>>,
    ) -> Self {
        let is_bound = pool.stream.is_of_thread();
        let owner = is_bound.then(ThreadNumber::here);
        // Of a stream that only this thread sees only this thread can look for captures.
        let graphs = graphs || pool.stream.is_own_of_thread();
        let shared = Arc::clone(shared);
        Self { shared, pool, graphs, owner, _stream: stream, one: PhantomData }
    }

    /// Begins an interval, which ends when the guard is dropped. It belongs to the span and the step
    /// that are open on the calling thread's lane of `target`, and does nothing while timing (level 1)
    /// is not asked for of its name. Intervals may lie within one another.
    ///
    /// What cannot be timed is counted as a gap: `pool-exhausted` when every event is in use,
    /// `graph-capture` while the stream is captured, `wrong-thread` off the thread that a per-thread
    /// stream belongs to (and then the driver is not called at all), `driver-error` when the driver
    /// refuses.
    #[inline]
    pub fn interval<T: Target<Clock = C>>(&self, target: &T, name: NameId) -> Interval<'_, C> {
        let pair = target.at(Level::TIMING, |recorder| self.begin(&recorder, name)).flatten();
        Interval { timer: self, pair }
    }

    fn begin(&self, recorder: &Recorder<'_, C>, name: NameId) -> Option<u32> {
        let (pool, shared) = (&*self.pool, &*self.shared);
        if shared.is_finished() || !recorder.wants(name) {
            return None;
        }
        Pool::count(&pool.attempted);
        let lane = recorder.lane();
        if let Some(reason) = self.cannot_record() {
            pool.missed.add(reason, C::ticks(), lane);
            return None;
        }
        let Some((number, pair)) = pool.free() else {
            pool.missed.add(GapReason::POOL_EXHAUSTED, C::ticks(), lane);
            return None;
        };
        if !self.may_record(lane) {
            return None;
        }
        let launch = recorder.launch();
        if let Err(code) = shared.context.driver.record(pair.begin.0, pool.stream.0) {
            shared.context.failed(code);
            pool.missed.refused(code, launch.ticks, lane);
            return None;
        }
        pair.set(name, launch);
        pool.take_free();
        Pool::count(&pool.begun);
        Some(number)
    }

    #[inline]
    fn end(&self, number: u32) {
        let (pool, shared) = (&*self.pool, &*self.shared);
        if shared.is_finished() {
            return; // it was counted as not ready
        }
        let Some(pair) = pool.pair(number) else { return };
        let lane = pair.launch().lane;
        let ended = if let Some(reason) = self.cannot_record() {
            pool.missed.add(reason, C::ticks(), lane);
            Ended::Abandoned(number)
        } else if !self.may_record(lane) {
            Ended::Abandoned(number)
        } else {
            match shared.context.driver.record(pair.end.0, pool.stream.0) {
                Ok(()) => Ended::Interval(number),
                Err(code) => {
                    shared.context.failed(code);
                    pool.missed.refused(code, C::ticks(), lane);
                    Ended::Abandoned(number)
                }
            }
        };
        pool.give(ended);
        Pool::count(&pool.closed);
    }

    /// Why nothing is to be recorded, without a call of the driver.
    #[inline]
    pub(crate) fn cannot_record(&self) -> Option<GapReason> {
        if self.shared.context.dead().is_some() {
            return Some(GapReason::DRIVER_ERROR);
        }
        self.is_elsewhere().then_some(GapReason::WRONG_THREAD)
    }

    /// Whether the stream is another one on this thread.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.owner.is_some_and(|owner| owner != ThreadNumber::here())
    }

    /// Whether what is recorded now is stamped; counted if not.
    #[inline]
    pub(crate) fn may_record(&self, lane: LaneId) -> bool {
        if !self.graphs {
            return true;
        }
        let (pool, context) = (&*self.pool, &*self.shared.context);
        match context.driver.capture(pool.stream.0) {
            Ok(Capture::No) => true,
            Ok(Capture::Yes | Capture::Broken) => {
                pool.missed.add(GapReason::GRAPH_CAPTURE, C::ticks(), lane);
                false
            }
            Err(code) => {
                context.failed(code);
                pool.missed.refused(code, C::ticks(), lane);
                false
            }
        }
    }
}

impl<C: Clock> Drop for Timer<C> {
    fn drop(&mut self) {
        self.pool.look_last();
        self.pool.retired.store(true, Ordering::Release);
    }
}

/// An interval that is open. It ends when it is dropped.
#[must_use = "the interval ends when the guard is dropped"]
pub struct Interval<'t, C: Clock> {
    timer: &'t Timer<C>,
    /// What times it; nothing where it is not timed.
    pair: Option<u32>,
}

impl<C: Clock> Interval<'_, C> {
    /// Whether it is being timed. If not, the reason is counted.
    pub const fn is_timed(&self) -> bool {
        self.pair.is_some()
    }
}

impl<C: Clock> Drop for Interval<'_, C> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pair) = self.pair {
            self.timer.end(pair);
        }
    }
}

impl<C: Clock> std::fmt::Debug for Timer<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("stream", &self.pool.id).finish_non_exhaustive()
    }
}

impl<C: Clock> std::fmt::Debug for LocalTimer<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LocalTimer").field(&self.timer).finish()
    }
}

impl<C: Clock> std::fmt::Debug for Interval<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interval").field("timed", &self.is_timed()).finish()
    }
}
