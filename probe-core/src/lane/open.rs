//! The stack of open spans: in the mirror, so that what is open when a process dies can be read.

use tmrun_formats::rings::LaneImage;
use tmrun_formats::{LaneId, NameId, SpanId, Ticks};

use super::{LaneBlock, LaneMirror, add};
use crate::sync::Word;

/// Spans that may be open on a lane at once. A deeper one is not recorded; a gap says so.
pub const MAX_DEPTH: usize = if cfg!(all(loom, test)) { 1 } else { 127 };

const _: () = assert!((MAX_DEPTH + 1).is_power_of_two());

/// An entry of the stack: entry 0 is none, entry d the span that d − 1 others are around.
#[repr(C)]
pub(super) struct OpenSpan {
    pub(super) id: Word,
    pub(super) start: Word,
    /// The name; with [`ENDED`] the span has ended while one above it is open; with [`SEGMENT`] it is a
    /// part of a detached span, whose lane is in the top 16 bits.
    pub(super) name: Word,
    /// Of a part of a detached span: the id of that span.
    pub(super) origin: Word,
}

const ENDED: u64 = LaneImage::ENDED;
const SEGMENT: u64 = LaneImage::SEGMENT;

/// A span of any lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanRef {
    pub(crate) lane: LaneId,
    pub(crate) id: SpanId,
}

/// The part of the top that says how many spans are open.
const DEPTH: u64 = u32::MAX as u64;
/// What one that has ended below the top adds.
const IRREGULAR: u64 = 1 << 32;

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
    pub(crate) depth: u64,
}

/// A span that has ended.
pub(crate) trait Ended {
    fn id(&self) -> SpanId;
    fn name(&self) -> NameId;
    fn parent(&self) -> SpanId;
}

/// One that was on top: its entry, until the next one is opened, and the entry below.
pub(crate) struct Popped<'m> {
    open: &'m OpenSpan,
    around: &'m OpenSpan,
}

impl Ended for Popped<'_> {
    #[inline(always)]
    fn id(&self) -> SpanId {
        SpanId(self.open.id.get())
    }

    #[inline(always)]
    fn name(&self) -> NameId {
        NameId(self.open.name.get() as u32)
    }

    #[inline(always)]
    fn parent(&self) -> SpanId {
        SpanId(self.around.id.get())
    }
}

/// One that was somewhere on the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    id: SpanId,
    name: NameId,
    parent: SpanId,
}

impl Ended for Left {
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

#[inline(always)]
fn open_at(mirror: &LaneMirror, depth: u64) -> &OpenSpan {
    // The mask changes nothing (a depth is at most MAX_DEPTH) and spares the bounds check.
    &mirror.open[depth as usize & MAX_DEPTH]
}

impl LaneBlock {
    /// Low half of the id of the span that is open on top, 0 for none.
    #[inline(always)]
    pub(crate) fn enclosing(&self) -> u32 {
        self.current.get() as u32
    }

    /// So many spans are open, with [`IRREGULAR`] for each below the top that has ended.
    #[inline(always)]
    pub(super) fn set_top(&self, mirror: &LaneMirror, top: u64) {
        self.top.set(top);
        mirror.depth.set(top & DEPTH);
        self.current.set(open_at(mirror, top).id.get());
    }

    /// The next span's id.
    #[inline(always)]
    pub(crate) fn take_span_id(&self) -> SpanId {
        let id = self.next_span.get() + 1;
        // An id whose low half is 0 would read as none: it is skipped.
        let id = id + u64::from(id as u32 == 0);
        self.next_span.set(id);
        SpanId(id)
    }

    /// Opens a span and returns how deep it is, or `None` when the stack is full.
    #[inline(always)]
    pub(crate) fn enter(&self, name: NameId, now: impl FnOnce() -> Ticks) -> Option<Entered> {
        self.enter_as(name.0.into(), None, now)
    }

    /// Opens a part of a detached span.
    pub(crate) fn enter_segment(
        &self,
        name: NameId,
        of: SpanRef,
        now: impl FnOnce() -> Ticks,
    ) -> Option<Entered> {
        let name = u64::from(name.0) | SEGMENT | u64::from(of.lane.0) << 48;
        self.enter_as(name, Some(of.id), now)
    }

    #[inline(always)]
    fn enter_as(
        &self,
        name: u64,
        origin: Option<SpanId>,
        now: impl FnOnce() -> Ticks,
    ) -> Option<Entered> {
        let mut top = self.top.get() + 1;
        if top > MAX_DEPTH as u64 {
            top = self.irregular_depth(top)?;
        }
        let SpanId(id) = self.take_span_id();
        self.current.set(id);
        let mirror = self.mirror();
        // SAFETY: it is at most MAX_DEPTH, as was just seen.
        let open = unsafe { mirror.open.get_unchecked(top as usize) };
        open.id.set(id);
        open.name.set(name);
        if let Some(origin) = origin {
            open.origin.set(origin.0);
        }
        let start = now();
        open.start.set(start.0);
        self.top.set(self.top.get() + 1);
        mirror.depth.set(top);
        Some(Entered { start, depth: top })
    }

