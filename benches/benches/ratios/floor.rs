//! The least that could be done instead: a record's words into a buffer that is no ring. Nothing is
//! asked, nothing is numbered, nothing is ever full, and nobody can read it meanwhile.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tmrun_formats::wire::{Record, RecordHeader, Tensor, flags};
use tmrun_formats::{Level, NameId};
use tmrun_probe_core::{AutoClock, Clock, Range, Stats, TensorFact};

/// As many as the ring beside it has, so that as much of them is in the caches.
const SLOTS: usize = 1 << 14;

#[repr(align(64))]
struct Slot([AtomicU64; 8]);

// Used: else nobody reads it, and nothing is stored.
#[used]
static BUFFER: [Slot; SLOTS] = [const { Slot([const { AtomicU64::new(0) }; 8]) }; SLOTS];

/// Eight stores of their own, as a ring's are.
#[inline(always)]
fn store(slot: u64, words: [u64; 8]) {
    let slot = &BUFFER[slot as usize % SLOTS];
    for (cell, word) in slot.0.iter().zip(words) {
        cell.store(word, Ordering::Relaxed);
    }
}

/// A span: two clock reads and eight stores.
#[inline(always)]
pub fn span(i: u64) {
    let start = AutoClock::quick_ticks();
    black_box(i);
    let end = AutoClock::quick_ticks();
    store(i, [start.0, 1, i, end.0, 0, 0, 0, 0]);
}

/// A tensor, its statistics and their range: one clock read, and the three records of the same facts.
#[inline(always)]
pub fn stats(i: u64, fact: &TensorFact<'_>, stats: &Stats, range: &Range) {
    let mut header = RecordHeader {
        ticks: AutoClock::quick_ticks(),
        name: NameId(2),
        seq: i as u32,
        ..RecordHeader::of::<Tensor>(Level::NUMERICS)
    };
    header.flags |= fact.contiguous.map_or(0, |contiguous| {
        flags::TENSOR_LAYOUT | if contiguous { flags::TENSOR_CONTIGUOUS } else { 0 }
    });
    header.flags |= if fact.requires_grad { flags::TENSOR_REQUIRES_GRAD } else { 0 };
    let tensor = Tensor {
        tensor: fact.tensor,
        storage: fact.storage,
        rank: fact.shape.len() as u8,
        dtype: fact.dtype,
        device: fact.device,
        category: fact.category,
        dims: std::array::from_fn(|i| fact.shape.get(i).map_or(0, |&dim| dim as u32)),
    };
    let continued = RecordHeader { flags: flags::CONTINUES, ..header };
    store(3 * i, Record::new(header, &tensor).words());
    store(3 * i + 1, Record::new(continued, stats).words());
    store(3 * i + 2, Record::new(continued, range).words());
}
