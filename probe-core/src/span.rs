//! Spans: one record for each, written when it ends.

use core::marker::PhantomData;

use tmrun_formats::wire::{Gap, RecordHeader, Span, flags};
use tmrun_formats::{ExecutionStep, GapReason, Level, NameId, Planes, SpanId, SpanKind, Ticks};

use crate::clock::Clock;
use crate::lane::{Ended, LaneBlock, SpanRef, Store};
use crate::record::{Recorder, Target};
use crate::site::Site;

/// What a span's site knows about it. All of it is constant at the site, and packed so that a guard
/// hands it on in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanShape {
    /// Kind, level and flags of the record, as they lie in the third word of its header. (The site
    /// knows the level too, but a static that anything may write to is no constant to the compiler.)
    header: u64,
    /// Kind and step, as they lie in the fourth word of the payload, less one: a depth is added.
    tail: u64,
}

impl SpanShape {
    /// A span of code.
    pub const FUNCTION: Self = Self::new(Level::TIMING, 0);
    /// The measured region: the one span whose duration is the run's.
    pub const MEASURED: Self = Self::new(Level::PULSE, flags::SPAN_MEASURED);

    const fn new(level: Level, flags: u16) -> Self {
        let header = RecordHeader { flags, ..RecordHeader::of::<Span>(level) };
        let [_, _, rest] = header.words();
        Self { header: rest, tail: 0 }.with(SpanKind::FUNCTION, ExecutionStep(0))
    }

    const fn with(self, kind: SpanKind, step: ExecutionStep) -> Self {
        let tail = (step.0 as u64) << STEP_AT | (kind.0 as u64) << KIND_AT;
        Self { tail: tail - 1, ..self }
    }

    /// The same, standing for something else.
    pub const fn kind(self, kind: SpanKind) -> Self {
        self.with(kind, ExecutionStep(((self.tail + 1) >> STEP_AT) as u8))
    }

    /// The same, as a part of the training step.
    pub const fn step(self, step: ExecutionStep) -> Self {
        self.with(SpanKind(((self.tail + 1) >> KIND_AT) as u8), step)
    }

    /// The same, asked for by another level.
    #[cfg(feature = "tracing")]
    pub(crate) const fn at(self, level: Level) -> Self {
        Self { header: self.header & !(0xff << 40) | (level.0 as u64) << 40, ..self }
    }

    /// The same with these flags.
    pub(crate) const fn flagged(self, flags: u16) -> Self {
        Self { header: self.header | (flags as u64) << 48, ..self }
    }

    /// The level that asks for it.
    #[inline(always)]
    pub(crate) const fn level(self) -> Level {
        Level((self.header >> 40) as u8)
    }
}

/// Bits of the payload's fourth word at which step and kind begin; the depth is in front of them.
const STEP_AT: u32 = 16;
const KIND_AT: u32 = 24;

/// An open span. Its record is written when the guard is dropped. A guard that was armed when it
/// opened always writes; one that was not never does.
///
/// It stays on the thread that opened it:
///
/// ```compile_fail,E0277
/// # use tmrun_probe_core::{probe, span};
/// probe!(static PROBE: lanes = 1, slots = 64);
/// let guard = span!(PROBE, "here");
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "a span ends when its guard is dropped"]
pub struct SpanGuard<'l, C: Clock> {
    /// As a whole or not at all: what is not there is not set, either.
    opened: Option<Opened<'l>>,
    /// Stays on its thread, as the lane does.
    here: PhantomData<*const C>,
}

/// What a guard has of its span: few fields, and none that the open-span stack has, so that they
/// live in registers.
#[derive(Clone, Copy)]
struct Opened<'l> {
    block: &'l LaneBlock,
    start: Ticks,
    depth: u64,
    shape: SpanShape,
}

impl<'l, C: Clock> SpanGuard<'l, C> {
    #[inline(always)]
    const fn inert() -> Self {
        Self { opened: None, here: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn open(recorder: Recorder<'l, C>, name: NameId, shape: SpanShape) -> Self {
        let block = recorder.block();
        match block.enter(name, C::ticks) {
            Some(entered) => {
                let (start, depth) = (entered.start, entered.depth);
                Self { opened: Some(Opened { block, start, depth, shape }), here: PhantomData }
            }
            None => {
                too_deep::<C>(block, name, C::ticks());
                Self::inert()
            }
        }
    }

    /// The span's id on its lane; none when it is not recorded.
    pub fn id(&self) -> SpanId {
        self.opened.map_or(SpanId::NONE, |opened| opened.block.open_id(opened.depth))
    }
}

/// A span deeper than the stack: a gap of one record says so.
#[cold]
#[inline(never)]
pub(crate) fn too_deep<C: Clock>(block: &LaneBlock, name: NameId, now: Ticks) {
    let gap = Gap {
        first: now,
        last: now,
        records: 1,
        groups: 1,
        planes: Planes::HOST_TIME,
        lane: block.id(),
        reason: GapReason::TOO_DEEP,
    };
    if let Some(mut store) = block.reserve::<C>(1, (now, now), Planes::HOST_TIME) {
        let header = RecordHeader::of::<Gap>(Level::PULSE);
        store.put(RecordHeader { ticks: now, name, span: block.enclosing(), ..header }, &gap);
        store.publish();
    }
}

impl<C: Clock> Drop for SpanGuard<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(Opened { block, start, depth, shape }) = self.opened {
            close::<C>(block, start, depth, shape);
        }
    }
}

