//! A lane's block: what its producer knows, what it shows, and what the drain knows of it.

use tmrun_formats::wire::{Gap, Payload, RecordHeader, flags};
use tmrun_formats::{GapReason, LaneId, Level, NameId, Planes, SpanId, Ticks};

use crate::ring::Slot;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, Position, Word};

/// Spans that may be open on a lane at once. A deeper one is not recorded; a gap says so.
pub const MAX_DEPTH: usize = 127;

/// One producer's side of a ring. (Public for the macros only; nothing of it can be named.) Only the lane's owner calls the methods that record; others may
/// read the words it shows.
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
    step: Word,
    known_tail: Word,
    pending: Pending,
    /// Guards that the owner still holds, those of spans apart.
    pub(crate) guards: Word,
    pub(crate) shown: Shown,
    open: [OpenSpan; MAX_DEPTH + 1],

    // Claims.
    state: AtomicU32,
    pub(crate) claim: Claim,

    // The drain's.
    pub(crate) drain: Drained,
}

/// Drops that no Gap record tells of yet.
struct Pending {
    records: Word,
    groups: Word,
    first: Word,
    last: Word,
    planes: Word,
}

/// Counters that the producer shows to the drain, for as long as the probe lives.
pub(crate) struct Shown {
    pub(crate) dropped_records: Word,
    pub(crate) dropped_groups: Word,
    /// First and last tick and planes of the drops since the last Gap record.
    pub(crate) first: Word,
    pub(crate) last: Word,
    pub(crate) planes: Word,
    pub(crate) truncated: Word,
    pub(crate) out_of_order: Word,
}

/// Who has the lane.
pub(crate) struct Claim {
    /// How often it was claimed.
    pub(crate) count: Word,
    /// Position of the claimer's first record.
    pub(crate) sequence: Word,
    pub(crate) name: Word,
    pub(crate) thread: Word,
}

/// What the drain knows of the lane.
pub(crate) struct Drained {
    pub(crate) tail: Word,
    /// Records and groups that the Gap records of the lane tell of, since the recording began.
    pub(crate) gap_records: Word,
    pub(crate) gap_groups: Word,
    /// The drop counters when the recording began.
    pub(crate) base_records: Word,
    pub(crate) base_groups: Word,
    /// Claims that the file knows of.
    pub(crate) claims: Word,
    pub(crate) high_water: Word,
    /// Position of the first record of this recording.
    pub(crate) first: Word,
}

/// An entry of the open-span stack: entry 0 is none, entry d the span that d − 1 others are around.
struct OpenSpan {
    id: Word,
    start: Word,
    /// The name; with [`ENDED`] the span has ended while one above it is open.
    name: Word,
}

const ENDED: u64 = 1 << 32;

