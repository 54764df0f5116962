//! A slot as the models see it: every word is an object of the checker, so it has few, and it is read
//! as plain memory through a copy.

use tmrun_formats::wire::Record;

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

    /// Stores a record, word by word.
    pub(crate) fn store(&self, words: [u64; 8]) {
        self.0.iter().zip(KEPT).for_each(|(word, at)| word.set(words[at]));
    }

    /// Stores one word of a record.
    pub(crate) fn set<const WORD: usize>(&self, word: u64) {
        let kept = self.0.iter().zip(KEPT).filter(|(_, at)| *at == WORD);
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
