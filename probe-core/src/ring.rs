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

#[cfg_attr(all(loom, test), path = "ring/model_slot.rs")]
mod slot;

use tmrun_formats::wire::Record;

use crate::lane::LaneMirror;

pub(crate) use slot::Slot;
use slot::as_records;

/// A lane's memory: what it shows, and its slots.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'p> {
    pub(crate) mirror: &'p LaneMirror,
    pub(crate) slots: &'p [Slot],
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
    // SAFETY: both are published slots, which the caller promises not to give back meanwhile, so that
    // nothing in this process stores to them. Where they are mapped to a file another process could,
    // as with every map of a file; no type rules that out. Only the same user can: the file is made
    // with mode 0600, in a folder that no other user may write to. Nothing rests on what it stores:
    // where the slices are and how long is bounded by words that are never mapped; every 64 bytes are
    // a `Record`; and what is read of one is compared, summed up or written out, as of a hostile
    // file, but is no address, index or length. Bytes that were others at the second reading are a
    // chunk that its CRC refuses: evidence is spoiled, and nothing else (`tests/scribble.rs`).
    unsafe { [as_records(first), as_records(second)] }
}
