//! A lane's block: what its producer knows and what the drain knows of it. What a lane shows is in
//! its [`LaneMirror`].

mod account;
mod claim;
mod mirror;
mod open;
mod part;
mod steps;

use core::cell::Cell;

use tmrun_formats::wire::{Payload, RecordHeader, flags};
use tmrun_formats::{LaneId, Planes, SpanId, Ticks};

use crate::clock::{Clock, Overrun};
use crate::ring::Slot;
use crate::sync::{AtomicPtr, Ordering, Position, Word, array, const_fn, fence, words};

use account::{Drained, Shown, Told};
use claim::Claims;
pub(crate) use mirror::LaneMirror;
pub use open::MAX_DEPTH;
use open::OpenSpan;
pub(crate) use open::{Ended, Entered, SpanRef, Top};
use steps::{OpenStep, STEPS};

/// One producer's side of a ring. (Public for the macros only; nothing of it can be named.) Only the
/// lane's owner calls the methods that record; others may read the words it shows.
///
/// What others read is in words, which are atomic. What only the owner looks at is in cells: a plain
/// load is part of the comparison that wants it, an atomic one an instruction of its own.
#[repr(C, align(128))]
pub struct LaneBlock {
    // What a span touches.
    slots: AtomicPtr<Slot>,
    mirror: AtomicPtr<LaneMirror>,
    mask: Word,
    /// The position of the next record. Everything before it is stored, as whoever observes it sees:
    /// the drain does, and not the mirror's `published`, which somebody else may have written to.
    head: Word,
    /// Up to where the producer may store without a look at the tail: the tail it last observed
    /// plus the capacity, or `head` while a gap is pending, so that one comparison serves both.
    limit: Cell<u64>,
    next_span: Word,
    /// The innermost span that is open, or what stands for it: see [`open`].
    top: Cell<*mut OpenSpan>,
    /// The last entry that a span can have.
    last: Cell<*mut OpenSpan>,
    /// The lane's number, where a span's record has it: as the parent's lane and as its own.
    lanes: Cell<u64>,

    tail: Position,

    // Off the fast path, still the producer's.
    /// A step that ended while one begun after it was open.
    steps_open: Word,
    steps: [OpenStep; STEPS + 1],
    known_tail: Word,
    /// While the top is elsewhere: how many spans are open.
    depth_elsewhere: Cell<usize>,
    /// Spans that have ended while one above them is open, and those of which nothing is known.
    ended: Cell<u128>,
    lost: Cell<u128>,
    /// Reading the clock takes a call.
    slow_clock: Cell<bool>,
    told: Told,
    /// Guards that the owner still holds, those of spans apart.
    guards: Word,
    pub(crate) shown: Shown,

    claims: Claims,
    drain: Drained,
}

// SAFETY: the pointers are to the probe that the block is a part of; whoever has the block has that.
unsafe impl Send for LaneBlock {}
// SAFETY: all but the cells is atomic. The cells are touched only by who has the lane: from a claim,
// which one thread wins (an acquiring exchange), to the release (a releasing store) by its guard `Lane`,
// which is not `Sync`, or at the end of the thread. Guards keep a lane from being released, and are
// not `Send`. The recorder's own lane belongs to the drain, of which there is one at a time; the lanes
// of a forked child, in the handler of the fork, to its one thread. The cells of the lane that nobody
// ever claims are only read.
unsafe impl Sync for LaneBlock {}

/// A panic leaves a lane as it leaves a recorder: with what was stored before.
impl core::panic::RefUnwindSafe for LaneBlock {}

impl core::fmt::Debug for LaneBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LaneBlock").finish_non_exhaustive()
    }
}

impl LaneBlock {
    const_fn! {
        /// All zeros, so that a static probe needs no space in the binary.
        pub(crate) fn new() -> Self {
            Self {
                slots: AtomicPtr::new(core::ptr::null_mut()),
                mirror: AtomicPtr::new(core::ptr::null_mut()),
                mask: Word::new(0),
                head: Word::new(0),
                limit: Cell::new(0),
                next_span: Word::new(0),
                top: Cell::new(core::ptr::null_mut()),
                last: Cell::new(core::ptr::null_mut()),
                lanes: Cell::new(0),
                tail: Position::new(0),
                steps_open: Word::new(0),
                steps: array![words!(OpenStep { number, phase, ended }); STEPS + 1],
                known_tail: Word::new(0),
                depth_elsewhere: Cell::new(0),
                ended: Cell::new(0),
                lost: Cell::new(0),
                slow_clock: Cell::new(false),
                told: Told::new(),
                guards: Word::new(0),
                shown: Shown::new(),
                claims: Claims::new(),
                drain: Drained::new(),
            }
        }
    }

    /// Which lane it is, once it was claimed.
    #[inline(always)]
    pub(crate) fn id(&self) -> LaneId {
        LaneId((self.lanes.get() >> 48) as u16)
    }

    fn set_id(&self, id: LaneId) {
        self.lanes.set(u64::from(id.0) << 32 | u64::from(id.0) << 48);
    }

    /// The third word of a span's payload: high half of its id, and the lane twice.
    #[inline(always)]
    pub(crate) fn span_word(&self, id: SpanId) -> u64 {
        id.0 >> 32 | self.lanes.get()
    }

    /// Whether anybody ever had it. (The lane of a thread that has none is one that nobody had.)
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn was_claimed(&self) -> bool {
        !self.slots.load(Ordering::Relaxed).is_null()
    }

