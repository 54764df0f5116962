//! Spans: one record for each, written when it ends.

use core::marker::PhantomData;

use tmrun_formats::wire::{Gap, RecordHeader, Span, flags};
use tmrun_formats::{ExecutionStep, GapReason, Level, NameId, Planes, SpanId, SpanKind, Ticks};

use crate::clock::Clock;
use crate::lane::{Ended, LaneBlock, SpanRef, Store, Top};
use crate::record::Target;
use crate::site::Site;

/// What a span's site knows about it. All of it is constant at the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanShape {
    /// Kind, level and flags of the record, as they lie in the third word of its header. (The site
    /// knows the level too, but a static that anything may write to is no constant to the compiler.)
    header: u32,
    /// Kind and step, as they lie in the fourth word of the payload, where the depth is added.
    place: u32,
}

impl SpanShape {
    /// A span of code.
    pub const FUNCTION: Self = Self::new(Level::TIMING, 0);
    /// The measured region: the one span whose duration is the run's.
    pub const MEASURED: Self = Self::new(Level::PULSE, flags::SPAN_MEASURED);

    const fn new(level: Level, flags: u16) -> Self {
        let header = RecordHeader { flags, ..RecordHeader::of::<Span>(level) };
        Self { header: header.kind_word(), place: 0 }.with(SpanKind::FUNCTION, ExecutionStep(0))
    }

    const fn with(self, kind: SpanKind, step: ExecutionStep) -> Self {
        Self { place: (step.0 as u32) << STEP_AT | (kind.0 as u32) << KIND_AT, ..self }
    }

    /// The same, standing for something else.
    pub const fn kind(self, kind: SpanKind) -> Self {
        self.with(kind, ExecutionStep((self.place >> STEP_AT) as u8))
    }

    /// The same, as a part of the training step.
    pub const fn step(self, step: ExecutionStep) -> Self {
        self.with(SpanKind((self.place >> KIND_AT) as u8), step)
    }

    /// The same, asked for by another level.
    #[cfg(feature = "tracing")]
    pub(crate) const fn at(self, level: Level) -> Self {
        Self { header: self.header & !(0xff << 8) | (level.0 as u32) << 8, ..self }
    }

    /// The same with these flags.
    pub(crate) const fn flagged(self, flags: u16) -> Self {
        Self { header: self.header | (flags as u32) << 16, ..self }
    }

    /// The level that asks for it.
    #[inline(always)]
    pub(crate) const fn level(self) -> Level {
        Level((self.header >> 8) as u8)
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
    shape: SpanShape,
    /// What writes the record. It is always the same function; but as a value of the guard it is known
    /// only where the guard was made. So the drop by itself is small enough to be inlined everywhere,
    /// on the way of a panic too: no guard need lie in memory, and one that is compiled out is no code
    /// at all. And where it was inlined, the compiler inlines what it then knows to be called.
    close: fn(Opened<'_>, SpanShape),
    /// Stays on its thread, as the lane does.
    here: PhantomData<*const C>,
}

/// What a guard has of its span. The rest is in the entry of the stack.
#[derive(Clone, Copy)]
struct Opened<'l> {
    block: &'l LaneBlock,
    top: Top<'l>,
}

impl<'l, C: Clock> SpanGuard<'l, C> {
    #[inline(always)]
    const fn of(opened: Option<Opened<'l>>, shape: SpanShape) -> Self {
        Self { opened, shape, close: close::<C>, here: PhantomData }
    }

    /// A span of this name on this lane.
    #[cfg(feature = "std")]
    pub(crate) fn open(block: &'l LaneBlock, name: NameId, shape: SpanShape) -> Self {
        SpanGuard::of(Opened::anywhere::<C>(block, name), shape)
    }

    /// No span.
    #[inline(always)]
    pub(crate) const fn inert() -> Self {
        Self::of(None, SpanShape::FUNCTION)
    }

    /// When it began; `None` when it is not recorded.
    #[cfg(feature = "std")]
    pub(crate) fn start(&self) -> Option<Ticks> {
        self.opened.map(|opened| opened.top.start())
    }

