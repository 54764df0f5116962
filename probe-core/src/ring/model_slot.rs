//! A slot as the models see it: every word is an object of the checker, so it has few, and it is read
//! as plain memory through a copy.

use tmrun_formats::wire::Record;
use tmrun_formats::{NameId, Ticks};

use crate::sync::SlotWord;

/// The words of a record that are kept: the one with its sequence, and of its payload what a Scalar
/// and a Gap have. What can be torn in eight can be torn in these.
const KEPT: [usize; 5] = [2, 3, 5, 6, 7];

/// One slot.
pub(crate) struct Slot([SlotWord; KEPT.len()]);

impl Slot {
    pub(crate) fn new() -> Self {
        Self(KEPT.map(|_| SlotWord::new()))
    }

    /// The header's first word is not kept.
    pub(crate) fn set_ticks(&self, _: Ticks) {}

    /// Nor is the second.
    pub(crate) fn set_name(&self, _: NameId, _: u32) {}

    /// Stores the header's third word.
    pub(crate) fn set_kind(&self, sequence: u32, kind: u32) {
        self.store(2, u64::from(sequence) | u64::from(kind) << 32);
    }

    /// Stores the payload.
    pub(crate) fn set_payload(&self, words: [u64; 5]) {
        (3..).zip(words).for_each(|(at, word)| self.store(at, word));
    }

    /// Stores one word of the payload.
    pub(crate) fn set<const WORD: usize>(&self, word: u64) {
        self.store(3 + WORD, word);
    }

    fn store(&self, at: usize, word: u64) {
        let kept = self.0.iter().zip(KEPT).filter(|(_, kept)| *kept == at);
        kept.for_each(|(place, _)| place.set(word));
    }

    /// What the slot holds now.
    pub(super) fn load(&self) -> Record {
        self.record(SlotWord::get)
    }

    fn record(&self, get: impl Fn(&SlotWord) -> u64) -> Record {
        let mut words = [0; 8];
        self.0.iter().zip(KEPT).for_each(|(word, at)| words[at] = get(word));
        Record::from_words(words)
    }
}

/// The slots as records, read as plain memory is: the checker holds that against every store to them.
/// (The copy is never freed; there are few.)
///
/// # Safety
///
/// No slot is stored to while the slice lives.
pub(super) unsafe fn as_records(slots: &[Slot]) -> &[Record] {
    // SAFETY: the caller promises that nothing stores to them.
    let plain = |slot: &Slot| slot.record(|word| unsafe { word.get_plain() });
    slots.iter().map(plain).collect::<Vec<_>>().leak()
}
