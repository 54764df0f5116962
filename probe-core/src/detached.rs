//! Spans that belong to no thread: begun on one, worked on wherever, ended on another.

use core::marker::PhantomData;

use tmrun_formats::wire::flags;
use tmrun_formats::{LaneId, NameId, Planes, SpanId, Ticks};

use crate::clock::Clock;
use crate::lane::{Ended as _, Entered, LaneBlock, SpanRef};
use crate::record::{Recorder, Target};
use crate::site::Site;
use crate::span::{SpanShape, Whole, name_of, too_deep};

/// A span of something that moves between threads, such as a request or an asynchronous task.
///
/// It lasts from [`begin`](Self::begin) (or [`detached!`](crate::detached)) until it is dropped, on
/// whichever thread, and is one record. The code that works for it [enters](Self::enter) it: each time
/// is a record of its own, a *segment*, a stretch of the thread's lane that spans and facts are in as
/// they are in any span. Its parent is the span that was open where it began.
///
/// ```
/// use tmrun_probe_core::{detached, probe, span};
/// probe!(static PROBE: lanes = 4, slots = 1 << 10);
///
/// let request = detached!(PROBE, "request");
/// let worker = std::thread::spawn(move || {
///     let _work = request.enter();
///     let _decode = span!(PROBE, "decode"); // in the request's segment on this thread
/// });
/// # worker.join().unwrap();
/// ```
///
/// A future is entered at every poll: see [`InSpanExt`](crate::InSpanExt). While it is open a detached
/// span is on no lane's stack of open spans: a recording that ends before it, or a process that dies,
/// knows it by its segments only.
#[must_use = "a detached span ends when it is dropped"]
pub struct DetachedSpan<T: Target> {
    target: T,
    begun: Option<Begun>,
}

/// What a detached span is, once it is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub(crate) span: SpanRef,
    pub(crate) parent: SpanRef,
    pub(crate) name: NameId,
    pub(crate) start: Ticks,
    pub(crate) depth: u16,
    pub(crate) shape: SpanShape,
}

impl Begun {
    /// A span that begins here and now.
    fn here<C: Clock>(recorder: Recorder<'_, C>, name: NameId, shape: SpanShape) -> Self {
        let block = recorder.block();
        let (parent, depth) = block.innermost();
        let span = SpanRef { lane: block.id(), id: block.take_id_apart::<C>() };
        Self { span, parent, name, start: C::ticks(), depth, shape }
    }

    /// It ends.
    pub(crate) fn end<C: Clock>(&self, recorder: Recorder<'_, C>) {
        let Self { span, parent, name, start, depth, shape } = *self;
        let shape = shape.flagged(flags::SPAN_DETACHED);
        Whole { span, parent, name, start, end: C::ticks(), depth, shape }
            .write::<C>(recorder.block());
    }
}

impl<T: Target> DetachedSpan<T> {
    /// Begins a span of this name. The name is interned on each call, which takes some hundred
    /// nanoseconds: [`detached!`](crate::detached) does it once.
    pub fn begin(target: T, name: &str) -> Self {
        Self::begin_named(target, SpanShape::FUNCTION, |target| target.probe().name(name))
    }

    fn begin_named(target: T, shape: SpanShape, name: impl FnOnce(&T) -> NameId) -> Self {
        if !target.is_wanted(shape.level()) {
            return Self { target, begun: None };
        }
        let name = name(&target);
        if !target.probe().wants(name, shape.level()) {
            return Self { target, begun: None };
        }
        Self::begin_wanted(target, name, shape)
    }

    fn begin_wanted(target: T, name: NameId, shape: SpanShape) -> Self {
        let begun =
            target.on_lane(Planes::HOST_TIME, |recorder| Begun::here(recorder, name, shape));
        Self { target, begun }
    }

