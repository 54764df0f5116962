//! The slots of a lane's ring, and which of them hold the record of a position.

use core::ops::Range;
use std::io;

use tmrun_formats::rings::LaneImage;
use tmrun_formats::wire::{GROUP_MAX, Record};
use tmrun_formats::{GapReason, LaneId};

use super::Rings;

/// Records of a chunk, a group more or less.
const CHUNK: usize = 4096;

#[derive(Clone, Copy)]
pub(super) struct Slots<'r> {
    slots: &'r [Record],
    pub(super) overwrite: bool,
}

/// Positions one behind the other.
pub(super) enum Stretch<'s> {
    /// The ring has their records.
    Held(&'s [Record]),
    /// So many of them it does not have, and why.
    Lost(u64, GapReason),
}

impl<'r> Slots<'r> {
    pub(super) fn of(rings: &Rings<'r>, lane: LaneId) -> Self {
        let (slots, _) = Record::slice(rings.header.ring(rings.bytes, lane));
        let overwrite = rings.header.overwrite != 0 && lane != LaneId::RECORDER;
        Self { slots, overwrite }
    }

    pub(super) const fn count(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The positions that the ring can hold of those before this one.
    pub(super) const fn before(&self, end: u64) -> Range<u64> {
        end.saturating_sub(self.count())..end
    }

    /// The positions of which the slots can be asked though they were drained: the next group may be
    /// being stored to the oldest ones, and its first words are no longer theirs.
    pub(super) fn given_back(&self, image: &LaneImage) -> Range<u64> {
        let in_flight = GROUP_MAX as u64;
        let reserved = image.reserved.min(image.published.saturating_add(in_flight));
        let stored_to = match self.overwrite {
            true => reserved.max(image.published),
            false => image.published.saturating_add(in_flight),
        };
        self.before(stored_to).start..image.published
    }

    fn slot(&self, position: u64) -> Option<&'r Record> {
        let at = usize::try_from(position.checked_rem(self.count())?).ok()?;
        self.slots.get(at)
    }

    /// The record of a position, if its slot holds that one.
    pub(super) fn record(&self, position: u64) -> Option<&'r Record> {
        let record = self.slot(position)?;
        let header = record.header();
        (header.seq == position as u32 && header.kind != 0).then_some(record)
    }

    /// Whether the slot has gone on to a later position: that of a process which still records.
    fn has_gone_on(&self, position: u64) -> bool {
        let Some(header) = self.slot(position).map(Record::header) else { return false };
        let ahead = header.seq.wrapping_sub(position as u32);
        let is_ahead = ahead != 0 && ahead <= u32::MAX / 2;
        let rounds = u64::from(ahead).checked_rem(self.count()) == Some(0);
        self.overwrite && header.kind != 0 && is_ahead && rounds
    }

    /// These positions, of which the ring should hold all, stretch by stretch. A continuation whose
    /// head is not before it belongs to nothing; where the ring overwrites, the heads of the first
    /// ones were.
    pub(super) fn stretches(
        &self,
        positions: Range<u64>,
        mut each: impl FnMut(u64, Stretch<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut held, mut lost) = (Vec::new(), None);
        let mut from = positions.start;
        let mut is_edge = self.overwrite;
        for position in positions.clone() {
            let record = self.record(position);
            let continues = record.is_some_and(Record::continues);
            is_edge &= continues;
            if let Some(record) = record.filter(|_| !continues || !held.is_empty()) {
                if let Some(reason) = lost.take() {
                    each(from, Stretch::Lost(position.saturating_sub(from), reason))?;
                    from = position;
                } else if held.len() >= CHUNK && !continues {
                    each(from, Stretch::Held(&held))?;
                    held.clear();
                    from = position;
                }
                held.push(*record);
                continue;
            }
            let is_lapped = is_edge || self.has_gone_on(position);
            let reason = if is_lapped { GapReason::LAPPED } else { GapReason::CORRUPT };
            if !held.is_empty() {
                each(from, Stretch::Held(&held))?;
                held.clear();
                from = position;
            } else if let Some(other) = lost.filter(|other| *other != reason) {
                each(from, Stretch::Lost(position.saturating_sub(from), other))?;
                from = position;
            }
            lost = Some(reason);
        }
        match lost {
            Some(reason) => each(from, Stretch::Lost(positions.end.saturating_sub(from), reason)),
            None if held.is_empty() => Ok(()),
            None => each(from, Stretch::Held(&held)),
        }
    }
}
