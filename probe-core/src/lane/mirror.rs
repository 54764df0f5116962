//! What a lane shows of itself: the part of it that a mapped file holds, so that it outlives the
//! process.
//!
//! A producer writes here and never reads back what it works with (head, depth, limits): a page that
//! another process scribbles on can spoil evidence, and nothing else. What is read back is what
//! records say of open spans (id, name, parent, beginning, depth), and nothing more.
//!
//! The layout is that of docs/FORMAT.md, "Lane block"; the assertions below hold the two together.

use super::claim::REMEMBERED;
use super::open::{ENTRIES, OpenSpan};
use crate::sync::{Position, Word, array, const_fn, words};

/// A lane, as the drain and a mapped file see it.
#[repr(C, align(128))]
pub(crate) struct LaneMirror {
    /// Records before it are stored.
    pub(super) published: Position,
    /// Where the rings keep the newest: slots before it may be stored to.
    pub(super) reserved: Word,
    /// Position of the first record of this recording.
    pub(super) first: Word,
    /// The counters of drops when this recording began.
    pub(super) base_records: Word,
    pub(super) base_groups: Word,
    /// Drops since ever, and what is pending of them.
    pub(super) dropped_records: Word,
    pub(super) dropped_groups: Word,
    pub(super) first_drop: Word,
    pub(super) last_drop: Word,
    pub(super) planes: Word,
    /// How many claims there were, and the last of them: the i-th at i mod 16.
    pub(super) claims: Word,
    pub(super) claim: [ClaimMirror; REMEMBERED],
    /// Positions that the drain left out last: from the first up to the second.
    pub(super) left_out_from: Word,
    pub(super) left_out_to: Word,
    /// Facts that lost their end since ever, and when the file began; spans that ended out of order.
    pub(super) truncated: Word,
    pub(super) base_truncated: Word,
    pub(super) out_of_order: Word,
    pub(super) base_out_of_order: Word,
    /// Entries do not cross cache lines.
    pub(super) open: [OpenSpan; ENTRIES],
    /// Of each entry that is a part of a detached span: the id of that span.
    pub(super) origin: [Word; ENTRIES],
    /// The most records that have waited. The drain stores it, and nobody else to its line.
    pub(super) high_water: Word,
}

/// A claim.
#[repr(C)]
pub(super) struct ClaimMirror {
    pub(super) sequence: Word,
    pub(super) name: Word,
    pub(super) thread: Word,
}

impl LaneMirror {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                published: Position::new(0),
                reserved: Word::new(0),
                first: Word::new(0),
                base_records: Word::new(0),
                base_groups: Word::new(0),
                dropped_records: Word::new(0),
                dropped_groups: Word::new(0),
                first_drop: Word::new(0),
                last_drop: Word::new(0),
                planes: Word::new(0),
                claims: Word::new(0),
                claim: array![words!(ClaimMirror { sequence, name, thread }); REMEMBERED],
                left_out_from: Word::new(0),
                left_out_to: Word::new(0),
                truncated: Word::new(0),
                base_truncated: Word::new(0),
                out_of_order: Word::new(0),
                base_out_of_order: Word::new(0),
                open: array![OpenSpan::new(); ENTRIES],
                origin: array![Word::new(0); ENTRIES],
                high_water: Word::new(0),
            }
        }
    }
}

// Rings are mapped on 64-bit targets only; a model's atomics have a layout of their own.
#[cfg(all(target_pointer_width = "64", not(all(loom, test))))]
const _: () = {
    use core::mem::offset_of;
    use tmrun_formats::rings::LaneImage;

    assert!(offset_of!(LaneMirror, published) == LaneImage::PUBLISHED);
    assert!(offset_of!(LaneMirror, reserved) == LaneImage::RESERVED);
    assert!(offset_of!(LaneMirror, first) == LaneImage::FIRST);
    assert!(offset_of!(LaneMirror, base_records) == LaneImage::BASE);
    assert!(offset_of!(LaneMirror, dropped_records) == LaneImage::DROPPED);
    assert!(offset_of!(LaneMirror, claims) == LaneImage::CLAIMS);
    assert!(offset_of!(LaneMirror, claim) == LaneImage::CLAIM);
    assert!(offset_of!(LaneMirror, left_out_from) == LaneImage::LEFT_OUT);
    assert!(offset_of!(LaneMirror, truncated) == LaneImage::TRUNCATED);
    assert!(offset_of!(LaneMirror, out_of_order) == LaneImage::OUT_OF_ORDER);
    assert!(offset_of!(LaneMirror, high_water) == LaneImage::HIGH_WATER);
    assert!(offset_of!(LaneMirror, open) == LaneImage::OPEN);
    assert!(offset_of!(LaneMirror, origin) == LaneImage::ORIGIN);
    assert!(size_of::<ClaimMirror>() == LaneImage::CLAIM_SIZE);
    assert!(size_of::<OpenSpan>() == LaneImage::OPEN_SIZE);
    assert!(REMEMBERED == LaneImage::CLAIM_COUNT && ENTRIES == LaneImage::OPEN_COUNT);
    assert!(size_of::<LaneMirror>() == LaneImage::SIZE);
};
