//! The stack of open spans: in the mirror, so that what is open when a process dies can be read.
//!
//! Most spans are opened on top and end there, and that is quick: the lane knows its top entry by
//! address. When it is otherwise (a span below the top has ended, or the clock takes a call) the top
//! is the entry [`ELSEWHERE`], behind all that a span can have: so a single comparison, which both
//! ends of a span need anyway, tells them to look at [`LaneBlock::depth`] first.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::compiler_fence;

use tmrun_formats::rings::LaneImage;
use tmrun_formats::{LaneId, NameId, SpanId, Ticks};

use super::{LaneBlock, LaneMirror};
use crate::clock::{Clock, Overrun};
use crate::sync::{Ordering, Word, const_fn};

/// Spans that may be open on a lane at once. A deeper one is not recorded; a gap says so.
pub const MAX_DEPTH: usize = if cfg!(all(loom, test)) { 1 } else { 126 };

/// The top entry while the top is not what spans begin and end at.
const ELSEWHERE: usize = MAX_DEPTH + 1;
/// Entries: one that is none, one for each span, and the one that stands for another.
pub(super) const ENTRIES: usize = ELSEWHERE + 1;

/// An entry of the stack: entry 0 is none, entry d the span that d − 1 others are around.
#[repr(C)]
pub(super) struct OpenSpan {
    /// Not 0 while the span is open: set behind the rest, and cleared when its record is published.
    id: Word,
    start: Word,
    /// The name; with [`ENDED`] the span has ended while one above it is open; with [`SEGMENT`] it is a
    /// part of a detached span, whose lane is in the top 16 bits.
    name: Word,
    /// How many spans are around it: always the same.
    around: Word,
}

const ENDED: u64 = LaneImage::ENDED;
const SEGMENT: u64 = LaneImage::SEGMENT;

impl OpenSpan {
    const_fn! {
        pub(super) fn new() -> Self {
            Self {
                id: Word::new(0),
                start: Word::new(0),
                name: Word::new(0),
                around: Word::new(0),
            }
        }
    }

    #[inline(always)]
    fn id(&self) -> SpanId {
        SpanId(self.id.get())
    }

    #[inline(always)]
    fn name(&self) -> NameId {
        NameId(self.name.get() as u32)
    }

    fn is(&self, state: u64) -> bool {
        self.name.get() & state != 0
    }

    /// Opens it, at what `now` says last of all. A process that dies has left the rest where the id is.
    #[inline(always)]
    fn open(&self, id: SpanId, name: u64, now: impl FnOnce() -> Ticks) -> Ticks {
        self.name.set(name);
        let start = now();
        self.start.set(start.0);
        compiler_fence(Ordering::Release);
        self.id.set(id.0);
        start
    }

    /// Nothing is open here any more.
    #[inline(always)]
    fn clear(&self) {
        // What was stored of the span before comes before it.
        compiler_fence(Ordering::Release);
        self.id.set(0);
    }
}

/// A span of any lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanRef {
    pub(crate) lane: LaneId,
    pub(crate) id: SpanId,
}

/// A bit for each depth. (What is decided by them is the owner's own: not what the mirror shows.)
type Depths = u128;

const _: () = assert!(MAX_DEPTH < Depths::BITS as usize);

const fn bit(depth: usize) -> Depths {
    1 << depth
}

/// An open span, as another thread sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) id: SpanId,
    pub(crate) parent: SpanId,
    pub(crate) name: NameId,
    pub(crate) start: Ticks,
    pub(crate) depth: u16,
}

/// Where a span began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    pub(crate) start: Ticks,
    pub(crate) depth: usize,
}

/// An open span: one of the entries of its lane's mirror, but for the first and the last. (By its
/// address among them all: the entry below is that of the span around it.)
#[derive(Clone, Copy)]
pub(crate) struct Top<'l> {
    entry: NonNull<OpenSpan>,
    mirror: PhantomData<&'l LaneMirror>,
}