const FREE: u32 = 0;
const CLAIMED: u32 = 1;

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
            step: Word::new(0),
            known_tail: Word::new(0),
            pending: words!(Pending { records, groups, first, last, planes }),
            guards: Word::new(0),
            shown: words!(Shown {
                dropped_records,
                dropped_groups,
                first,
                last,
                planes,
                truncated,
                out_of_order
            }),
            open: [const { words!(OpenSpan { id, start, name }) }; MAX_DEPTH + 1],
            state: AtomicU32::new(FREE),
            claim: words!(Claim { count, sequence, name, thread }),
            drain: words!(Drained {
                tail,
                gap_records,
                gap_groups,
                base_records,
                base_groups,
                claims,
                high_water,
                first
            }),
        }
    }

    // --- claiming -------------------------------------------------------------------------------

    /// Takes the lane, if it is free. The counters go on where the last owner left them.
    pub(crate) fn try_claim(&self, id: LaneId, slots: &[Slot], name: NameId, thread: u64) -> bool {
        let taken = self.state.load(Ordering::Relaxed) != FREE
            || self
                .state
                .compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_err();
        if taken {
            return false;
        }
        self.id.set(id.0.into());
        self.slots.store(slots.as_ptr().cast_mut(), Ordering::Relaxed);
        self.mask.set((slots.len() as u64).wrapping_sub(1));
        self.depth.set(0);
        self.irregular.set(0);
        self.step.set(0);
        self.settle();
        self.claim.name.set(name.0.into());
        self.claim.thread.set(thread);
        self.claim.sequence.set(self.head.get());
        self.claim.count.set(self.claim.count.get() + 1);
        true
    }

    /// Gives the lane back, unless guards of it are alive: a guard may still be dropped, and would
    /// then record into somebody else's lane. Such a lane stays with its dead owner.
    pub(crate) fn release(&self) {
        if self.depth.get() == 0 && self.guards.get() == 0 {
            self.state.store(FREE, Ordering::Release);
        }
    }

    /// Whether somebody has the lane.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLAIMED
    }

    /// Which lane it is, once it was claimed.
    #[inline(always)]
    pub(crate) fn id(&self) -> LaneId {
        LaneId(self.id.get() as u16)
    }

    // --- storing --------------------------------------------------------------------------------

    /// Room for a group of `n` records, at most [`GROUP_MAX`](tmrun_formats::wire::GROUP_MAX). When
    /// there is none the group is counted as dropped.
    #[inline(always)]
    pub(crate) fn reserve(&self, n: u64, ticks: Ticks, planes: Planes) -> Option<Store<'_>> {
        let mut at = self.head.get();
        if (self.limit.get().wrapping_sub(at) as i64) < n as i64 {
            at = self.make_room(n, ticks, planes)?;
        }
        Some(Store { lane: self, at })
    }

    /// The slow path: looks at the tail, and stores the pending gap before the group, or neither.
    /// Returns the position of the group.
    #[cold]
    #[inline(never)]
    fn make_room(&self, n: u64, ticks: Ticks, planes: Planes) -> Option<u64> {
        let pending = self.pending.groups.get() != 0;
        let needed = self.head.get() + n + u64::from(pending);
        self.known_tail.set(self.tail.observe(self.known_tail.get()));
        if needed > self.known_tail.get() + self.mask.get() + 1 {
            self.count_drop(n, ticks, planes);
            self.limit.set(self.head.get());
            return None;
        }
        if pending {
            self.store_pending();
        }
        self.settle();
        Some(self.head.get())
    }

    /// Sets the limit by what is known.
    fn settle(&self) {
        let full = self.known_tail.get() + self.mask.get() + 1;
        self.limit.set(if self.pending.groups.get() == 0 { full } else { self.head.get() });
    }

    fn count_drop(&self, n: u64, ticks: Ticks, planes: Planes) {
        let (pending, shown) = (&self.pending, &self.shown);
        if pending.groups.get() == 0 {
            pending.first.set(ticks.0);
            shown.first.set(ticks.0);
            pending.planes.set(0);
            shown.planes.set(0);
        }
        add(&pending.records, n);
        add(&pending.groups, 1);
        pending.last.set(ticks.0);
        let planes = pending.planes.get() | u64::from(planes.0);
        pending.planes.set(planes);
        shown.last.set(ticks.0);
        shown.planes.set(planes);
        add(&shown.dropped_records, n);
        add(&shown.dropped_groups, 1);
    }

    /// Stores the pending gap at the head; it is published with the group behind it.
    fn store_pending(&self) {
        let pending = &self.pending;
        let gap = Gap {
            first: Ticks(pending.first.get()),
            last: Ticks(pending.last.get()),
            records: pending.records.get(),
            groups: pending.groups.get(),
            planes: Planes(pending.planes.get() as u32),
            lane: self.id(),
            reason: GapReason::OVERRUN,
        };
        let header = RecordHeader { ticks: gap.first, ..RecordHeader::of::<Gap>(Level::PULSE) };
        let mut store = Store { lane: self, at: self.head.get() };
        store.put(header, &gap);
        self.head.set(store.at);
        pending.records.set(0);
        pending.groups.set(0);
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
        self.step.get()
    }

    pub(crate) fn set_step(&self, number: u64) {
        self.step.set(number);
    }

    // --- the drain's side -----------------------------------------------------------------------

    /// What is published, from the drain's tail on.
    pub(crate) fn observe_head(&self) -> u64 {
        self.published.observe(self.drain.tail.get())
    }

    /// The records before `tail` are taken; their slots may be stored to again.
    pub(crate) fn take_until(&self, tail: u64) {
        self.drain.tail.set(tail);
        self.tail.publish(tail);
    }

    /// A recording begins: its counts are from here on.
    pub(crate) fn begin_recording(&self) {
        let drain = &self.drain;
        drain.first.set(drain.tail.get());
        drain.gap_records.set(0);
        drain.gap_groups.set(0);
        drain.base_records.set(self.shown.dropped_records.get());
        drain.base_groups.set(self.shown.dropped_groups.get());
        // An owner from before is still to be named; who gave the lane back is not.
        let claims = self.claim.count.get();
        drain.claims.set(if self.is_claimed() { claims.wrapping_sub(1) } else { claims });
        drain.high_water.set(0);
    }

    /// Records and groups that were dropped in this recording.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        let since = |shown: &Word, base: &Word| shown.get().wrapping_sub(base.get());
        (
            since(&self.shown.dropped_records, &self.drain.base_records),
            since(&self.shown.dropped_groups, &self.drain.base_groups),
        )
    }

    /// Spans that took an id so far.
    pub(crate) fn spans(&self) -> u64 {
        self.next_span.get()
    }

    /// Sets the counters, as if so much had been recorded.
    pub(crate) fn preset(&self, position: u64, spans: u64) {
        self.head.set(position);
        self.known_tail.set(position);
        self.next_span.set(spans);
        self.published.publish(position);
        self.take_until(position);
        self.claim.sequence.set(position);
        self.settle();
    }
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
