//! Who has a lane, and who had it.

use tmrun_formats::{LaneId, NameId};

use super::LaneBlock;
use crate::clock::Clock;
use crate::ring::Ring;
use crate::sync::{AtomicU32, Ordering, Word, array, const_fn, fence, words};

/// Places for the claims that the drain, which looks every millisecond or so, has not seen. The next
/// claimer may be writing over the oldest, so one fewer is remembered. When more came and went in
/// between, the numbers of the claims in the file show that some are missing.
pub(super) const REMEMBERED: usize = if cfg!(all(loom, test)) { 2 } else { 16 };

const FREE: u32 = 0;
const CLAIMED: u32 = 1;

/// The claims of a lane. The claimer writes; a reader checks that nothing it read was written over.
pub(crate) struct Claims {
    state: AtomicU32,
    count: Word,
    last: [Entry; REMEMBERED],
}

struct Entry {
    sequence: Word,
    name: Word,
    thread: Word,
}

/// A claim, as the drain sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// How many came before it.
    pub(crate) number: u64,
    /// Position of the claimer's first record.
    pub(crate) sequence: u64,
    pub(crate) name: NameId,
    pub(crate) thread: u64,
}

impl Claims {
    const_fn! {
        pub(super) fn new() -> Self {
            Self {
                state: AtomicU32::new(FREE),
                count: Word::new(0),
                last: array![words!(Entry { sequence, name, thread }); REMEMBERED],
            }
        }
    }

    /// How often the lane was claimed.
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    fn entry(&self, number: u64) -> &Entry {
        &self.last[number as usize % REMEMBERED]
    }

    fn push(&self, sequence: u64, name: NameId, thread: u64) {
        let number = self.count.get();
        // Before the entry changes, everybody may know that the count came to where it is: a reader
        // that sees the new entry sees that count.
        fence(Ordering::Release);
        let entry = self.entry(number);
        entry.sequence.set(sequence);
        entry.name.set(name.0.into());
        entry.thread.set(thread);
        fence(Ordering::Release);
        self.count.set(number + 1);
    }

    /// The claim of this number, unless it is forgotten.
    fn get(&self, number: u64) -> Option<Claim> {
        let entry = self.entry(number);
        let claim = Claim {
            number,
            sequence: entry.sequence.get(),
            name: NameId(entry.name.get() as u32),
            thread: entry.thread.get(),
        };
        fence(Ordering::Acquire);
        (self.count() < number + REMEMBERED as u64).then_some(claim)
    }
}

impl LaneBlock {
    /// Takes the lane, if it is free. The counters go on where the last owner left them.
    pub(crate) fn try_claim<C: Clock>(
        &self,
        id: LaneId,
        ring: Ring<'_>,
        name: NameId,
        thread: u64,
    ) -> bool {
        if !self.take() {
            return false;
        }
        self.set_id(id);
        self.place(ring);
        self.place_stack(ring.mirror, !C::is_quick());
        self.steps_open.set(0);
        self.leave_out_ids();
        self.settle();
        self.claims.push(self.head.get(), name, thread);
        self.show_claim(self.claims.count());
        true
    }

    /// Takes the lane from nobody.
    fn take(&self) -> bool {
        let state = &self.claims.state;
        state.load(Ordering::Relaxed) == FREE
            && state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Sets the counters of a lane that nobody has, as if so much had been recorded.
    pub(crate) fn preset<C: Clock>(&self, ring: Ring<'_>, position: u64, spans: u64) {
        if self.take() {
            self.place(ring);
            self.place_stack(ring.mirror, !C::is_quick());
            self.preset_counters(position, spans);
            self.release();
        }
    }

    /// Where the lane's records go.
    pub(super) fn place(&self, ring: Ring<'_>) {
        self.slots.store(ring.slots.as_ptr().cast_mut(), Ordering::Relaxed);
        self.mask.set((ring.slots.len() as u64).wrapping_sub(1));
        self.drain.slots.set(ring.slots.len() as u64);
        self.mirror.store(core::ptr::from_ref(ring.mirror).cast_mut(), Ordering::Release);
    }

    /// Shows the last claims once more, and what else never changes.
    #[cfg(feature = "std")]
    pub(crate) fn show_claims(&self) {
        if let Some(mirror) = self.shown_mirror() {
            mirror.number_stack();
            let count = self.claims.count();
            let oldest = count.saturating_sub(REMEMBERED as u64);
            (oldest..count).for_each(|number| self.show_claim(number + 1));
        }
    }

    /// In a forked child, whose one thread had that number and has this one: a lane of another thread
    /// has no owner any more, who may have been in the middle of anything. When the image was mapped,
    /// what the lane showed is gone.
    #[cfg(feature = "std")]
    pub(crate) fn survive_fork(&self, before: u64, thread: u64, mapped: bool) {
        self.told.survive_fork();
        let Some(mirror) = self.shown_mirror() else { return };
        mirror.published.publish(self.head.get());
        mirror.reserved.set(self.head.get());
        let owner = &self.claims.entry(self.claims.count().wrapping_sub(1)).thread;
        // Without a number the lane was claimed by the application, which knows what becomes of it.
        if owner.get() != 0 && owner.get() != before {
            self.empty_stack(mirror);
            self.guards.set(0);
            self.claims.state.store(FREE, Ordering::Release);
            return;
        }
        if owner.get() != 0 {
            owner.set(thread);
        }
        if mapped {
            self.lose_stack(mirror);
        }
    }

    fn show_claim(&self, count: u64) {
        let (mirror, last) = (self.mirror(), count.wrapping_sub(1));
        let (from, to) = (self.claims.entry(last), &mirror.claim[last as usize % REMEMBERED]);
        to.sequence.set(from.sequence.get());
        to.name.set(from.name.get());
        to.thread.set(from.thread.get());
        mirror.claims.set(count);
    }

    /// Gives the lane back, unless guards of it are alive: a guard may still be dropped, and would
    /// then record into somebody else's lane. Such a lane stays with its dead owner.
    pub(crate) fn release(&self) {
        if self.is_bare() && self.guards.get() == 0 {
            self.claims.state.store(FREE, Ordering::Release);
        }
    }

    /// Whether somebody has the lane.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claims.state.load(Ordering::Acquire) == CLAIMED
    }

    /// Whether there are claims that the file does not know of yet.
    pub(crate) fn has_new_claims(&self) -> bool {
        self.drain.claims.get() != self.claims.count()
    }

    /// Claims that the file does not know of yet. (The drain calls it.)
    pub(crate) fn new_claims(&self) -> impl Iterator<Item = Claim> + '_ {
        let (known, count) = (self.drain.claims.get(), self.claims.count());
        fence(Ordering::Acquire);
        self.drain.claims.set(count);
        let remembered = count.saturating_sub(REMEMBERED as u64).max(known);
        (remembered..count).filter_map(|number| self.claims.get(number))
    }
}