    /// The depth of a top that is beyond the stack, or only seems to be: below it spans have ended.
    #[cold]
    #[inline(never)]
    fn irregular_depth(&self, top: u64) -> Option<u64> {
        Some(top & DEPTH).filter(|depth| *depth <= MAX_DEPTH as u64)
    }

    /// Whether the span at `depth` is the innermost, and none below it has ended.
    #[inline(always)]
    pub(crate) fn is_top(&self, depth: u64) -> bool {
        self.top.get() == depth
    }

    /// The span at `depth` has ended.
    ///
    /// # Safety
    ///
    /// `depth` is that of a span that is open, and [`is_top`](Self::is_top).
    #[inline(always)]
    pub(crate) unsafe fn pop<'m>(&self, mirror: &'m LaneMirror, depth: u64) -> Popped<'m> {
        self.top.set(depth - 1);
        mirror.depth.set(depth - 1);
        // SAFETY: an open span has a depth from 1 to MAX_DEPTH.
        unsafe {
            let open = mirror.open.as_ptr().add(depth as usize);
            let popped = Popped { open: &*open, around: &*open.sub(1) };
            self.current.set(popped.around.id.get());
            popped
        }
    }

    fn left(&self, depth: u64) -> Left {
        let mirror = self.mirror();
        let (open, around) = (open_at(mirror, depth), open_at(mirror, depth.wrapping_sub(1)));
        let popped = Popped { open, around };
        Left { id: popped.id(), name: popped.name(), parent: popped.parent() }
    }

    /// The span at `depth` has ended, wherever it is on the stack.
    pub(crate) fn leave(&self, depth: u64) -> Left {
        let (mirror, top) = (self.mirror(), self.top.get());
        let left = self.left(depth);
        if top & DEPTH == depth {
            let (mut below, mut irregular) = (depth.wrapping_sub(1), top & !DEPTH);
            while below > 0 && open_at(mirror, below).name.get() & ENDED != 0 {
                below -= 1;
                irregular = irregular.saturating_sub(IRREGULAR);
            }
            self.set_top(mirror, irregular | below);
        } else {
            let open = open_at(mirror, depth);
            open.name.set(open.name.get() | ENDED);
            self.top.set(top + IRREGULAR);
            add(&self.shown.out_of_order, 1);
        }
        left
    }

    /// The span that is open on top.
    pub(crate) fn current(&self) -> SpanRef {
        SpanRef { lane: self.id(), id: SpanId(self.current.get()) }
    }

    /// The same and how many are open. A part of a detached span stands for that span, which outlives
    /// it.
    pub(crate) fn innermost(&self) -> (SpanRef, u16) {
        let depth = self.top.get() & DEPTH;
        let open = open_at(self.mirror(), depth);
        let name = open.name.get();
        let span = if depth > 0 && name & SEGMENT != 0 {
            SpanRef { lane: LaneId((name >> 48) as u16), id: SpanId(open.origin.get()) }
        } else {
            self.current()
        };
        (span, depth as u16)
    }

    /// The id of the open span at `depth`.
    pub(crate) fn open_id(&self, depth: u64) -> SpanId {
        SpanId(open_at(self.mirror(), depth).id.get())
    }

    /// The spans that are open, outermost first. Exact when the owner is at rest; while it moves,
    /// an entry may be one that just ended or just began.
    pub(crate) fn open_spans(&self) -> impl Iterator<Item = Open> + '_ {
        // No span was ever open on a lane that nobody had.
        let open = self.shown_mirror().map(|mirror| {
            let depth = (self.top.get() & DEPTH).min(MAX_DEPTH as u64);
            (1..=depth).map(move |depth| (depth, mirror))
        });
        open.into_iter().flatten().filter_map(move |(depth, mirror)| {
            let (open, around) = (open_at(mirror, depth), open_at(mirror, depth - 1));
            let name = open.name.get();
            (name & ENDED == 0).then(|| Open {
                id: SpanId(open.id.get()),
                parent: SpanId(around.id.get()),
                name: NameId(name as u32),
                start: Ticks(open.start.get()),
                depth: (depth - 1) as u16,
            })
        })
    }

    /// Whether no span is open.
    pub(super) fn is_bare(&self) -> bool {
        self.top.get() == 0
    }

    /// Spans that took an id so far.
    pub(crate) fn spans(&self) -> u64 {
        self.next_span.get()
    }
}
