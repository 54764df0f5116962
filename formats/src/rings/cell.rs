//! Readings of the clock in a rings file.

use super::{half, word};
use crate::wire::CalibrationV1;
use crate::{HostNs, Ticks};

/// A cell that holds one reading of the recording clock and the host's. There are three: the first
/// reading, and two that the later ones take in turn, so that one is always whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCell {
    /// How many readings were before it, plus one.
    pub number: u64,
    /// The reading.
    pub sample: CalibrationV1,
}

impl ClockCell {
    /// Bytes of a cell.
    pub const SIZE: u64 = 64;
    /// How many cells there are.
    pub const COUNT: u64 = 3;

    /// Which cell holds the reading of this number.
    pub const fn place(number: u64) -> u64 {
        if number <= 1 { 0 } else { 1 + number % 2 }
    }

    /// Its bytes: number, ticks, nanoseconds, uncertainty, set aside (8 each), CRC-32 of these.
    pub fn encode(&self) -> [u8; Self::SIZE as usize] {
        let mut bytes = [0; Self::SIZE as usize];
        let sample = &self.sample;
        let words = [
            self.number,
            sample.ticks.0,
            sample.ns.0,
            sample.uncertainty,
            u64::from(sample.set_aside),
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[..40]);
        bytes[40..44].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The readings that are whole, in order.
    pub fn read(cells: &[u8]) -> impl Iterator<Item = Self> {
        let mut found = [None; Self::COUNT as usize];
        for (place, cell) in found.iter_mut().zip(cells.chunks_exact(Self::SIZE as usize)) {
            let whole = crc32fast::hash(cell.get(..40).unwrap_or_default()) == half(cell, 40);
            *place = Some(Self {
                number: word(cell, 0),
                sample: CalibrationV1 {
                    ticks: Ticks(word(cell, 8)),
                    ns: HostNs(word(cell, 16)),
                    uncertainty: word(cell, 24),
                    set_aside: word(cell, 32) != 0,
                },
            })
            .filter(|cell| whole && cell.number != 0);
        }
        found.sort_unstable_by_key(|cell| cell.map(|cell| cell.number));
        found.into_iter().flatten()
    }
}