impl Top<'_> {
    #[inline(always)]
    fn entry(&self) -> &OpenSpan {
        // SAFETY: it is an entry of a mirror that lives for `'l`.
        unsafe { self.entry.as_ref() }
    }

    #[inline(always)]
    const fn below(&self) -> NonNull<OpenSpan> {
        // SAFETY: it is not the first entry.
        unsafe { self.entry.sub(1) }
    }

    /// When it began.
    #[inline(always)]
    pub(crate) fn start(&self) -> Ticks {
        Ticks(self.entry().start.get())
    }

    /// How many spans are around it.
    #[inline(always)]
    pub(crate) fn around(&self) -> u64 {
        self.entry().around.get()
    }

    /// Its record is published.
    #[inline(always)]
    pub(crate) fn clear(self) {
        self.entry().clear();
    }
}

/// What the record of a span that has ended says of it.
pub(crate) trait Ended {
    fn id(&self) -> SpanId;
    fn name(&self) -> NameId;
    /// The id of the span around it.
    fn parent(&self) -> SpanId;
}

/// An open span, as far as its record is about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    id: SpanId,
    name: NameId,
    parent: SpanId,
}

impl Ended for Known {
    fn id(&self) -> SpanId {
        self.id
    }

    fn name(&self) -> NameId {
        self.name
    }

    fn parent(&self) -> SpanId {
        self.parent
    }
}

/// Its entry is there until it is cleared, and the one below for longer.
impl Ended for Top<'_> {
    #[inline(always)]
    fn id(&self) -> SpanId {
        self.entry().id()
    }

    #[inline(always)]
    fn name(&self) -> NameId {
        self.entry().name()
    }

    #[inline(always)]
    fn parent(&self) -> SpanId {
        // SAFETY: the entry below is one of the same mirror.
        unsafe { self.below().as_ref() }.id()
    }
}

fn open_at(mirror: &LaneMirror, depth: usize) -> &OpenSpan {
    // The bound changes nothing (a depth is at most MAX_DEPTH).
    &mirror.open[depth.min(MAX_DEPTH)]
}

impl LaneMirror {
    /// The address of an entry, as one of them all.
    const fn entry(&self, at: usize) -> *const OpenSpan {
        self.open.as_ptr().wrapping_add(at)
    }

    /// Which of the entries this is.
    fn index(&self, entry: *const OpenSpan) -> usize {
        entry.addr().wrapping_sub(self.open.as_ptr().addr()) / size_of::<OpenSpan>()
    }

    /// No span is open.
    fn bare(&self) {
        self.open.iter().for_each(OpenSpan::clear);
        self.number_stack();
    }

    /// Numbers the entries: of mapped pages once more, because those numbers may be missing that were
    /// written while the pages were mapped.
    pub(super) fn number_stack(&self) {
        self.open.iter().skip(1).zip(0..).for_each(|(open, around)| open.around.set(around));
    }
}

impl LaneBlock {
    /// The lane has this mirror, and no span is open.
    pub(super) fn place_stack(&self, mirror: &LaneMirror, slow_clock: bool) {
        self.last.set(mirror.entry(MAX_DEPTH).cast_mut());
        self.slow_clock.set(slow_clock);
        self.empty_stack(mirror);
    }

    /// In a forked child nothing is known any more of the spans that are open: they have no record.
    #[cfg(feature = "std")]
    pub(super) fn lose_stack(&self, mirror: &LaneMirror) {
        let depth = self.depth();
        mirror.bare();
        mirror.open.iter().for_each(|open| open.name.set(0));
        let open = bit(depth + 1).wrapping_sub(1) & !bit(0);
        self.lost.set(open & !self.ended.get());
        self.set_depth(mirror, depth);
    }

    /// No span is open any more.
    pub(super) fn empty_stack(&self, mirror: &LaneMirror) {
        mirror.bare();
        self.ended.set(0);
        self.lost.set(0);
        self.set_depth(mirror, 0);
    }

    /// Low half of the id of the span that is open on top, 0 for none.
    #[inline(always)]
    pub(crate) fn enclosing(&self) -> u32 {
        self.current_id() as u32
    }