    /// What the lane shows. Only for who has the lane, and for the drain of a lane that was had.
    #[inline(always)]
    pub(crate) fn mirror(&self) -> &LaneMirror {
        // SAFETY: a lane that is or was claimed has a mirror, which lives as long as its block (both
        // are fields of one probe) and never moves.
        unsafe { &*self.mirror.load(Ordering::Relaxed) }
    }

    /// The same of any lane; `None` before the first claim.
    fn shown_mirror(&self) -> Option<&LaneMirror> {
        // SAFETY: as above; null before the first claim.
        unsafe { self.mirror.load(Ordering::Acquire).as_ref() }
    }

    // --- storing --------------------------------------------------------------------------------

    /// Room for a group of `n` records, at most [`GROUP_MAX`](tmrun_formats::wire::GROUP_MAX), by
    /// the policy of the probe's clock. When there is none the group is counted as dropped, with its
    /// first and its last moment.
    #[inline(always)]
    pub(crate) fn reserve<C: Clock>(
        &self,
        n: u64,
        edges: (Ticks, Ticks),
        planes: Planes,
    ) -> Option<Store<'_>> {
        if crate::OFF {
            return None; // who asks for no level
        }
        match C::OVERRUN {
            Overrun::DropNewest => self.reserve_free(n, edges, planes),
            Overrun::Overwrite => Some(self.store_at(self.head.get()).announced(n)),
        }
    }

    /// Room for one record, if that takes no look at the tail; nothing is counted if it does.
    #[inline(always)]
    pub(crate) fn quick_room<C: Clock>(&self) -> Option<Store<'_>> {
        let store = self.store_at(self.head.get());
        match C::OVERRUN {
            Overrun::DropNewest => (self.limit.get() != store.at).then_some(store),
            Overrun::Overwrite => Some(store.announced(1)),
        }
    }

    #[inline(always)]
    fn store_at(&self, at: u64) -> Store<'_> {
        Store { lane: self, mirror: self.mirror(), at }
    }

    /// Room that nobody has to read any more.
    #[inline(always)]
    fn reserve_free(&self, n: u64, edges: (Ticks, Ticks), planes: Planes) -> Option<Store<'_>> {
        let mut at = self.head.get();
        // The limit is never before the head.
        if self.limit.get().wrapping_sub(at) < n {
            at = self.make_room(n, edges, planes)?;
        }
        Some(self.store_at(at))
    }

    /// The slow path: looks at the tail, and stores the pending gap before the group, or neither.
    /// Returns the position of the group.
    #[cold]
    #[inline(never)]
    fn make_room(&self, n: u64, edges: (Ticks, Ticks), planes: Planes) -> Option<u64> {
        self.leave_out_ids();
        self.known_tail.set(self.tail.observe(self.known_tail.get()));
        let pending = self.has_pending();
        // While the drain tells of what is pending, this group is what is pending next.
        if !self.fits(n + u64::from(pending)) || pending && !self.store_pending() {
            self.count_drops(n, 1, edges, planes);
            self.limit.set(self.head.get());
            return None;
        }
        self.settle();
        Some(self.head.get())
    }

    /// Whether a group of `n` records finds room now. (Off the fast path: it looks at the tail.)
    pub(crate) fn has_room<C: Clock>(&self, n: u64) -> bool {
        if matches!(C::OVERRUN, Overrun::Overwrite) {
            return true;
        }
        self.known_tail.set(self.tail.observe(self.known_tail.get()));
        self.fits(n + u64::from(self.has_pending()))
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
}

/// Reserved slots of one group, filled one after the other and published together.
pub(crate) struct Store<'a> {
    lane: &'a LaneBlock,
    mirror: &'a LaneMirror,
    at: u64,
}

impl<'a> Store<'a> {
    /// The next `n` slots are stored to, whatever they hold: whoever reads them looks at `reserved`
    /// after it has.
    #[inline(always)]
    fn announced(self, n: u64) -> Self {
        self.mirror.reserved.set(self.at + n);
        fence(Ordering::Release);
        self
    }

    /// Stores the next record of the group.
    #[inline(always)]
    pub(crate) fn put<P: Payload>(&mut self, header: RecordHeader, payload: &P) {
        let slot = self.slot();
        slot.set_ticks(header.ticks);
        slot.set_name(header.name, header.span);
        slot.set_kind(self.sequence(), header.kind_word());
        slot.set_payload(payload.words());
        self.next();
    }

    /// The sequence of the next record, as its header has it.
    #[inline(always)]
    pub(crate) const fn sequence(&self) -> u32 {
        self.at as u32
    }

    /// The slot of the next record.
    #[inline(always)]
    pub(crate) fn slot(&self) -> &'a Slot {
        let slots = self.lane.slots.load(Ordering::Relaxed);
        let index = self.at & self.lane.mask.get();
        // SAFETY: a claimed lane has a ring of mask + 1 slots, which lives as long as its block
        // (both are fields of one probe); only this producer stores, and only to unpublished slots.
        unsafe { &*slots.add(index as usize) }
    }

    /// The next record is stored.
    #[inline(always)]
    pub(crate) fn next(&mut self) {
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

    /// Publishes the group: to whoever has the mapped file, and then to the drain, so that nothing
    /// that was drained is behind what the file shows.
    #[inline(always)]
    pub(crate) fn publish(self) {
        self.mirror.published.publish(self.at);
        self.lane.head.publish(self.at);
    }
}

/// Adds to a counter of which the caller is the only writer.
#[inline(always)]
pub(crate) fn add(word: &Word, n: u64) {
    word.set(word.get().wrapping_add(n));
}
