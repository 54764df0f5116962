//! What a lane shows of itself in a rings file.

use super::word;
use crate::{NameId, SpanId, Ticks};

/// A lane's block as it was found. The places are those of docs/FORMAT.md, "Lane block".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneImage {
    /// Records before this position are stored.
    pub published: u64,
    /// Of rings that keep the newest: slots of positions before it may have been stored to.
    pub reserved: u64,
    /// Position of the first record of this recording.
    pub first: u64,
    /// Records and groups that had been dropped when the recording began.
    pub base: (u64, u64),
    /// Records and groups that were dropped since the probe began.
    pub dropped: (u64, u64),
    /// First and last moment of the drops that no gap record tells of yet.
    pub drops_at: (Ticks, Ticks),
    /// What they were evidence of.
    pub drop_planes: u64,
    /// How often the lane was claimed.
    pub claims: u64,
    /// Positions that were left out of the recording last: from the first up to the second.
    pub left_out: (u64, u64),
    /// Facts that lost their end, since the recorder's memory was new and before this file began.
    pub truncated: (u64, u64),
    /// The same of spans that ended out of order.
    pub out_of_order: (u64, u64),
    /// The most records that have waited in the ring, as the recorder saw it.
    pub high_water: u64,
    claim: [ClaimImage; Self::CLAIM_COUNT],
    open: [OpenImage; Self::OPEN_COUNT],
}

/// A claim of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimImage {
    /// Position of the claimer's first record.
    pub sequence: u64,
    /// What the claimer is called.
    pub name: NameId,
    /// The claiming thread's id, 0 when unknown.
    pub thread: u64,
}

/// An entry of the stack of open spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenImage {
    /// Its id, none while nothing is open here.
    pub id: SpanId,
    /// When it began.
    pub start: Ticks,
    /// Its name.
    pub name: NameId,
    /// It has ended while one above it is open.
    pub ended: bool,
    /// Of a part of a detached span: that span, and the lane that gave its id.
    pub origin: Option<(SpanId, crate::LaneId)>,
}

impl LaneImage {
    /// Offset of the published position.
    pub const PUBLISHED: usize = 0;
    /// Offset of the reserved position.
    pub const RESERVED: usize = 128;
    /// Offset of the recording's first position.
    pub const FIRST: usize = 136;
    /// Offset of the base: records, groups.
    pub const BASE: usize = 144;
    /// Offset of the drops: records, groups, first moment, last moment, planes.
    pub const DROPPED: usize = 160;
    /// Offset of the number of claims.
    pub const CLAIMS: usize = 200;
    /// Offset of the last claims: sequence, name, thread; the i-th claim at i mod 16.
    pub const CLAIM: usize = 208;
    /// Bytes of a claim.
    pub const CLAIM_SIZE: usize = 24;
    /// How many claims are kept.
    pub const CLAIM_COUNT: usize = 16;
    /// Offset of the positions that were left out: from, to.
    pub const LEFT_OUT: usize = 592;
    /// Offset of the facts that lost their end: now, and when the file began.
    pub const TRUNCATED: usize = 608;
    /// Offset of the spans that ended out of order: now, and when the file began.
    pub const OUT_OF_ORDER: usize = 624;
    /// Offset of the stack of open spans: id, start, name, how many are around it; the first entry and
    /// the last are none.
    pub const OPEN: usize = 640;
    /// Bytes of an entry.
    pub const OPEN_SIZE: usize = 32;
    /// How many entries there are.
    pub const OPEN_COUNT: usize = 128;
    /// Offset of the ids of the detached spans of which entries are parts.
    pub const ORIGIN: usize = 4736;
    /// Offset of the most records that have waited.
    pub const HIGH_WATER: usize = 5760;
    /// Bytes of the block.
    pub const SIZE: usize = 5888;
    /// In an open span's name: it has ended while one above it is open.
    pub const ENDED: u64 = 1 << 32;
    /// In an open span's name: it is a part of a detached span, whose lane is in the top 16 bits.
    pub const SEGMENT: u64 = 1 << 33;

    /// Reads a block; what is missing is zero.
    pub fn read(block: &[u8]) -> Self {
        let at = |offset| word(block, offset);
        Self {
            published: at(Self::PUBLISHED),
            reserved: at(Self::RESERVED),
            first: at(Self::FIRST),
            base: (at(Self::BASE), at(Self::BASE + 8)),
            dropped: (at(Self::DROPPED), at(Self::DROPPED + 8)),
            drops_at: (Ticks(at(Self::DROPPED + 16)), Ticks(at(Self::DROPPED + 24))),
            drop_planes: at(Self::DROPPED + 32),
            claims: at(Self::CLAIMS),
            left_out: (at(Self::LEFT_OUT), at(Self::LEFT_OUT + 8)),
            truncated: (at(Self::TRUNCATED), at(Self::TRUNCATED + 8)),
            out_of_order: (at(Self::OUT_OF_ORDER), at(Self::OUT_OF_ORDER + 8)),
            high_water: at(Self::HIGH_WATER),
            claim: core::array::from_fn(|i| {
                let at = |field| word(block, Self::CLAIM + i * Self::CLAIM_SIZE + field);
                ClaimImage { sequence: at(0), name: NameId(at(8) as u32), thread: at(16) }
            }),
            open: core::array::from_fn(|i| {
                let at = |field| word(block, Self::OPEN + i * Self::OPEN_SIZE + field);
                let name = at(16);
                let origin = word(block, Self::ORIGIN + i * 8);
                let origin = (SpanId(origin), crate::LaneId((name >> 48) as u16));
                OpenImage {
                    id: SpanId(at(0)),
                    start: Ticks(at(8)),
                    name: NameId(name as u32),
                    ended: name & Self::ENDED != 0,
                    origin: (name & Self::SEGMENT != 0).then_some(origin),
                }
            }),
        }
    }

    /// The claims that are kept, with their numbers, oldest first.
    pub fn last_claims(&self) -> impl Iterator<Item = (u64, ClaimImage)> + '_ {
        let oldest = self.claims.saturating_sub(Self::CLAIM_COUNT as u64);
        (oldest..self.claims).filter_map(|number| {
            let at = usize::try_from(number % Self::CLAIM_COUNT as u64).ok()?;
            Some((number, *self.claim.get(at)?))
        })
    }

    /// The spans that are open, outermost first: how many are around each, its parent (a span of
    /// this lane, unless it has an origin), and itself. The last of them may be one whose record was
    /// just published.
    pub fn open_spans(&self) -> impl Iterator<Item = (u16, SpanId, OpenImage)> + '_ {
        let spans = self.open.get(1..Self::OPEN_COUNT - 1).unwrap_or_default();
        let open = (0..).zip(spans).take_while(|(_, open)| open.id != SpanId::NONE);
        open.filter(|(_, open)| !open.ended).filter_map(|(around, open)| {
            Some((around, self.open.get(usize::from(around))?.id, *open))
        })
    }
}