    #[inline(always)]
    fn current_id(&self) -> u64 {
        // SAFETY: who has a lane has a top: an entry of its mirror, which lives as long as the block
        // (both are fields of one probe) and never moves.
        unsafe { &*self.top.get() }.id.get()
    }

    /// So many spans are open, with those below the top that have ended.
    fn set_depth(&self, mirror: &LaneMirror, depth: usize) {
        let mut top = depth;
        if self.ended.get() | self.lost.get() != 0 || self.slow_clock.get() {
            mirror.open[ELSEWHERE].id.set(open_at(mirror, depth).id.get());
            self.depth_elsewhere.set(depth);
            top = ELSEWHERE;
        }
        self.top.set(mirror.entry(top).cast_mut());
    }

    /// How many spans are open, with those below the top that have ended.
    pub(super) fn depth(&self) -> usize {
        let Some(mirror) = self.shown_mirror() else { return 0 };
        match mirror.index(self.top.get()) {
            ELSEWHERE => self.depth_elsewhere.get(),
            depth => depth,
        }
    }

    /// The next span's id. None has a low half of 0, which would read as none: see
    /// [`leave_out_ids`](Self::leave_out_ids).
    #[inline(always)]
    pub(crate) fn take_span_id<C: Clock>(&self) -> SpanId {
        let mut id = self.next_span.get() + 1;
        // Rings that keep the newest have no room to make, and so no other moment to look.
        if matches!(C::OVERRUN, Overrun::Overwrite) {
            id += u64::from(id as u32 == 0);
        }
        self.next_span.set(id);
        SpanId(id)
    }

    /// Leaves out the ids before the next one whose low half is 0, when they might run out until the
    /// producer comes here again. That is at the latest when the ring is full, and until then every
    /// span that is opened takes a slot or stays open: so that opening one need not look.
    pub(super) fn leave_out_ids(&self) {
        let (next, slots) = (self.next_span.get(), self.mask.get() + 1);
        let left = u64::from(u32::MAX) - (next & u64::from(u32::MAX));
        if left <= slots + ENTRIES as u64 {
            self.next_span.set(next + left + 1);
        }
    }

    /// The next span's id, for whoever is not to be counted on to come to
    /// [`leave_out_ids`](Self::leave_out_ids).
    pub(crate) fn take_id_apart<C: Clock>(&self) -> SpanId {
        self.leave_out_ids();
        self.take_span_id::<C>()
    }

