//! One lane's ring: what it holds behind what was drained of it.

use std::io;

use tmrun_formats::rings::{LaneImage, OpenImage};
use tmrun_formats::wire::{GROUP_MAX, HoleV1, LaneStartV1, Place, Span};
use tmrun_formats::{GapReason, LaneId, SpanId, Ticks};

use super::counters::Counters;
use super::slots::{Slots, Stretch};
use super::tail::Tail;
use super::whole::Whole;
use super::{Process, Rings};

pub(super) struct Ring<'r> {
    lane: LaneId,
    image: LaneImage,
    slots: Slots<'r>,
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
    /// Why what lies before that is neither in the ring nor in the drained recording.
    given_back: GapReason,
    /// Whether the lane had more than anybody can say.
    has_more: bool,
    /// A span id that the lane has given.
    span: SpanId,
}

/// How many records from this position on were left out because nobody asked to keep them.
fn left_out(image: &LaneImage, next: u64) -> u64 {
    let (from, to) = image.left_out;
    if from <= next { to.min(image.published).saturating_sub(next) } else { 0 }
}

impl<'r> Ring<'r> {
    /// `start` is where the drained file takes up a lane of an earlier one.
    pub(super) fn of(
        rings: &Rings<'r>,
        lane: LaneId,
        start: Option<&LaneStartV1>,
        whole: &Whole<'_>,
        process: Process,
    ) -> Self {
        let image = rings.header.block(rings.bytes, lane);
        let slots = Slots::of(rings, lane);
        let first = start.map_or(image.first, |start| start.sequence);
        let dropped_before = start.map(|start| (start.dropped_records, start.dropped_groups));
        let next = whole.next.get(&lane).copied().unwrap_or(first);
        let left_out = left_out(&image, next);
        let given_back = match (slots.overwrite, whole.is_intact) {
            (true, _) => GapReason::LAPPED,
            // They were taken out of the ring, and a file of which nothing is lost has not got them.
            (false, true) => GapReason::SINK_FAILED,
            (false, false) => GapReason::CORRUPT,
        };
        let mut ring = Self {
            lane,
            image,
            slots,
            first,
            dropped_before: dropped_before.unwrap_or_default(),
            next,
            left_out,
            oldest: 0,
            given_back,
            has_more: false,
            span: whole.spans.get(&lane).copied().unwrap_or_default(),
        };
        let stored_to = ring.image.published.saturating_add(ring.torn());
        ring.oldest = ring.taken().max(slots.before(stored_to).start);
        ring.held_against_its_slots(process)
    }

    /// A lane that says that it came somewhere of which no slot knows, and that is further than its
    /// ring is long, or not as far as what was drained of it, says nothing: it was written to by
    /// somebody else. (What a process that is there has drained since may be further.)
    fn held_against_its_slots(mut self, process: Process) -> Self {
        let (published, taken) = (self.image.published, self.taken());
        let is_beyond = published.saturating_sub(taken) > self.slots.count()
            && !self.window().any(|position| self.slots.record(position).is_some());
        let is_behind = published < taken && process == Process::Gone;
        if is_beyond || is_behind {
            self.has_more = true;
            self.image.published = taken;
            self.oldest = taken;
        }
        self
    }

    pub(super) const fn image(&self) -> &LaneImage {
        &self.image
    }

    /// Whether the lane had more than anybody can say: what says how much was written to.
    pub(super) const fn has_more(&self) -> bool {
        self.has_more
    }

    /// The position behind what was taken out of the ring.
    const fn taken(&self) -> u64 {
        self.next.saturating_add(self.left_out)
    }

    /// The position that the drained file takes the lane up at.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The positions that the ring should hold and the drained recording does not.
    fn window(&self) -> core::ops::Range<u64> {
        self.oldest..self.image.published.max(self.oldest)
    }

    /// The spans whose records the ring holds, drained or not; `None` for another record.
    fn spans(&self) -> impl DoubleEndedIterator<Item = Option<SpanId>> + '_ {
        self.slots.before(self.image.published).map(|position| {
            let record = self.slots.record(position)?;
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
        if self.slots.overwrite && torn <= GROUP_MAX as u64 { torn } else { 0 }
    }

    /// The position behind all that the lane had.
    pub(super) fn end(&self) -> u64 {
        self.window().end.saturating_add(self.torn())
    }

    /// Records and groups that were dropped since the drained file began.
    pub(super) fn dropped(&self) -> (u64, u64) {
        let (dropped, base, before) = (self.image.dropped, self.image.base, self.dropped_before);
        let since =
            |dropped: u64, base, before| dropped.saturating_sub(base).saturating_sub(before);
        (since(dropped.0, base.0, before.0), since(dropped.1, base.1, before.1))
    }

    /// Facts that lost their end, and spans that ended out of order, since the file began.
    pub(super) fn oddities(&self) -> (u64, u64) {
        let since = |(now, before): (u64, u64)| now.saturating_sub(before);
        (since(self.image.truncated), since(self.image.out_of_order))
    }

    /// The most records that are known to have waited in the ring.
    pub(super) fn high_water(&self) -> u64 {
        let window = self.window();
        let waiting = window.end.saturating_sub(window.start);
        self.image.high_water.max(waiting).min(self.slots.count())
    }

    /// The greatest moment that one of its records speaks of.
    pub(super) fn greatest(&self) -> Ticks {
        let records = self.window().filter_map(|position| self.slots.record(position));
        records.map(|record| record.edges().1).max().unwrap_or_default()
    }

    /// Writes the records, and what is missing between them.
    pub(super) fn write(&self, counters: &mut Counters, tail: &mut Tail<'_>) -> io::Result<()> {
        let (taken, window) = (self.taken(), self.window());
        self.declare(self.next, self.left_out, GapReason::LEFT_OUT, tail)?;
        self.declare(taken, window.start.saturating_sub(taken), self.given_back, tail)?;
        let (lane, span) = (self.lane, self.last_span());
        self.slots.stretches(window.clone(), |sequence, stretch| match stretch {
            Stretch::Held(records) => {
                records.iter().for_each(|record| counters.take(record));
                tail.records(Place { lane, sequence, span }, records)
            }
            Stretch::Lost(records, reason) => self.declare(sequence, records, reason, tail),
        })?;
        self.declare(window.end, self.torn(), GapReason::TORN, tail)
    }

    fn declare(
        &self,
        sequence: u64,
        records: u64,
        reason: GapReason,
        tail: &mut Tail<'_>,
    ) -> io::Result<()> {
        tail.hole(HoleV1 { lane: self.lane, sequence, records, reason })
    }
}
