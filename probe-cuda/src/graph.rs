//! Intervals within a graph: events that every launch of it stamps anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tmrun_probe_core::{Clock, GapReason, Level, NameId, Target};

use crate::driver::Capture;
use crate::error::CudaError;
use crate::pool::{Ended, Event, Pool};
use crate::timer::Timer;

/// The two events of a graph's interval. They are never destroyed: a graph that has them may be launched
/// for as long as the process lives.
#[derive(Debug)]
pub(crate) struct GraphEvents {
    pub(crate) begin: Event,
    pub(crate) end: Event,
    /// Launches so far, each counted before it is made.
    launches: AtomicU64,
}

impl GraphEvents {
    /// Whether no launch came behind this one. Asked before and after the stamps are read: if it holds
    /// both times they are this launch's.
    pub(crate) fn is_latest(&self, launch: u64) -> bool {
        self.launches.load(Ordering::SeqCst) == launch
    }
}

/// An interval of a graph that is captured once and launched often: one interval a launch.
///
/// Ordinary events mean nothing within a capture, and an interval there is a gap of reason
/// `graph-capture`. The events of this one become nodes of the graph (`CU_EVENT_RECORD_EXTERNAL`),
/// which every launch stamps:
///
/// ```ignore
/// let work = timer.graph_interval(PROBE.name("decode"))?; // before the capture
/// stream.begin_capture(mode)?;
/// work.begin()?;
/// launch_kernels();
/// work.end()?;
/// let graph = stream.end_capture(flags)?;
/// for step in 1.. {
///     let _step = PROBE.step(step);
///     work.replay(&PROBE, || graph.launch())?;
/// }
/// ```
///
/// A launch overwrites the stamps of the one before. A launch that the drain did not come to read
/// before the next is counted as a gap of reason `graph-capture`; nothing is ever told of the wrong
/// launch.
#[derive(Debug)]
pub struct GraphInterval<'t, C: Clock> {
    timer: &'t Timer<C>,
    name: NameId,
    events: Arc<GraphEvents>,
    /// Where the pool has the events.
    number: u32,
}

impl<C: Clock> Timer<C> {
    /// Makes an interval for a graph, before the capture of this timer's stream begins.
    ///
    /// # Errors
    ///
    /// When the stream is being captured already, or the driver refuses.
    pub fn graph_interval(&self, name: NameId) -> Result<GraphInterval<'_, C>, CudaError> {
        self.check_here()?;
        self.check_not_capturing()?;
        let context = &self.shared.context;
        let _entered = context.enter()?;
        let event = || {
            let event = context.driver.create_event().map(Event);
            event.map_err(context.refused("cuEventCreate"))
        };
        let (begin, end) = (event()?, event()?);
        let events = Arc::new(GraphEvents { begin, end, launches: AtomicU64::new(0) });
        let number = self.pool.add_graph(&events);
        Ok(GraphInterval { timer: self, name, events, number })
    }

    /// Whether the calling thread is one that this timer's stream is the right one on.
    pub(crate) fn check_here(&self) -> Result<(), CudaError> {
        if self.shared.is_finished() {
            return Err(CudaError::Finished);
        }
        if let Some(code) = self.shared.context.dead() {
            return Err(CudaError::Dead { code });
        }
        if self.is_elsewhere() { Err(CudaError::WrongThread) } else { Ok(()) }
    }

    pub(crate) fn check_not_capturing(&self) -> Result<(), CudaError> {
        let context = &self.shared.context;
        let capture = context.driver.capture(self.pool.stream.0);
        match capture.map_err(context.refused("cuStreamIsCapturing"))? {
            Capture::No => Ok(()),
            Capture::Yes | Capture::Broken => Err(CudaError::Capturing),
        }
    }
}

impl<C: Clock> GraphInterval<'_, C> {
    /// The interval begins here: within the capture.
    ///
    /// # Errors
    ///
    /// When the stream is not being captured (the driver says `CUDA_ERROR_INVALID_VALUE`), or the
    /// thread is another one.
    pub fn begin(&self) -> Result<(), CudaError> {
        self.node(self.events.begin)
    }

    /// The interval ends here: within the same capture.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn end(&self) -> Result<(), CudaError> {
        self.node(self.events.end)
    }

    fn node(&self, event: Event) -> Result<(), CudaError> {
        self.timer.check_here()?;
        let (context, stream) = (&self.timer.shared.context, self.timer.pool.stream);
        let recorded = context.driver.record_external(event.0, stream.0);
        recorded.map_err(context.refused("cuEventRecordWithFlags"))
    }

    /// Launches the graph, on this timer's stream, with `launch`: one interval. It calls the driver
    /// once, for an event behind the launch (`cuEventRecord`), and on the stream that is each thread's own
    /// asks before whether it is captured (`cuStreamIsCapturing`); without an event left the launch is made
    /// and counted as a gap. A launch that was refused stamps nothing, and is a gap of reason
    /// `driver-error`.
    ///
    /// # Errors
    ///
    /// What `launch` answers.
    pub fn replay<T: Target<Clock = C>, R, E>(
        &self,
        target: &T,
        launch: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let now = self.events.launches.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        let is_on = !self.timer.shared.is_finished();
        let launched = target.at(Level::TIMING, |recorder| {
            (is_on && recorder.wants(self.name)).then(|| recorder.launch())
        });
        let before = launched.flatten();
        let answer = launch();
        let Some(before) = before else { return answer };
        let (pool, context) = (&*self.timer.pool, &*self.timer.shared.context);
        Pool::count(&pool.attempted);
        if answer.is_err() {
            pool.missed.add(GapReason::DRIVER_ERROR, before.ticks, before.lane);
            return answer;
        }
        if let Some(reason) = self.timer.cannot_record() {
            pool.missed.add(reason, before.ticks, before.lane);
            return answer;
        }
        let Some((number, pair)) = pool.free() else {
            pool.missed.add(GapReason::POOL_EXHAUSTED, before.ticks, before.lane);
            return answer;
        };
        // The drain looks for captures of any stream but this.
        if pool.stream.is_own_of_thread() && !self.timer.may_record(before.lane) {
            return answer;
        }
        match context.driver.record(pair.end.0, pool.stream.0) {
            Ok(()) => {
                pair.set(self.name, before);
                pair.set_replay(self.number, now);
                pool.take_free();
                pool.give(Ended::Replay(number));
            }
            Err(code) => {
                context.failed(code);
                pool.missed.refused(code, before.ticks, before.lane);
            }
        }
        answer
    }
}
