//! The ring: slots of 64 bytes, one producer, one consumer, nothing overwritten.
//!
//! The protocol, with positions that only grow (slot = position mod capacity):
//!
//! - the producer stores slots `head … head + n − 1`, then publishes `head + n`;
//! - the consumer observes `head`, reads slots `tail … head − 1`, then publishes `tail`;
//! - the producer stores a slot only while `head + n ≤ tail + capacity`, with the `tail` that it
//!   last observed.
//!
//! So a slot is never stored to between being published and being consumed, which is what lets the
//! consumer look at it as plain memory.

use tmrun_formats::wire::Record;

use crate::lane::LaneMirror;
use crate::sync::SlotWord;

/// A lane's memory: what it shows, and its slots.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'p> {
    pub(crate) mirror: &'p LaneMirror,
    pub(crate) slots: &'p [Slot],
}

/// One slot: a record's eight words.
#[repr(C, align(64))]
pub(crate) struct Slot([SlotWord; 8]);

const _: () = assert!(size_of::<Slot>() == size_of::<Record>());

impl Slot {
    pub(crate) const fn new() -> Self {
        Self([const { SlotWord::new() }; 8])
    }

    /// Stores a record, word by word: building it in memory first and copying it costs more than
    /// everything else here together (the copy reads 16 bytes just written as two times 8).
    #[inline(always)]
    pub(crate) fn store(&self, words: [u64; 8]) {
        let [a, b, c, d, e, f, g, h] = &self.0;
        let [wa, wb, wc, wd, we, wf, wg, wh] = words;
        a.set(wa);
        b.set(wb);
        c.set(wc);
        d.set(wd);
        e.set(we);
        f.set(wf);
        g.set(wg);
        h.set(wh);
    }

    /// Stores one word of a record, for who has them one after the other.
    #[inline(always)]
    pub(crate) fn set<const WORD: usize>(&self, word: u64) {
        const { assert!(WORD < 8) }
        self.0[WORD].set(word);
    }

    /// What the slot holds now.
    fn load(&self) -> Record {
        Record::from_words(core::array::from_fn(|word| self.0[word].get()))
    }
}

/// Copies the records from `tail` on, word by word, while the producer may be storing to their slots:
/// what it stored to meanwhile is for the caller to find out.
pub(crate) fn copy(slots: &[Slot], tail: u64, into: &mut [Record]) {
    let mask = slots.len().wrapping_sub(1);
    for (at, record) in (tail..).zip(into) {
        if let Some(slot) = slots.get(at as usize & mask) {
            *record = slot.load();
        }
    }
}

/// The published records from `tail` up to `head` (at most one ring apart), as one or two slices.
///
/// # Safety
///
/// The caller is the ring's only consumer, `head` was observed from the producer, and `tail` is not
/// published beyond its old value while the slices live: then no slot of them is stored to.
pub(crate) unsafe fn published(slots: &[Slot], tail: u64, head: u64) -> [&[Record]; 2] {
    let capacity = slots.len();
    let count = usize::try_from(head.wrapping_sub(tail)).unwrap_or(capacity).min(capacity);
    let start = tail as usize & capacity.wrapping_sub(1);
    let (behind, ahead) = slots.split_at_checked(start).unwrap_or((&[], slots));
    let first = ahead.get(..count).unwrap_or(ahead);
    let second = behind.get(..count.saturating_sub(first.len())).unwrap_or_default();
    // SAFETY: both are published slots, which the caller promises not to give back meanwhile.
    unsafe { [as_records(first), as_records(second)] }
}

/// # Safety
///
/// No slot is stored to while the slice lives.
unsafe fn as_records(slots: &[Slot]) -> &[Record] {
    // SAFETY: a slot is 64 initialised bytes, as a record is (asserted above); a record has
    // alignment 1; the caller promises that nothing stores to them.
    unsafe { core::slice::from_raw_parts(slots.as_ptr().cast(), slots.len()) }
}
