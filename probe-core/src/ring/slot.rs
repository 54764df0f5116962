//! A slot of a ring.

use tmrun_formats::wire::Record;
use tmrun_formats::{NameId, Ticks};

use crate::sync::{SlotHalf, SlotWord};

/// One slot: the words of a record, each of which is always stored and loaded as one.
#[repr(C, align(64))]
pub(crate) struct Slot {
    ticks: SlotWord,
    name: SlotHalf,
    span: SlotHalf,
    sequence: SlotHalf,
    kind: SlotHalf,
    payload: [SlotWord; 5],
}

const _: () = assert!(size_of::<Slot>() == size_of::<Record>());

// A record is stored word by word, as the words are at hand: building it in memory first and copying
// it costs more than everything else here together (the copy reads 16 bytes just written as two
// times 8).
impl Slot {
    pub(crate) const fn new() -> Self {
        Self {
            ticks: SlotWord::new(),
            name: SlotHalf::new(),
            span: SlotHalf::new(),
            sequence: SlotHalf::new(),
            kind: SlotHalf::new(),
            payload: [const { SlotWord::new() }; 5],
        }
    }

    /// Stores the header's first word.
    #[inline(always)]
    pub(crate) fn set_ticks(&self, ticks: Ticks) {
        self.ticks.set(ticks.0);
    }

    /// Stores the header's second word.
    #[inline(always)]
    pub(crate) fn set_name(&self, name: NameId, span: u32) {
        self.name.set(name.0);
        self.span.set(span);
    }

    /// Stores the header's third word: the sequence, and the kind with level and flags.
    #[inline(always)]
    pub(crate) fn set_kind(&self, sequence: u32, kind: u32) {
        self.sequence.set(sequence);
        self.kind.set(kind);
    }

    /// Stores the payload.
    #[inline(always)]
    pub(crate) fn set_payload(&self, [a, b, c, d, e]: [u64; 5]) {
        self.set::<0>(a);
        self.set::<1>(b);
        self.set::<2>(c);
        self.set::<3>(d);
        self.set::<4>(e);
    }

    /// Stores one word of the payload.
    #[inline(always)]
    pub(crate) fn set<const WORD: usize>(&self, word: u64) {
        const { assert!(WORD < 5) }
        self.payload[WORD].set(word);
    }

    /// What the slot holds now.
    pub(super) fn load(&self) -> Record {
        let two =
            |low: &SlotHalf, high: &SlotHalf| u64::from(low.get()) | u64::from(high.get()) << 32;
        let (name, kind) = (two(&self.name, &self.span), two(&self.sequence, &self.kind));
        let [a, b, c, d, e] = self.payload.each_ref().map(SlotWord::get);
        Record::from_words([self.ticks.get(), name, kind, a, b, c, d, e])
    }
}

/// # Safety
///
/// No slot is stored to while the slice lives.
pub(super) unsafe fn as_records(slots: &[Slot]) -> &[Record] {
    // SAFETY: a slot is 64 initialised bytes, as a record is (asserted above); a record has
    // alignment 1; the caller promises that nothing stores to them.
    unsafe { core::slice::from_raw_parts(slots.as_ptr().cast(), slots.len()) }
}
