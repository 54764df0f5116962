//! One lane's ring: which of its positions hold their record.

use std::io;

use tmrun_formats::rings::{LaneImage, OpenImage};
use tmrun_formats::wire::{Frame, GROUP_MAX, HoleV1, LaneStartV1, Place, Record, Span};
use tmrun_formats::{GapReason, LaneId, SpanId, Ticks};

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
    /// The position that the drained file takes the lane up at.
    first: u64,
    /// Records and groups that were dropped before that, in this recording.
    dropped_before: (u64, u64),
    /// The first position that is not in the drained recording, and how many were left out from there
    /// on.
    next: u64,
    left_out: u64,
    /// The first that the ring may still hold.
    oldest: u64,
    /// A span id that the lane has given.
    span: SpanId,
}

/// How many records from this position on were left out because nobody asked to keep them.
fn left_out(image: &LaneImage, next: u64) -> u64 {
    let (from, to) = image.left_out;
    if from <= next { to.min(image.published).saturating_sub(next) } else { 0 }
}

impl<'r> Ring<'r> {
    /// `start` is where the drained file takes up a lane of an earlier one, and `next` the first
    /// position that was not drained, when any was; `span` is the greatest id that was.
    pub(super) fn of(
        rings: &Rings<'r>,
        lane: LaneId,
        start: Option<&LaneStartV1>,
        next: Option<u64>,
        span: SpanId,
    ) -> Self {
        let header = &rings.header;
        let image = header.block(rings.bytes, lane);
        let (slots, _) = Record::slice(header.ring(rings.bytes, lane));
        let overwrite = header.overwrite != 0 && lane != LaneId::RECORDER;
        let first = start.map_or(image.first, |start| start.sequence);
        let dropped_before = start.map(|start| (start.dropped_records, start.dropped_groups));
        let dropped_before = dropped_before.unwrap_or_default();
        let next = next.unwrap_or(first);
        let left_out = left_out(&image, next);
        let stored_to = if overwrite { image.reserved } else { image.published };
        let kept = next.saturating_add(left_out);
        let oldest = kept.max(stored_to.saturating_sub(slots.len() as u64));
        let ring = Self {
            lane,
            image,
            slots,
            overwrite,
            first,
            dropped_before,
            next,
            left_out,
            oldest,
            span,
        };
        ring.held_against_its_slots()
    }

    /// A lane that says that it came somewhere of which no slot knows says nothing: it was written
    /// to by somebody else.
    fn held_against_its_slots(mut self) -> Self {
        let holds = self.window().any(|position| self.record(position).is_some());
        if !holds && self.image.published > self.next.saturating_add(self.left_out) {
            self.image.published = self.next;
            self.oldest = self.next;
            self.left_out = 0;
        }
        self
    }

    pub(super) const fn image(&self) -> &LaneImage {
        &self.image
    }

    /// The position that the drained file takes the lane up at.
    pub(super) const fn first(&self) -> u64 {
        self.first
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

    /// The spans whose records the ring holds, drained or not; `None` for another record.
    fn spans(&self) -> impl DoubleEndedIterator<Item = Option<SpanId>> + '_ {
        let end = self.image.published;
        let held = end.saturating_sub(self.slots.len() as u64)..end;
        held.map(|position| {
            let record = self.record(position)?;
            let span = record.payload::<Span>().filter(|span| span.own_lane == self.lane)?;
            Some(SpanId(u64::from(record.header().span) | u64::from(span.own_high) << 32))
        })
    }

    /// The greatest span id that is known of the lane.
    pub(super) fn last_span(&self) -> SpanId {
        let open = self.image.open_spans().map(|(_, _, open)| open.id);
        self.spans().flatten().chain(open).fold(self.span, SpanId::max)
    }

    /// The spans that are open: how many are around each, its parent, and itself. An entry is cleared
    /// right after the span's record is published, so the last record may be that of one.
    pub(super) fn open_spans(&self) -> impl Iterator<Item = (u16, SpanId, OpenImage)> + '_ {
        let ended = self.spans().next_back().flatten();
        self.image.open_spans().filter(move |(_, _, open)| Some(open.id) != ended)
    }

    /// Slots that were being stored to when the process died.
    fn torn(&self) -> u64 {
        let torn = self.image.reserved.saturating_sub(self.image.published);
        // A group at most; more says somebody else.
        if self.overwrite && torn <= GROUP_MAX as u64 { torn } else { 0 }
    }

    /// The position behind all that the lane had.
    pub(super) fn end(&self) -> u64 {
        let taken = self.next.saturating_add(self.left_out);
        self.window().end.max(taken).saturating_add(self.torn())
    }

    /// Records and groups that were dropped since the drained file began.
    pub(super) fn dropped(&self) -> (u64, u64) {
        let (dropped, base, before) = (self.image.dropped, self.image.base, self.dropped_before);
        let since =
            |dropped: u64, base, before| dropped.saturating_sub(base).saturating_sub(before);
        (since(dropped.0, base.0, before.0), since(dropped.1, base.1, before.1))
    }

    /// The greatest moment that one of its records speaks of.
    pub(super) fn greatest(&self) -> Ticks {
        let records = self.window().filter_map(|position| self.record(position));
        records.map(|record| record.edges().1).max().unwrap_or_default()
    }

    /// Writes the records, and what is missing between them.
    pub(super) fn write(&self, counters: &mut Counters, tail: &mut Tail<'_>) -> io::Result<()> {
        self.declare(self.next, self.left_out, GapReason::SLICED, tail)?;
        let mut written = self.next.saturating_add(self.left_out);
        let mut run: Vec<Record> = Vec::new();
        let mut run_from = written;
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
        let place = Place { lane: self.lane, sequence: from, span: self.last_span() };
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