/// Writes the record of a span that ends. One call, its arguments in registers: the drop itself then
/// is small enough for the compiler to inline it everywhere, and to leave it out where nothing is
/// recorded. (As one piece it is not inlined, and even a compiled-out span pays for a call.)
///
/// It calls nothing but at its very end, so that it has no registers to save.
#[inline(never)]
fn close<C: Clock>(block: &LaneBlock, start: Ticks, depth: u64, shape: SpanShape) {
    let Some(end) = C::quick_ticks() else {
        return close_by_slow_clock::<C>(block, start, depth, shape);
    };
    let (true, Some(store)) = (block.is_top(depth), block.quick_room::<C>()) else {
        return close_slowly::<C>(block, start, depth, shape, end);
    };
    // SAFETY: the span at `depth` is open, because its guard calls, and it is on top.
    let popped = unsafe { block.pop(store.mirror(), depth) };
    put(store, block, (start, end), &popped, depth, shape);
}

#[cold]
#[inline(never)]
fn close_by_slow_clock<C: Clock>(block: &LaneBlock, start: Ticks, depth: u64, shape: SpanShape) {
    close_slowly::<C>(block, start, depth, shape, C::ticks());
}

/// The same for a span that is not on top, or finds the ring full by the tail that is known.
#[cold]
#[inline(never)]
fn close_slowly<C: Clock>(
    block: &LaneBlock,
    start: Ticks,
    depth: u64,
    shape: SpanShape,
    end: Ticks,
) {
    let ended = block.leave(depth);
    if let Some(store) = block.reserve::<C>(1, (start, end), Planes::HOST_TIME) {
        put(store, block, (start, end), &ended, depth, shape);
    }
}

/// Stores the record, whose words are those of [`Span`], one after the other as they are at hand: so
/// few are under way at once that no register has to be saved for them.
#[inline(always)]
fn put(
    mut store: Store<'_>,
    block: &LaneBlock,
    (start, end): (Ticks, Ticks),
    ended: &impl Ended,
    depth: u64,
    shape: SpanShape,
) {
    let header = store.sequence() | shape.header;
    let slot = store.next_slot();
    slot.set::<0>(start.0);
    slot.set::<2>(header);
    slot.set::<3>(end.0);
    slot.set::<4>(ended.parent().0);
    slot.set::<6>(shape.tail.wrapping_add(depth));
    slot.set::<7>(0);
    let id = ended.id();
    slot.set::<1>(u64::from(ended.name().0) | id.0 << 32);
    slot.set::<5>(block.span_word(id));
    store.publish();
}

/// A span that has ended, all of it: for those whose record does not follow from their lane's stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) span: SpanRef,
    pub(crate) parent: SpanRef,
    pub(crate) name: NameId,
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) depth: u16,
    pub(crate) shape: SpanShape,
}

impl Whole {
    /// Writes its record on this lane.
    pub(crate) fn write<C: Clock>(&self, block: &LaneBlock) {
        let Self { span, parent, name, start, end, depth, shape } = *self;
        let header = RecordHeader {
            ticks: start,
            name,
            span: span.id.0 as u32,
            flags: (shape.header >> 48) as u16,
            ..RecordHeader::of::<Span>(shape.level())
        };
        let tail = shape.tail.wrapping_add(1);
        let payload = Span {
            end,
            parent: parent.id,
            own_high: (span.id.0 >> 32) as u32,
            parent_lane: parent.lane,
            own_lane: span.lane,
            depth,
            step: ExecutionStep((tail >> STEP_AT) as u8),
            kind: SpanKind((tail >> KIND_AT) as u8),
        };
        if let Some(mut store) = block.reserve::<C>(1, (start, end), Planes::HOST_TIME) {
            store.put(header, &payload);
            store.publish();
        }
    }
}

impl<C: Clock> core::fmt::Debug for SpanGuard<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SpanGuard").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What [`span!`](crate::span) expands to: a span named by its site, or by `node`.
#[doc(hidden)]
#[inline(always)]
pub fn open_span<'t, T: Target>(
    target: &'t T,
    site: &'static Site,
    node: Option<NameId>,
    shape: SpanShape,
) -> SpanGuard<'t, T::Clock> {
    let Some(name) = name_of(target, site, node, shape) else { return SpanGuard::inert() };
    // SAFETY: the guard counts in the lane's depth for as long as it lives.
    match unsafe { target.here() } {
        Some(recorder) => SpanGuard::open(recorder, name, shape),
        None => {
            target.probe().image.no_lane.count(1, Planes::HOST_TIME);
            SpanGuard::inert()
        }
    }
}

/// The name of a span of this site, or of the node that the site is given; `None` when it is not to be
/// recorded.
#[inline(always)]
pub(crate) fn name_of<T: Target>(
    target: &T,
    site: &'static Site,
    node: Option<NameId>,
    shape: SpanShape,
) -> Option<NameId> {
    if shape.level() > T::MAX_LEVEL {
        return None;
    }
    let name = target.armed(site)?;
    match node {
        Some(node) => target.probe().wants(node, shape.level()).then_some(node),
        None => Some(name),
    }
}
