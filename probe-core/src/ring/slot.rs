//! A slot of a ring.

use tmrun_formats::wire::Record;

use crate::sync::SlotWord;

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
    pub(super) fn load(&self) -> Record {
        Record::from_words(core::array::from_fn(|word| self.0[word].get()))
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
