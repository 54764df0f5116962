//! Records that found no lane, in a rings file.

use super::{half, word};
use crate::{Planes, Ticks};

/// What found no lane, and what of it no Gap record tells of yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedImage {
    /// Records since the recorder's memory was new. The counters are of 32 bits, and wrap.
    pub records: u32,
    /// Groups.
    pub groups: u32,
    /// What those that no Gap record tells of were evidence of.
    pub planes: Planes,
    /// Records and groups when the recording began.
    pub base: (u32, u32),
    /// Those that no Gap record tells of came behind this moment.
    pub since: Ticks,
    /// When the recorder looked last.
    pub looked: Ticks,
}

impl MissedImage {
    /// Bytes of it.
    pub const SIZE: u64 = 40;
    /// Offsets of records, groups, planes, and the base of the first two: 4 bytes each.
    pub const COUNTS: usize = 0;
    /// Offset of the two moments: 8 bytes each.
    pub const SINCE: usize = 24;

    /// Reads it; what is missing is zero.
    pub fn read(bytes: &[u8]) -> Self {
        let count = |number: usize| half(bytes, Self::COUNTS + 4 * number);
        Self {
            records: count(0),
            groups: count(1),
            planes: Planes(count(2)),
            base: (count(3), count(4)),
            since: Ticks(word(bytes, Self::SINCE)),
            looked: Ticks(word(bytes, Self::SINCE + 8)),
        }
    }
}
