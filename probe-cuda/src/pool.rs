//! Events that are made before they are needed, in pairs, and their way to the drain and back.
//!
//! A pair is in one of four places: free; in an interval that is open; ended, waiting for the device;
//! or the anchor that positions are told from. Two queues carry it, so that the thread that launches
//! work and the one that drains share no lock, and an event is never recorded again before it was read.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUevent, CUstream};
use tmrun_probe_core::{LaneId, Launch, NameId, StreamId, Ticks};

use crate::context::Context;
use crate::error::CudaError;
use crate::gaps::Gaps;
use crate::graph::GraphEvents;
use crate::looking::Looked;
use crate::ring::Ring;

/// The pairs of one stream as one thread uses it.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) context: Arc<Context>,
    pub(crate) stream: Stream,
    pub(crate) id: StreamId,
    pairs: Box<[Pair]>,
    free: Ring,
    ended: Ring,
    /// Counted by the thread that launches.
    pub(crate) missed: Gaps,
    /// Counted by the drain.
    pub(crate) unread: Gaps,
    /// Intervals that were asked for.
    pub(crate) attempted: AtomicU64,
    /// Intervals whose begin was recorded, and those of them that have ended one way or another.
    pub(crate) begun: AtomicU64,
    pub(crate) closed: AtomicU64,
    /// Nobody times with it any more.
    pub(crate) retired: AtomicBool,
    /// Events of graphs that its stream launches.
    graphs: Mutex<Vec<Arc<GraphEvents>>>,
    /// Which events may be asked for.
    pub(crate) looked: Looked,
}

/// The stream, as the driver knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream(pub(crate) CUstream);

// SAFETY: the handle is a number to the driver, which may be called from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Whether the handle stands for another stream on another thread (0x2), or for the one that every
    /// thread shares (0x0 and 0x1), where the work of two threads mixes.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(self.0.addr(), 0..=2)
    }
}

/// An event, as the driver knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event(pub(crate) CUevent);

// SAFETY: the handle is a number to the driver, which may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// Two events, and what was launched between them.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) begin: Event,
    pub(crate) end: Event,
    ticks: AtomicU64,
    name: AtomicU32,
    span: AtomicU32,
    lane: AtomicU32,
    /// Of a graph's launch: the graph's events, and which launch it was.
    graph: AtomicU32,
    replay: AtomicU64,
}

impl Pair {
    pub(crate) fn set(&self, name: NameId, launch: Launch) {
        self.ticks.store(launch.ticks.0, Ordering::Relaxed);
        self.name.store(name.0, Ordering::Relaxed);
        self.span.store(launch.span, Ordering::Relaxed);
        self.lane.store(launch.lane.0.into(), Ordering::Relaxed);
    }

    pub(crate) fn launch(&self) -> Launch {
        let lane = u16::try_from(self.lane.load(Ordering::Relaxed)).map(LaneId);
        Launch {
            ticks: Ticks(self.ticks.load(Ordering::Relaxed)),
            lane: lane.unwrap_or(LaneId::RECORDER),
            span: self.span.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn name(&self) -> NameId {
        NameId(self.name.load(Ordering::Relaxed))
    }

    pub(crate) fn set_replay(&self, graph: u32, launch: u64) {
        self.graph.store(graph, Ordering::Relaxed);
        self.replay.store(launch, Ordering::Relaxed);
    }

    pub(crate) fn graph(&self) -> u32 {
        self.graph.load(Ordering::Relaxed)
    }

    pub(crate) fn replay(&self) -> u64 {
        self.replay.load(Ordering::Relaxed)
    }
}

/// What the thread that launches says of a pair that it gives to the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both events were recorded.
    Interval(u32),
    /// Something went wrong, which was counted: the pair is free again.
    Abandoned(u32),
    /// `end` was recorded behind a launch of a graph.
    Replay(u32),
}

/// The bits of a number that say what it is.
const SORT: u32 = 0b11 << 30;
const ABANDONED: u32 = 0b01 << 30;
const REPLAY: u32 = 0b10 << 30;
/// The most pairs.
const MOST: usize = 1 << 30;
/// The fewest: one may be the anchor, and two what a calibration needs.
const LEAST: usize = 4;

impl Ended {
    const fn number(self) -> u32 {
        match self {
            Self::Interval(pair) => pair,
            Self::Abandoned(pair) => pair | ABANDONED,
            Self::Replay(pair) => pair | REPLAY,
        }
    }

