//! Changes of levels and foci in a rings file.

use super::word;
use crate::wire::LevelChange;
use crate::{Level, LevelSource, NameId, Ticks};

/// A change that may be in no record yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeCell {
    /// How many changes were before it.
    pub number: u64,
    /// The focus; none for the level of every node.
    pub focus: NameId,
    /// The change. Until it was made, `armed` is 0.
    pub change: LevelChange,
}

impl ChangeCell {
    /// Bytes of a cell.
    pub const SIZE: usize = 32;
    /// How many cells there are: change n is in cell n mod 64.
    pub const COUNT: usize = 64;
    /// Which of a cell's words is `armed`. It is stored last, and not under the CRC.
    pub const ARMED: usize = 1;

    /// Its words: `asked`; `armed`; the focus, with the old level, the new one and who asked in bytes 4
    /// to 6; the CRC-32 of the number, the first word and the third, 8 bytes each.
    pub fn words(&self) -> [u64; 4] {
        let LevelChange { asked, armed, old, new, source } = self.change;
        let [a, b, c, d] = self.focus.0.to_le_bytes();
        let what = u64::from_le_bytes([a, b, c, d, old.0, new.0, source.0, 0]);
        [asked.0, armed.0, what, Self::check(self.number, asked.0, what)]
    }

    fn check(number: u64, asked: u64, what: u64) -> u64 {
        let words = [number, asked, what].map(u64::to_le_bytes);
        crc32fast::hash(words.as_flattened()).into()
    }

    /// The change of this number, if the cell holds that one.
    fn read(cell: &[u8], number: u64) -> Option<Self> {
        let (asked, what) = (word(cell, 0), word(cell, 16));
        let [a, b, c, d, old, new, source, _] = what.to_le_bytes();
        let change = LevelChange {
            asked: Ticks(asked),
            armed: Ticks(word(cell, 8 * Self::ARMED)),
            old: Level(old),
            new: Level(new),
            source: LevelSource(source),
        };
        let is_whole = Self::check(number, asked, what) == word(cell, 24);
        let is_change = is_whole && old.max(new) <= Level::MAX.0;
        is_change.then_some(Self {
            number,
            focus: NameId(u32::from_le_bytes([a, b, c, d])),
            change,
        })
    }
}

/// The changes that were not yet handed to the recorder's lane: how many changes were, how many there
/// were in all (8 bytes each), and the cells.
#[derive(Debug, Clone, Copy)]
pub struct WaitingChanges<'f> {
    cells: &'f [u8],
    taken: u64,
    stored: u64,
}

impl<'f> WaitingChanges<'f> {
    /// Bytes of all.
    pub const SIZE: u64 = (Self::CELLS + ChangeCell::COUNT * ChangeCell::SIZE) as u64;
    /// Offset of how many were handed on.
    pub const TAKEN: usize = 0;
    /// Offset of how many there were.
    pub const STORED: usize = 8;
    /// Offset of the cells.
    pub const CELLS: usize = 16;
    /// More than may ever wait: a count beyond it was written by somebody else.
    const MOST: u64 = 1 << 32;

    /// What waits; `None` when the two counts cannot be those of a recorder.
    pub fn read(area: &'f [u8]) -> Option<Self> {
        let (taken, stored) = (word(area, Self::TAKEN), word(area, Self::STORED));
        let cells = area.get(Self::CELLS..)?;
        stored.checked_sub(taken).filter(|waiting| *waiting <= Self::MOST)?;
        Some(Self { cells, taken, stored })
    }

    /// Changes that found no cell, because so many waited.
    pub const fn lost(&self) -> u64 {
        self.stored.saturating_sub(self.taken).saturating_sub(ChangeCell::COUNT as u64)
    }

    /// The others, in order; `None` where the cell does not hold the change that should be there.
    pub fn kept(&self) -> impl Iterator<Item = Option<ChangeCell>> + use<'f> {
        let cells = self.cells;
        let end = self.stored.min(self.taken.saturating_add(ChangeCell::COUNT as u64));
        (self.taken..end).map(move |number| {
            let place = usize::try_from(number % ChangeCell::COUNT as u64).ok()?;
            let from = place.checked_mul(ChangeCell::SIZE)?;
            ChangeCell::read(cells.get(from..from.checked_add(ChangeCell::SIZE)?)?, number)
        })
    }
}
