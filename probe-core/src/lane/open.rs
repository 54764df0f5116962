//! The stack of open spans: in the mirror, so that what is open when a process dies can be read.

use tmrun_formats::{NameId, SpanId, Ticks};

use super::{LaneBlock, add};
use crate::sync::Word;

/// Spans that may be open on a lane at once. A deeper one is not recorded; a gap says so.
pub const MAX_DEPTH: usize = 127;

const _: () = assert!((MAX_DEPTH + 1).is_power_of_two());

/// An entry of the stack: entry 0 is none, entry d the span that d − 1 others are around.
#[repr(C)]
pub(super) struct OpenSpan {
    pub(super) id: Word,
    pub(super) start: Word,
    /// The name; with [`ENDED`] the span has ended while one above it is open.
    pub(super) name: Word,
    /// Of a part of a detached span: the id of that span.
    pub(super) origin: Word,
}

const ENDED: u64 = 1 << 32;

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
    pub(crate) depth: u32,
}

impl LaneBlock {
    /// Low half of the id of the span that is open on top, 0 for none.
    #[inline(always)]
    pub(crate) fn enclosing(&self) -> u32 {
        self.open_at(self.depth.get()).id.get() as u32
    }

    #[inline(always)]
    pub(super) fn set_depth(&self, depth: u64) {
        self.depth.set(depth);
        self.mirror().depth.set(depth);
    }

    #[inline(always)]
    fn open_at(&self, depth: u64) -> &OpenSpan {
        // The mask changes nothing (a depth is at most MAX_DEPTH) and spares the bounds check.
        &self.mirror().open[depth as usize & MAX_DEPTH]
    }

    /// Opens a span and returns how deep it is, or `None` when the stack is full.
    #[inline(always)]
    pub(crate) fn enter(&self, name: NameId, now: impl FnOnce() -> Ticks) -> Option<Entered> {
        let depth = self.depth.get() + 1;
        if depth > MAX_DEPTH as u64 {
            return None;
        }
        let id = self.next_span.get() + 1;
        // An id whose low half is 0 would read as none: it is skipped.
        let id = id + u64::from(id as u32 == 0);
        self.next_span.set(id);
        let open = self.open_at(depth);
        open.id.set(id);
        open.name.set(name.0.into());
        let start = now();
        open.start.set(start.0);
        self.set_depth(depth);
        Some(Entered { start, depth: depth as u32 })
    }

    /// The span at `depth` has ended: its id, name and parent.
    #[inline(always)]
    pub(crate) fn leave(&self, depth: u32) -> (SpanId, NameId, SpanId) {
        let depth = u64::from(depth);
        let open = self.open_at(depth);
        let (id, name) = (SpanId(open.id.get()), NameId(open.name.get() as u32));
        let parent = SpanId(self.open_at(depth.wrapping_sub(1)).id.get());
        if self.depth.get() ^ depth | self.irregular.get() == 0 {
            self.set_depth(depth - 1);
        } else {
            self.leave_out_of_order(depth);
        }
        (id, name, parent)
    }

    /// Ends a span while one above it is open, or one whose neighbours below have ended already.
    #[cold]
    #[inline(never)]
    fn leave_out_of_order(&self, depth: u64) {
        if self.depth.get() != depth {
            let open = self.open_at(depth);
            open.name.set(open.name.get() | ENDED);
            add(&self.irregular, 1);
            add(&self.shown.out_of_order, 1);
            return;
        }
        let mut top = depth - 1;
        while top > 0 && self.open_at(top).name.get() & ENDED != 0 {
            top -= 1;
            self.irregular.set(self.irregular.get().saturating_sub(1));
        }
        self.set_depth(top);
    }

    /// The id of the open span at `depth`.
    pub(crate) fn open_id(&self, depth: u32) -> SpanId {
        SpanId(self.open_at(depth.into()).id.get())
    }

    /// The spans that are open, outermost first. Exact when the owner is at rest; while it moves,
    /// an entry may be one that just ended or just began.
    pub(crate) fn open_spans(&self) -> impl Iterator<Item = Open> + '_ {
        // No span was ever open on a lane that nobody had.
        let depth = self.shown_mirror().map_or(0, |_| self.depth.get().min(MAX_DEPTH as u64));
        (1..=depth).filter_map(move |depth| {
            let (open, around) = (self.open_at(depth), self.open_at(depth - 1));
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

    /// Spans that took an id so far.
    pub(crate) fn spans(&self) -> u64 {
        self.next_span.get()
    }
}