    /// Enters the span: what the calling thread records until the guard is dropped is in it. On
    /// several threads at once if need be.
    pub fn enter(&self) -> Segment<'_, T::Clock> {
        let wanted = |begun: &Begun| self.target.probe().wants(begun.name, begun.shape.level());
        let Some(begun) = self.begun.filter(wanted) else { return Segment::inert() };
        // SAFETY: the guard counts in the lane's depth for as long as it lives.
        match unsafe { self.target.here() } {
            Some(recorder) => Segment::open(recorder, &begun),
            None => {
                self.target.probe().image.no_lane.count(Planes::HOST_TIME);
                Segment::inert()
            }
        }
    }

    /// The span's lane and its id there; `None` when it is not recorded. (An edge takes them.)
    pub fn id(&self) -> Option<(LaneId, SpanId)> {
        self.begun.map(|begun| (begun.span.lane, begun.span.id))
    }
}

impl<T: Target> Drop for DetachedSpan<T> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.target.on_lane(Planes::HOST_TIME, |recorder| begun.end(recorder));
        }
    }
}

impl<T: Target> core::fmt::Debug for DetachedSpan<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DetachedSpan").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// A detached span, entered. It stays on its thread, while the span itself may go to another:
///
/// ```
/// # use tmrun_probe_core::{detached, probe};
/// probe!(static PROBE: lanes = 1, slots = 64);
/// let span = detached!(PROBE, "moves");
/// std::thread::spawn(move || drop(span.enter())).join().unwrap();
/// ```
///
/// ```compile_fail,E0277
/// # use tmrun_probe_core::{detached, probe};
/// probe!(static PROBE: lanes = 1, slots = 64);
/// let span: &'static _ = Box::leak(Box::new(detached!(PROBE, "moves")));
/// let segment = span.enter();
/// std::thread::spawn(move || drop(segment));
/// ```
#[must_use = "a segment ends when its guard is dropped"]
pub struct Segment<'l, C: Clock> {
    open: Option<Open<'l>>,
    /// Stays on its thread, as the lane does.
    here: PhantomData<*const C>,
}

struct Open<'l> {
    block: &'l LaneBlock,
    entered: Entered,
    of: SpanRef,
    shape: SpanShape,
}

impl<'l, C: Clock> Segment<'l, C> {
    const fn inert() -> Self {
        Self { open: None, here: PhantomData }
    }

    fn open(recorder: Recorder<'l, C>, begun: &Begun) -> Self {
        let block = recorder.block();
        let Begun { span: of, name, shape, .. } = *begun;
        let entered = block.enter::<C>(name, Some(of));
        if entered.is_none() {
            too_deep::<C>(block, name);
        }
        let open = entered.map(|entered| Open { block, entered, of, shape });
        Self { open, here: PhantomData }
    }
}

impl<C: Clock> Drop for Segment<'_, C> {
    fn drop(&mut self) {
        if let Some(Open { block, entered, of, shape }) = self.open {
            end_segment::<C>(block, entered, of, shape);
        }
    }
}

impl<C: Clock> core::fmt::Debug for Segment<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let of = self.open.as_ref().map(|open| open.of);
        f.debug_struct("Segment").field("of", &of).finish_non_exhaustive()
    }
}

/// Writes the record of a segment that ends.
pub(crate) fn end_segment<C: Clock>(
    block: &LaneBlock,
    entered: Entered,
    of: SpanRef,
    shape: SpanShape,
) {
    let end = C::ticks();
    if let Some(known) = block.known(entered.depth) {
        Whole {
            span: SpanRef { lane: block.id(), id: known.id() },
            parent: of,
            name: known.name(),
            start: entered.start,
            end,
            depth: entered.depth as u16 - 1,
            shape: shape.flagged(flags::SPAN_SEGMENT),
        }
        .write::<C>(block);
    }
    block.leave(entered.depth);
}

/// What [`detached!`](crate::detached) expands to: a span named by its site, or by `node`.
#[doc(hidden)]
pub fn begin_detached<T: Target>(
    target: T,
    site: &'static Site,
    node: Option<NameId>,
    shape: SpanShape,
) -> DetachedSpan<T> {
    match name_of(&target, site, node, shape) {
        Some(name) => DetachedSpan::begin_wanted(target, name, shape),
        None => DetachedSpan { target, begun: None },
    }
}