    /// Opens a span on top; `None` where that is not all there is to it.
    #[inline(always)]
    pub(crate) fn enter_on_top<C: Clock>(&self, name: NameId) -> Option<Top<'_>> {
        let top = self.top.get();
        if top >= self.last.get() {
            return None;
        }
        // SAFETY: the top is an entry of the lane's mirror, before the last that a span can have, as
        // was just seen: so the next is one as well. (A lane that nobody ever had has neither: there
        // the two are equal.)
        let entry = unsafe { NonNull::new_unchecked(top.add(1)) };
        let top = Top { entry, mirror: PhantomData };
        top.entry().open(self.take_span_id::<C>(), name.0.into(), C::quick_ticks);
        self.top.set(top.entry.as_ptr());
        Some(top)
    }

    /// Opens a span, or a part of a detached one, wherever the top is; `None` when the stack is full.
    pub(crate) fn enter<C: Clock>(&self, name: NameId, origin: Option<SpanRef>) -> Option<Entered> {
        let (mirror, depth) = (self.mirror(), self.depth() + 1);
        if depth > MAX_DEPTH {
            return None;
        }
        let open = open_at(mirror, depth);
        let mut name = u64::from(name.0);
        if let Some(SpanRef { lane, id }) = origin {
            mirror.origin[depth].set(id.0);
            name |= SEGMENT | u64::from(lane.0) << 48;
        }
        let start = open.open(self.take_id_apart::<C>(), name, C::ticks);
        self.set_depth(mirror, depth);
        Some(Entered { start, depth })
    }

    /// Whether a span that was opened on top ends there.
    #[inline(always)]
    pub(crate) fn is_top(&self, top: Top<'_>) -> bool {
        self.top.get() == top.entry.as_ptr()
    }

    /// The span on top has ended. (Its entry is there until it is cleared, or the next one is opened.)
    #[inline(always)]
    pub(crate) fn pop(&self, top: Top<'_>) {
        self.top.set(top.below().as_ptr());
    }

    /// The open span at `depth`.
    pub(crate) fn top_at(&self, depth: usize) -> Top<'_> {
        let mirror = self.mirror();
        let entry = NonNull::from(&mirror.open);
        let depth = depth.clamp(1, MAX_DEPTH);
        // SAFETY: there are more entries than that.
        let entry = unsafe { entry.cast::<OpenSpan>().add(depth) };
        Top { entry, mirror: PhantomData }
    }

    /// How deep an open span is.
    pub(crate) fn depth_of(&self, top: Top<'_>) -> usize {
        self.mirror().index(top.entry.as_ptr())
    }

    /// What the record of the open span at `depth` says of it; `None` when nothing is known of it any
    /// more.
    pub(crate) fn known(&self, depth: usize) -> Option<Known> {
        if self.lost.get() & bit(depth) != 0 {
            return None;
        }
        let mirror = self.mirror();
        let (open, around) = (open_at(mirror, depth), open_at(mirror, depth.wrapping_sub(1)));
        Some(Known { id: open.id(), name: open.name(), parent: around.id() })
    }

    /// The span at `depth` has ended, wherever it is on the stack, and is recorded or counted.
    pub(crate) fn leave(&self, depth: usize) {
        let (mirror, now) = (self.mirror(), self.depth());
        let was_known = self.lost.get() & bit(depth) == 0;
        self.lost.set(self.lost.get() & !bit(depth));
        self.ended.set(self.ended.get() | bit(depth));
        if now != depth {
            let open = open_at(mirror, depth);
            open.name.set(open.name.get() | ENDED);
            if was_known {
                self.out_of_order();
            }
        }
        let mut top = now;
        while self.ended.get() & bit(top) != 0 {
            open_at(mirror, top).clear();
            self.ended.set(self.ended.get() & !bit(top));
            top -= 1;
        }
        self.set_depth(mirror, top);
    }

    /// The span that is open on top.
    pub(crate) fn current(&self) -> SpanRef {
        SpanRef { lane: self.id(), id: SpanId(self.current_id()) }
    }

    /// The same and how many are open. A part of a detached span stands for that span, which outlives
    /// it.
    pub(crate) fn innermost(&self) -> (SpanRef, u16) {
        let depth = self.depth();
        let mirror = self.mirror();
        let open = open_at(mirror, depth);
        let span = if depth > 0 && open.is(SEGMENT) {
            let id = mirror.origin[depth.min(MAX_DEPTH)].get();
            SpanRef { lane: LaneId((open.name.get() >> 48) as u16), id: SpanId(id) }
        } else {
            self.current()
        };
        (span, depth as u16)
    }

    /// The spans that are open, outermost first. Exact when the owner is at rest; while it moves,
    /// an entry may be one that just ended or just began.
    pub(crate) fn open_spans(&self) -> impl Iterator<Item = Open> + '_ {
        // No span was ever open on a lane that nobody had.
        let entries = self.shown_mirror().map(|mirror| &mirror.open[..ELSEWHERE]);
        let pairs = entries.into_iter().flat_map(|entries| entries.windows(2)).zip(0..);
        pairs
            .map_while(|(pair, depth)| match pair {
                [around, open] if open.id() != SpanId::NONE => Some((around, open, depth)),
                _ => None,
            })
            .filter(|(_, open, _)| !open.is(ENDED))
            .map(|(around, open, depth)| Open {
                id: open.id(),
                parent: around.id(),
                name: open.name(),
                start: Ticks(open.start.get()),
                depth,
            })
    }

    /// Whether no span is open.
    pub(super) fn is_bare(&self) -> bool {
        self.depth() == 0
    }

    /// Ids that spans have taken so far, with those that were left out.
    pub(crate) fn spans(&self) -> u64 {
        self.next_span.get()
    }
}