    const fn of(number: u32) -> Self {
        let pair = number & !SORT;
        match number & SORT {
            ABANDONED => Self::Abandoned(pair),
            REPLAY => Self::Replay(pair),
            _ => Self::Interval(pair),
        }
    }
}

impl Pool {
    /// Makes so many pairs. The calling thread is in the context.
    pub(crate) fn new(
        context: &Arc<Context>,
        stream: Stream,
        id: StreamId,
        (intervals, blind): (usize, bool),
    ) -> Result<Self, CudaError> {
        if !(LEAST..=MOST).contains(&intervals) {
            return Err(CudaError::PoolSize { intervals });
        }
        let mut made = Made { context, pairs: Vec::with_capacity(intervals) };
        let event = || {
            let event = context.driver.create_event().map(Event);
            event.map_err(context.refused("cuEventCreate"))
        };
        for _ in 0..intervals {
            let begin = event()?;
            let end = event().inspect_err(|_| {
                let _ = context.driver.destroy_event(begin.0);
            })?;
            made.pairs.push(Pair {
                begin,
                end,
                ticks: AtomicU64::new(0),
                name: AtomicU32::new(0),
                span: AtomicU32::new(0),
                lane: AtomicU32::new(0),
                graph: AtomicU32::new(0),
                replay: AtomicU64::new(0),
            });
        }
        let pairs = core::mem::take(&mut made.pairs).into_boxed_slice();
        let (free, ended) = (Ring::new(intervals), Ring::new(intervals));
        (0..).take(intervals).for_each(|pair| free.push(pair));
        Ok(Self {
            context: Arc::clone(context),
            stream,
            id,
            pairs,
            free,
            ended,
            missed: Gaps::default(),
            unread: Gaps::default(),
            attempted: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            graphs: Mutex::new(Vec::new()),
            looked: Looked::new(blind),
        })
    }

    /// A pair that is free, which stays so. Of the thread that launches.
    #[inline]
    pub(crate) fn free(&self) -> Option<(u32, &Pair)> {
        let number = self.free.oldest()?;
        self.pair(number).map(|pair| (number, pair))
    }

    /// The pair that is free is used now. Of the thread that launches.
    #[inline]
    pub(crate) fn take_free(&self) {
        self.free.take();
    }

    #[inline]
    pub(crate) fn pair(&self, number: u32) -> Option<&Pair> {
        self.pairs.get(number as usize)
    }

    /// Gives a pair to the drain. Of the thread that launches.
    #[inline]
    pub(crate) fn give(&self, ended: Ended) {
        self.ended.push(ended.number());
    }

    /// The pair that was given first, which stays. Of the drain.
    pub(crate) fn given(&self) -> Option<Ended> {
        self.ended.oldest().map(Ended::of)
    }

    /// The pair that was given first is dealt with. Of the drain.
    pub(crate) fn take_given(&self) {
        self.ended.take();
    }

    /// Up to where pairs were given.
    pub(crate) fn all_given(&self) -> u32 {
        self.ended.stored()
    }

    /// Whether the pair that was given first was given before so many were. Of the drain.
    pub(crate) fn is_before(&self, given: u32) -> bool {
        given.wrapping_sub(self.ended.taken()).cast_signed() > 0
    }

    /// A pair is free again. Of the drain.
    pub(crate) fn release(&self, pair: u32) {
        self.free.push(pair);
    }

    /// How many wait for the drain.
    pub(crate) fn waiting(&self) -> u32 {
        self.ended.len()
    }

    /// How many intervals are open.
    pub(crate) fn open(&self) -> u64 {
        let closed = self.closed.load(Ordering::Acquire);
        self.begun.load(Ordering::Acquire).wrapping_sub(closed)
    }

    /// Keeps the events of a graph; the number that they have here.
    pub(crate) fn add_graph(&self, events: &Arc<GraphEvents>) -> u32 {
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        graphs.push(Arc::clone(events));
        u32::try_from(graphs.len().wrapping_sub(1)).unwrap_or(u32::MAX)
    }

    /// The events of a graph. (The lock is held by who makes a graph's interval, for a moment.)
    pub(crate) fn graph(&self, number: u32) -> Option<Arc<GraphEvents>> {
        let graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        graphs.get(number as usize).cloned()
    }

    /// Counts one more, of what one thread counts.
    #[inline]
    pub(crate) fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

/// Pairs that are not a pool yet: destroyed if it comes to none.
struct Made<'c> {
    context: &'c Context,
    pairs: Vec<Pair>,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        destroy(self.context, &self.pairs);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        destroy(&self.context, &self.pairs);
    }
}

/// Destroys events, but for those of a device that has failed for good: that may never return.
fn destroy(context: &Context, pairs: &[Pair]) {
    if context.dead().is_some() || pairs.is_empty() {
        return;
    }
    // Without the context the events stay, and nothing else is wrong.
    let Ok(_entered) = context.enter() else { return };
    for pair in pairs {
        let _ = context.driver.destroy_event(pair.begin.0);
        let _ = context.driver.destroy_event(pair.end.0);
    }
}
