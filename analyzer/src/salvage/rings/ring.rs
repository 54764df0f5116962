//! One lane's ring: which of its positions hold their record.

use std::io;

use tmrun_formats::rings::LaneImage;
use tmrun_formats::wire::{Frame, GROUP_MAX, HoleV1, Place, Record};
use tmrun_formats::{GapReason, LaneId, Ticks};

use super::Rings;
use super::counters::Counters;
use super::tail::Tail;

/// Records of a chunk, a group more or less.
const CHUNK: usize = 4096;

pub(super) struct Ring<'r> {
    lane: LaneId,
    image: LaneImage,
    slots: &'r [Record],
    overwrite: bool,
    /// The first position that is not in the drained recording.
    next: u64,
    /// The first that the ring may still hold.
    oldest: u64,
}

impl<'r> Ring<'r> {
    /// `next` is the first position that was not drained, when any was.
    pub(super) fn of(rings: &Rings<'r>, lane: LaneId, next: Option<u64>) -> Self {
        let header = &rings.header;
        let image = header.block(rings.bytes, lane);
        let (slots, _) = Record::slice(header.ring(rings.bytes, lane));
        let overwrite = header.overwrite != 0 && lane != LaneId::RECORDER;
        let next = next.unwrap_or(image.first);
        let stored_to = if overwrite { image.reserved } else { image.published };
        let oldest = next.max(stored_to.saturating_sub(slots.len() as u64));
        Self { lane, image, slots, overwrite, next, oldest }.held_against_its_slots()
    }

    /// A lane that says that it came somewhere of which no slot knows says nothing: it was written
    /// to by somebody else.
    fn held_against_its_slots(mut self) -> Self {
        let holds = self.window().any(|position| self.record(position).is_some());
        if !holds && self.image.published > self.next {
            self.image.published = self.next;
            self.oldest = self.next;
        }
        self
    }

    pub(super) const fn image(&self) -> &LaneImage {
        &self.image
    }

    /// The positions that the ring may hold and the drained recording does not.
    fn window(&self) -> core::ops::Range<u64> {
        let end = self.image.published.max(self.oldest);
        let slots = self.slots.len() as u64;
        self.oldest.max(end.saturating_sub(slots))..end
    }

    /// The record of a position, if its slot holds that one.
    fn record(&self, position: u64) -> Option<&'r Record> {
        let slots = self.slots.len() as u64;
        let at = usize::try_from(position.checked_rem(slots)?).ok()?;
        let record = self.slots.get(at)?;
        let header = record.header();
        (header.seq == position as u32 && header.kind != 0).then_some(record)
    }

    /// Slots that were being stored to when the process died.
    fn torn(&self) -> u64 {
        let torn = self.image.reserved.saturating_sub(self.image.published);
        // A group at most; more says somebody else.
        if self.overwrite && torn <= GROUP_MAX as u64 { torn } else { 0 }
    }

    /// The position behind all that the lane had.
    pub(super) fn end(&self) -> u64 {
        self.window().end.max(self.next).saturating_add(self.torn())
    }

    /// Records and groups that were dropped in this recording.
    pub(super) fn dropped(&self) -> (u64, u64) {
        let (dropped, base) = (self.image.dropped, self.image.base);
        (dropped.0.saturating_sub(base.0), dropped.1.saturating_sub(base.1))
    }

    /// The greatest moment that one of its records speaks of.
    pub(super) fn greatest(&self) -> Ticks {
        let records = self.window().filter_map(|position| self.record(position));
        records.map(|record| record.edges().1).max().unwrap_or_default()
    }

    /// Writes the records, and what is missing between them.
    pub(super) fn write(&self, counters: &mut Counters, tail: &mut Tail<'_>) -> io::Result<()> {
        let mut written = self.next;
        let mut run: Vec<Record> = Vec::new();
        let mut run_from = self.next;
        for position in self.window() {
            let record = self.record(position);
            // A continuation whose head is gone belongs to nothing.
            let follows = run_from.saturating_add(run.len() as u64) == position && !run.is_empty();
            let kept = record.filter(|record| follows || !record.continues());
            match kept {
                Some(record) => {
                    if !follows || (run.len() >= CHUNK && !record.continues()) {
                        written = self.flush(written, run_from, &mut run, counters, tail)?;
                        run_from = position;
                    }
                    run.push(*record);
                }
                None => {
                    written = self.flush(written, run_from, &mut run, counters, tail)?;
                    run_from = position.saturating_add(1);
                }
            }
        }
        written = self.flush(written, run_from, &mut run, counters, tail)?;
        let end = self.end();
        self.hole(written, end.saturating_sub(self.torn()), tail)?;
        self.declare(end.saturating_sub(self.torn()), self.torn(), GapReason::TORN, tail)
    }

    /// Writes a run of records, and declares the hole before it.
    fn flush(
        &self,
        written: u64,
        from: u64,
        run: &mut Vec<Record>,
        counters: &mut Counters,
        tail: &mut Tail<'_>,
    ) -> io::Result<u64> {
        if run.is_empty() {
            return Ok(written);
        }
        self.hole(written, from, tail)?;
        let place = Place { lane: self.lane, sequence: from, span: self.image.last_span() };
        tail.records(place, run)?;
        run.iter().for_each(|record| counters.take(record));
        let end = from.saturating_add(run.len() as u64);
        run.clear();
        Ok(end)
    }

    /// Positions that neither the drained recording nor the ring holds.
    fn hole(&self, from: u64, to: u64, tail: &mut Tail<'_>) -> io::Result<()> {
        let reason = match self.overwrite {
            true => GapReason::LAPPED,
            // They were taken out of the ring, and are not in the file.
            false => GapReason::SINK_FAILED,
        };
        self.declare(from, to.saturating_sub(from), reason, tail)
    }

    fn declare(
        &self,
        sequence: u64,
        records: u64,
        reason: GapReason,
        tail: &mut Tail<'_>,
    ) -> io::Result<()> {
        let hole = HoleV1 { lane: self.lane, sequence, records, reason };
        tail.frames((records > 0).then_some(Frame::Hole(hole)))
    }
}
