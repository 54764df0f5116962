//! A lane's block: what its producer knows, what it shows, and what the drain knows of it.

mod account;
mod claim;

use tmrun_formats::wire::{Payload, RecordHeader, flags};
use tmrun_formats::{LaneId, NameId, Phase, Planes, SpanId, Ticks};

use crate::ring::Slot;
use crate::sync::{AtomicPtr, Ordering, Position, Word};

use account::{Drained, Shown, Told};
use claim::Claims;

/// Spans that may be open on a lane at once. A deeper one is not recorded; a gap says so.
pub const MAX_DEPTH: usize = 127;

/// One producer's side of a ring. (Public for the macros only; nothing of it can be named.) Only the
/// lane's owner calls the methods that record; others may read the words it shows.
#[repr(C, align(128))]
pub struct LaneBlock {
    // What a span touches: one cache line, and the top of `open`.
    slots: AtomicPtr<Slot>,
    mask: Word,
    /// The position of the next record. Everything before it is stored.
    head: Word,
    /// Up to where the producer may store without a look at the tail: the tail it last observed
    /// plus the capacity, or `head` while a gap is pending, so that one comparison serves both.
    limit: Word,
    next_span: Word,
    depth: Word,
    /// Not zero while a span below the top has ended: then the next end is looked at closely.
    irregular: Word,
    id: Word,

    published: Position,
    tail: Position,

    // Off the fast path, still the producer's.
    /// A step that ended while one begun after it was open.
    steps_open: Word,
    steps: [OpenStep; STEPS + 1],
    known_tail: Word,
    told: Told,
    /// Guards that the owner still holds, those of spans apart.
    guards: Word,
    pub(crate) shown: Shown,
    open: [OpenSpan; MAX_DEPTH + 1],

    claims: Claims,
    drain: Drained,
}

/// An entry of the open-span stack: entry 0 is none, entry d the span that d − 1 others are around.
struct OpenSpan {
    id: Word,
    start: Word,
    /// The name; with [`ENDED`] the span has ended while one above it is open.
    name: Word,
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

impl core::fmt::Debug for LaneBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("LaneBlock").field(&self.id()).finish()
    }
}

macro_rules! words {
    ($name:ident { $($field:ident),* }) => {
        $name { $($field: Word::new(0)),* }
    };
}

impl LaneBlock {
    /// All zeros, so that a static probe needs no space in the binary.
    pub(crate) const fn new() -> Self {
        Self {
            slots: AtomicPtr::new(core::ptr::null_mut()),
            mask: Word::new(0),
            head: Word::new(0),
            limit: Word::new(0),
            next_span: Word::new(0),
            depth: Word::new(0),
            irregular: Word::new(0),
            id: Word::new(0),
            published: Position::new(0),
            tail: Position::new(0),
            steps_open: Word::new(0),
            steps: [const { words!(OpenStep { number, phase, ended }) }; STEPS + 1],
            known_tail: Word::new(0),
            told: Told::new(),
            guards: Word::new(0),
            shown: Shown::new(),
            open: [const { words!(OpenSpan { id, start, name }) }; MAX_DEPTH + 1],
            claims: Claims::new(),
            drain: Drained::new(),
        }
    }

    /// Which lane it is, once it was claimed.
    #[inline(always)]
    pub(crate) fn id(&self) -> LaneId {
        LaneId(self.id.get() as u16)
    }

    // --- storing --------------------------------------------------------------------------------