    /// The span's id on its lane; none when it is not recorded.
    pub fn id(&self) -> SpanId {
        self.opened.map_or(SpanId::NONE, |opened| opened.top.id())
    }
}

impl<'l> Opened<'l> {
    /// Opens a span on top of the lane's stack; `None` where that is not all there is to it.
    #[inline(always)]
    fn on_top<C: Clock>(block: &'l LaneBlock, name: NameId) -> Option<Self> {
        Some(Self { block, top: block.enter_on_top::<C>(name)? })
    }

    /// Opens a span wherever the top of the lane's stack is; `None` when it is full, which a gap
    /// says.
    fn anywhere<C: Clock>(block: &'l LaneBlock, name: NameId) -> Option<Self> {
        Self::on_top::<C>(block, name).or_else(|| {
            let entered = block.enter::<C>(name, None);
            if entered.is_none() {
                too_deep::<C>(block, name);
            }
            Some(Self { block, top: block.top_at(entered?.depth) })
        })
    }
}

/// A span deeper than the stack: a gap of one record says so.
#[cold]
#[inline(never)]
pub(crate) fn too_deep<C: Clock>(block: &LaneBlock, name: NameId) {
    let now = C::ticks();
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
        if let Some(opened) = self.opened {
            (self.close)(opened, self.shape);
        }
    }
}

/// Writes the record of a span that ends.
#[inline]
fn close<C: Clock>(opened: Opened<'_>, shape: SpanShape) {
    let Opened { block, top } = opened;
    let end = C::quick_ticks();
    if block.is_top(top)
        && let Some(store) = block.quick_room::<C>()
    {
        block.pop(top);
        opened.put(store, (top.start(), end), &top, shape);
        top.clear();
    } else {
        opened.close_slowly::<C>(end, shape);
    }
}

impl Opened<'_> {
    /// The same for a span that is not on top, or finds the ring full by the tail that is known.
    #[cold]
    #[inline(never)]
    fn close_slowly<C: Clock>(self, end: Ticks, shape: SpanShape) {
        let Self { block, top } = self;
        let end = if C::is_quick() { end } else { C::ticks() };
        let (start, depth) = (top.start(), block.depth_of(top));
        if let Some(known) = block.known(depth)
            && let Some(store) = block.reserve::<C>(1, (start, end), Planes::HOST_TIME)
        {
            self.put(store, (start, end), &known, shape);
        }
        block.leave(depth);
    }

    /// Stores the record and publishes it: the words of [`Span`], one after the other as they are at
    /// hand, so that few are under way at once.
    #[inline(always)]
    fn put(
        self,
        mut store: Store<'_>,
        edges: (Ticks, Ticks),
        ended: &impl Ended,
        shape: SpanShape,
    ) {
        let slot = store.slot();
        slot.set::<0>(edges.1.0);
        slot.set_kind(store.sequence(), shape.header);
        slot.set_ticks(edges.0);
        slot.set::<1>(ended.parent().0);
        let id = ended.id();
        slot.set_name(ended.name(), id.0 as u32);
        slot.set::<2>(self.block.span_word(id));
        slot.set::<3>(u64::from(shape.place) | self.top.around());
        slot.set::<4>(0);
        store.next();
        store.publish();
    }
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
            flags: (shape.header >> 16) as u16,
            ..RecordHeader::of::<Span>(shape.level())
        };
        let payload = Span {
            end,
            parent: parent.id,
            own_high: (span.id.0 >> 32) as u32,
            parent_lane: parent.lane,
            own_lane: span.lane,
            depth,
            step: ExecutionStep((shape.place >> STEP_AT) as u8),
            kind: SpanKind((shape.place >> KIND_AT) as u8),
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
    let opened = match Opened::on_top::<T::Clock>(unsafe { target.quick_lane() }, name) {
        Some(opened) => Some(opened),
        None => open_anywhere(target, name),
    };
    SpanGuard::of(opened, shape)
}

/// The same on a lane whose top is elsewhere, or by a thread that has no lane yet.
#[cold]
#[inline(never)]
fn open_anywhere<T: Target>(target: &T, name: NameId) -> Option<Opened<'_>> {
    // SAFETY: as above.
    match unsafe { target.here() } {
        Some(recorder) => Opened::anywhere::<T::Clock>(recorder.block(), name),
        None => {
            target.probe().image.no_lane.count(Planes::HOST_TIME);
            None
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
