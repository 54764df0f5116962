//! The mapped rings of a flight recorder: the image of a probe's memory, in a file that outlives the
//! process.
//!
//! | piece | type |
//! | --- | --- |
//! | the first page: sizes, and where everything is | [`RingsHeader`] |
//! | what a lane shows: how far it came, drops, claims, open spans | [`LaneImage`] |
//! | an entry of the name table | [`NameImage`] |
//! | readings of the clock, kept twice | [`ClockCell`] |
//! | changes of levels and foci that no record tells of yet | [`WaitingChanges`] |
//! | records that found no lane | [`MissedImage`] |
//!
//! Nothing in such a file is trusted: its writer may have died at any instruction, and another
//! process may have written to it. A slot counts only if its sequence is that of its position.

mod cell;
mod change;
mod header;
mod lane;
mod missed;
mod name;

pub use cell::ClockCell;
pub use change::{ChangeCell, WaitingChanges};
pub use header::{RINGS_MAGIC, RINGS_VERSION, RingsHeader, RunArea};
pub use lane::{ClaimImage, LaneImage, OpenImage};
pub use missed::MissedImage;
pub use name::NameImage;

/// Eight little-endian bytes at `offset`; 0 where there are none.
fn word(bytes: &[u8], offset: usize) -> u64 {
    let bytes = bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Four little-endian bytes at `offset`; 0 where there are none.
fn half(bytes: &[u8], offset: usize) -> u32 {
    let bytes = bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