    /// Room for a group of `n` records, at most [`GROUP_MAX`](tmrun_formats::wire::GROUP_MAX). When
    /// there is none the group is counted as dropped, with its first and its last moment.
    #[inline(always)]
    pub(crate) fn reserve(
        &self,
        n: u64,
        edges: (Ticks, Ticks),
        planes: Planes,
    ) -> Option<Store<'_>> {
        let mut at = self.head.get();
        if (self.limit.get().wrapping_sub(at) as i64) < n as i64 {
            at = self.make_room(n, edges, planes)?;
        }
        Some(Store { lane: self, at })
    }

    /// The slow path: looks at the tail, and stores the pending gap before the group, or neither.
    /// Returns the position of the group.
    #[cold]
    #[inline(never)]
    fn make_room(&self, n: u64, edges: (Ticks, Ticks), planes: Planes) -> Option<u64> {
        // The tail first: who sees the room that a new recording made sees that the last one told
        // of the drops before it.
        self.known_tail.set(self.tail.observe(self.known_tail.get()));
        let pending = self.has_pending();
        if !self.fits(n + u64::from(pending)) {
            self.count_drops(n, 1, edges, planes);
            self.limit.set(self.head.get());
            return None;
        }
        if pending {
            self.store_pending();
        }
        self.settle();
        Some(self.head.get())
    }

    /// Whether `n` more records fit, by the tail that is known.
    fn fits(&self, n: u64) -> bool {
        self.head.get() + n <= self.known_tail.get() + self.mask.get() + 1
    }

    /// Sets the limit by what is known.
    fn settle(&self) {
        let full = self.known_tail.get() + self.mask.get() + 1;
        self.limit.set(if self.has_pending() { self.head.get() } else { full });
    }

    // --- spans ----------------------------------------------------------------------------------

    /// Low half of the id of the span that is open on top, 0 for none.
    #[inline(always)]
    pub(crate) fn enclosing(&self) -> u32 {
        self.open_at(self.depth.get()).id.get() as u32
    }

    #[inline(always)]
    fn open_at(&self, depth: u64) -> &OpenSpan {
        // The mask changes nothing (a depth is at most MAX_DEPTH) and spares the bounds check.
        &self.open[depth as usize & MAX_DEPTH]
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
        self.depth.set(depth);
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
            self.depth.set(depth - 1);
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
        self.depth.set(top);
    }

    /// The id of the open span at `depth`.
    pub(crate) fn open_id(&self, depth: u32) -> SpanId {
        SpanId(self.open_at(depth.into()).id.get())
    }

    /// The spans that are open, outermost first. Exact when the owner is at rest; while it moves,
    /// an entry may be one that just ended or just began.
    pub(crate) fn open_spans(&self) -> impl Iterator<Item = Open> + '_ {
        let depth = self.depth.get().min(MAX_DEPTH as u64);
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

    // --- the step -------------------------------------------------------------------------------

    /// The step that is open on the lane, 0 for none.
    pub(crate) fn step(&self) -> u64 {
        self.steps.get(self.steps_open.get() as usize).map_or(0, |step| step.number.get())
    }

    /// A step begins. Returns how deep it is among the steps that are open; 0 when there are too many
    /// to keep, and then the lane stays in the one that it was in.
    pub(crate) fn begin_step(&self, number: u64, phase: Phase) -> usize {
        add(&self.guards, 1);
        let depth = self.steps_open.get() as usize + 1;
        let Some(open) = self.steps.get(depth) else { return 0 };
        open.number.set(number);
        open.phase.set(phase.0.into());
        open.ended.set(0);
        self.steps_open.set(depth as u64);
        depth
    }

    /// The step at this depth ends. Steps may end in any order: one that others were begun in ends
    /// when it does, and the lane is in the innermost one that is still open. Returns it, when a
    /// reader of the marks would not know.
    pub(crate) fn end_step(&self, number: u64, depth: usize) -> Option<(u64, Phase)> {
        self.guards.set(self.guards.get().saturating_sub(1));
        let top = self.steps_open.get() as usize;
        if let Some(ended) = self.steps.get(depth).filter(|_| depth > 0) {
            ended.ended.set(1);
        }
        let mut open = top;
        while open > 0 && self.steps.get(open).is_some_and(|step| step.ended.get() != 0) {
            open -= 1;
        }
        self.steps_open.set(open as u64);
        let step = self.steps.get(open).filter(|_| open > 0)?;
        let goes_on = (step.number.get(), Phase(step.phase.get() as u8));
        (open != top || depth == 0 || goes_on.0 == number).then_some(goes_on)
    }

    /// Spans that took an id so far.
    pub(crate) fn spans(&self) -> u64 {
        self.next_span.get()
    }
}

/// Steps that may be open on a lane at once and be gone back to.
const STEPS: usize = 7;

/// An open step: entry 0 is none.
struct OpenStep {
    number: Word,
    phase: Word,
    ended: Word,
}

/// Where a span began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    pub(crate) start: Ticks,
    pub(crate) depth: u32,
}

/// Reserved slots of one group, filled one after the other and published together.
pub(crate) struct Store<'a> {
    lane: &'a LaneBlock,
    at: u64,
}

impl Store<'_> {
    /// Stores the next record of the group.
    #[inline(always)]
    pub(crate) fn put<P: Payload>(&mut self, header: RecordHeader, payload: &P) {
        let [ticks, name, rest] = header.words();
        self.put_words(Ticks(ticks), name, (rest >> 32) as u32, payload);
    }

    /// The same with the header's words, but for the sequence, ready made.
    #[inline(always)]
    pub(crate) fn put_words<P: Payload>(
        &mut self,
        ticks: Ticks,
        name: u64,
        rest: u32,
        payload: &P,
    ) {
        let rest = u64::from(self.at as u32) | u64::from(rest) << 32;
        let [a, b, c, d, e] = payload.words();
        let slots = self.lane.slots.load(Ordering::Relaxed);
        let index = self.at & self.lane.mask.get();
        // SAFETY: a claimed lane has a ring of mask + 1 slots, which lives as long as its block
        // (both are fields of one probe); only this producer stores, and only to unpublished slots.
        let slot = unsafe { &*slots.add(index as usize) };
        slot.store([ticks.0, name, rest, a, b, c, d, e]);
        self.at = self.at.wrapping_add(1);
    }

    /// Stores a continuation of the group.
    #[inline(always)]
    pub(crate) fn put_continued<P: Payload>(
        &mut self,
        header: RecordHeader,
        bits: u16,
        payload: &P,
    ) {
        let flags = flags::CONTINUES | bits;
        self.put(RecordHeader { kind: P::KIND as u8, flags, ..header }, payload);
    }

    /// Publishes the group.
    #[inline(always)]
    pub(crate) fn publish(self) {
        self.lane.head.set(self.at);
        self.lane.published.publish(self.at);
    }
}

/// Adds to a counter of which the caller is the only writer.
#[inline(always)]
pub(crate) fn add(word: &Word, n: u64) {
    word.set(word.get().wrapping_add(n));
}

const _: () = assert!((MAX_DEPTH + 1).is_power_of_two());
