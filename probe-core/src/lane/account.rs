//! A lane's books: what was dropped, what Gap records tell of it, and what the drain takes.
//!
//! The producer counts every drop in [`Shown`] and never counts down. What is told of it is in
//! [`Told`], the rest is pending. A drop is told of once, by whoever comes first: the producer's next
//! Gap record, or the drain, by the closing gap of a recording or by counting it as one that came
//! between two. It belongs to the recording whose file tells of it.

use tmrun_formats::wire::{Gap, Payload, RecordHeader, StepState};
use tmrun_formats::{GapReason, LaneId, Level, NameId, Planes, Ticks};

use super::{LaneBlock, add};
use crate::sync::{AtomicBool, Ordering, Word, const_fn, fence, words};

/// Counters that the producer shows to the drain, for as long as the probe lives.
pub(crate) struct Shown {
    dropped_records: Word,
    dropped_groups: Word,
    /// First and last moment and planes of the drops that are pending.
    first: Word,
    last: Word,
    planes: Word,
    /// Gap records of drops.
    gaps: Word,
    pub(super) truncated: Word,
    pub(super) out_of_order: Word,
}

/// Drops that are told of. Written by the producer and the drain, by whoever holds `telling`.
pub(super) struct Told {
    telling: AtomicBool,
    records: Word,
    groups: Word,
}

/// What the drain knows of the lane. Only the drain writes it.
pub(crate) struct Drained {
    tail: Word,
    /// Position of the first record of this recording.
    pub(super) first: Word,
    /// Claims that the file knows of.
    pub(super) claims: Word,
    pub(super) high_water: Word,
    /// Records and groups that the Gap records of this recording tell of, and all Gap records taken.
    pub(super) gap_records: Word,
    pub(super) gap_groups: Word,
    gaps: Word,
    /// Drops that were told of before the recording's first position; after its end, by its end.
    pub(super) base_records: Word,
    pub(super) base_groups: Word,
    pub(super) base_truncated: Word,
    pub(super) base_out_of_order: Word,
    /// Records and groups that the Gap records of earlier files of this recording tell of.
    pub(super) earlier_records: Word,
    pub(super) earlier_groups: Word,
    /// Drops of the recording that has ended.
    pub(super) lost_records: Word,
    pub(super) lost_groups: Word,
    /// Records of this recording that were written over before they were taken.
    pub(super) lapped: Word,
    /// Slots of the ring.
    pub(super) slots: Word,
    /// One more than the position from which on records were left out, and than the one from which
    /// on they could not be written; 0 for none. Everything from there to the tail is missing.
    pub(super) left_out: Word,
    pub(super) unwritten: Word,
    /// What Gap records told of that could not be written.
    pub(super) unsaid_records: Word,
    pub(super) unsaid_groups: Word,
    pub(super) unsaid_first: Word,
    pub(super) unsaid_last: Word,
    pub(super) unsaid_planes: Word,
    /// The step state at the tail: the step's number, and the rest of it.
    pub(super) step: Word,
    pub(super) step_rest: Word,
    /// The step that began last, and when.
    pub(super) begun: Word,
    pub(super) begun_at: Word,
}

/// A lane's counters over one recording.
pub(crate) struct Tally {
    pub(crate) dropped_records: u64,
    pub(crate) dropped_groups: u64,
    pub(crate) truncated: u64,
    pub(crate) out_of_order: u64,
    pub(crate) high_water: u64,
}

impl Shown {
    const_fn! {
        pub(super) fn new() -> Self {
            words!(Self {
                dropped_records,
                dropped_groups,
                first,
                last,
                planes,
                gaps,
                truncated,
                out_of_order,
            })
        }
    }
}

impl Told {
    const_fn! {
        pub(super) fn new() -> Self {
            Self { telling: AtomicBool::new(false), records: Word::new(0), groups: Word::new(0) }
        }
    }

    /// In a forked child: whoever was telling does so in the parent, where its thread is.
    #[cfg(feature = "std")]
    pub(super) fn survive_fork(&self) {
        self.telling.store(false, Ordering::Release);
    }
}

impl Drained {
    const_fn! {
        pub(super) fn new() -> Self {
            words!(Self {
                tail,
                first,
                claims,
                high_water,
                gap_records,
                gap_groups,
                gaps,
                base_records,
                base_groups,
                base_truncated,
                base_out_of_order,
                earlier_records,
                earlier_groups,
                lost_records,
                lost_groups,
                lapped,
                slots,
                left_out,
                unwritten,
                unsaid_records,
                unsaid_groups,
                unsaid_first,
                unsaid_last,
                unsaid_planes,
                step,
                step_rest,
                begun,
                begun_at,
            })
        }
    }
}

/// The producer's side.
impl LaneBlock {
    /// A fact lost its end.
    pub(crate) fn truncated(&self) {
        add(&self.shown.truncated, 1);
        self.mirror().truncated.set(self.shown.truncated.get());
    }

    /// A span ended while one that was opened after it is open.
    pub(super) fn out_of_order(&self) {
        add(&self.shown.out_of_order, 1);
        self.mirror().out_of_order.set(self.shown.out_of_order.get());
    }

    /// Whether there are records whose loss nothing tells of yet.
    pub(super) fn has_pending(&self) -> bool {
        self.shown.dropped_records.get() > self.told.records.get()
    }

    /// So much is lost. (Spans come by their ends, so the first to be lost need not begin first.)
    pub(super) fn count_drops(
        &self,
        records: u64,
        groups: u64,
        (first, last): (Ticks, Ticks),
        planes: Planes,
    ) {
        let shown = &self.shown;
        if !self.has_pending() {
            shown.first.set(first.0);
            shown.last.set(last.0);
            shown.planes.set(0);
        }
        shown.first.set(shown.first.get().min(first.0));
        shown.last.set(shown.last.get().max(last.0));
        shown.planes.set(shown.planes.get() | u64::from(planes.0));
        // Whoever sees the count sees when and what it was.
        fence(Ordering::Release);
        add(&shown.dropped_records, records);
        add(&shown.dropped_groups, groups);
        let mirror = self.mirror();
        mirror.first_drop.set(shown.first.get());
        mirror.last_drop.set(shown.last.get());
        mirror.planes.set(shown.planes.get());
        mirror.dropped_groups.set(shown.dropped_groups.get());
        mirror.dropped_records.set(shown.dropped_records.get());
    }

    /// Stores the pending gap at the head and publishes it, so that by the time that the drain may
    /// tell of drops it can see what is told of. `false` when the drain is telling right now.
    pub(super) fn store_pending(&self) -> bool {
        self.tell(self.id(), |gap| {
            let header = RecordHeader { ticks: gap.first, ..RecordHeader::of::<Gap>(Level::PULSE) };
            let mut store = self.store_at(self.head.get());
            store.put(header, &gap);
            add(&self.shown.gaps, 1);
            store.publish();
        })
    }
}

/// Either side.
impl LaneBlock {
    /// Tells of what is pending, if there is something. `false` when the other side is telling right
    /// now: nobody waits.
    fn tell(&self, lane: LaneId, tell: impl FnOnce(Gap)) -> bool {
        let (shown, told) = (&self.shown, &self.told);
        if told.telling.swap(true, Ordering::Acquire) {
            return false;
        }
        // The groups first: the producer, which may be counting, counts them last.
        let (groups, records) = (shown.dropped_groups.get(), shown.dropped_records.get());
        fence(Ordering::Acquire);
        let pending = records.saturating_sub(told.records.get());
        if pending != 0 {
            let gap = Gap {
                first: Ticks(shown.first.get()),
                last: Ticks(shown.last.get()),
                records: pending,
                groups: groups.saturating_sub(told.groups.get()),
                planes: Planes(shown.planes.get() as u32),
                lane,
                reason: GapReason::OVERRUN,
            };
            told.records.set(records);
            told.groups.set(groups);
            tell(gap);
        }
        told.telling.store(false, Ordering::Release);
        true
    }

    /// Takes what is pending, to tell of it. Nothing, when the producer is telling of it right now.
    fn take_pending(&self, lane: LaneId) -> Option<Gap> {
        let mut pending = None;
        self.tell(lane, |gap| pending = Some(gap));
        pending
    }
}

/// The recorder's own lane, whose producer is the drain.
impl LaneBlock {
    /// Stores a record that is a group by itself.
    pub(crate) fn store_own<P: Payload>(&self, ticks: Ticks, name: NameId, payload: &P) {
        if let Some(mut store) = self.reserve_free(1, (ticks, ticks), P::KIND.plane()) {
            let header = RecordHeader { ticks, name, ..RecordHeader::of::<P>(Level::PULSE) };
            store.put(header, payload);
            store.publish();
        }
    }

    /// So many records of the recorder itself are lost.
    pub(crate) fn lose_own(&self, records: u64, ticks: Ticks) {
        self.count_drops(records, records, (ticks, ticks), Planes::RECORDER);
        self.settle();
    }

    /// Stores the gap that is pending, with nothing behind it.
    pub(crate) fn store_own_pending(&self) {
        self.known_tail.set(self.tail.observe(self.known_tail.get()));
        if self.has_pending() && self.fits(1) {
            self.store_pending();
        }
        self.settle();
    }
}

/// The drain's side.
impl LaneBlock {
    /// The position of the first record that is not taken.
    pub(crate) fn taken(&self) -> u64 {
        self.drain.tail.get()
    }

    /// Up to where records are published.
    pub(crate) fn observe_head(&self) -> u64 {
        self.head.observe()
    }

    /// The first position that a reader may still find whole, where the oldest is stored over.
    pub(crate) fn oldest_whole(&self) -> u64 {
        let reserved = self.shown_mirror().map_or(0, |mirror| mirror.reserved.get());
        reserved.saturating_sub(self.mask.get() + 1)
    }

    /// The same for what was copied before: a copy is whole from there on. The producer makes known
    /// what it is about to store to before it does; whoever reads anything of what it stores then,
    /// reads that too.
    pub(crate) fn oldest_whole_after_copy(&self) -> u64 {
        fence(Ordering::Acquire);
        self.oldest_whole()
    }

    /// So many records were lost from the ring before they were taken.
    pub(crate) fn lost_in_ring(&self, records: u64) {
        add(&self.drain.lapped, records);
    }

    /// Remembers how many records waited.
    pub(crate) fn saw_waiting(&self, waiting: u64) {
        if waiting > self.drain.high_water.get() {
            self.set_high_water(waiting);
        }
    }

    fn set_high_water(&self, waiting: u64) {
        self.drain.high_water.set(waiting);
        self.shown_mirror().iter().for_each(|mirror| mirror.high_water.set(waiting));
    }

    /// The counters that are of one file are counted from here on.
    pub(super) fn begin_counters(&self) {
        let (drain, shown) = (&self.drain, &self.shown);
        let (truncated, out_of_order) = (shown.truncated.get(), shown.out_of_order.get());
        drain.base_truncated.set(truncated);
        drain.base_out_of_order.set(out_of_order);
        if let Some(mirror) = self.shown_mirror() {
            mirror.base_truncated.set(truncated);
            mirror.base_out_of_order.set(out_of_order);
        }
        self.set_high_water(0);
    }

    /// The records before `tail` are taken; their slots may be stored to again.
    pub(crate) fn take_until(&self, tail: u64) {
        self.drain.tail.set(tail);
        self.tail.publish(tail);
    }

    /// A Gap record that the drain takes tells of drops of this lane.
    pub(crate) fn took_gap(&self, gap: &Gap) {
        self.told_of(gap);
        add(&self.drain.gaps, 1);
    }

    fn told_of(&self, gap: &Gap) {
        add(&self.drain.gap_records, gap.records);
        add(&self.drain.gap_groups, gap.groups);
    }

    /// A recording of this lane begins behind the records up to `head`, among which are these Gap
    /// records: its counts are from here on. Returns how many records came since the last one ended.
    pub(crate) fn begin_recording(
        &self,
        lane: LaneId,
        head: u64,
        gaps: impl Iterator<Item = Gap>,
    ) -> u64 {
        let drain = &self.drain;
        let waiting = head.wrapping_sub(self.taken());
        // The last recording may have gone without an end.
        self.rebase();
        let before = (drain.gaps.get(), drain.base_records.get());
        gaps.for_each(|gap| self.took_gap(&gap));
        self.take_pending(lane).iter().for_each(|gap| self.told_of(gap));
        self.rebase();
        let gaps = drain.gaps.get().wrapping_sub(before.0);
        let dropped = drain.base_records.get().wrapping_sub(before.1);
        let came = waiting.saturating_sub(gaps).saturating_add(dropped);
        drain.first.set(head);
        self.begin_counters();
        drain.earlier_records.set(0);
        drain.earlier_groups.set(0);
        drain.lost_records.set(0);
        drain.lost_groups.set(0);
        drain.lapped.set(0);
        self.set_step_state(StepState::START);
        self.nothing_missing();
        self.take_unsaid(lane);
        // An owner from before is still to be named; who gave the lane back is not.
        let claims = self.claims.count();
        drain.claims.set(if self.is_claimed() { claims.saturating_sub(1) } else { claims });
        if let Some(mirror) = self.shown_mirror() {
            mirror.first.set(head);
            mirror.base_records.set(drain.base_records.get());
            mirror.base_groups.set(drain.base_groups.get());
        }
        self.take_until(head);
        came
    }

    /// The recording ends: how many records were dropped in it, and the gap that tells of those that
    /// no Gap record does. What comes from now on came after its end.
    pub(crate) fn end_recording(&self, lane: LaneId) -> (u64, Option<Gap>) {
        let (drain, closing) = (&self.drain, self.take_pending(lane));
        closing.iter().for_each(|gap| self.told_of(gap));
        drain.lost_records.set(drain.gap_records.get());
        drain.lost_groups.set(drain.gap_groups.get());
        self.rebase();
        (drain.lost_records.get(), closing)
    }

    /// What is told of lies before what is counted from here on.
    pub(super) fn rebase(&self) {
        let drain = &self.drain;
        add(&drain.base_records, drain.gap_records.get());
        add(&drain.base_groups, drain.gap_groups.get());
        drain.gap_records.set(0);
        drain.gap_groups.set(0);
    }

    /// Records that are in no file, while nothing is recording: those that wait in the ring, Gap
    /// records apart, and those that were dropped.
    pub(crate) fn unrecorded(&self) -> u64 {
        let waiting = self.observe_head().wrapping_sub(self.taken());
        let gaps = self.shown.gaps.get().saturating_sub(self.drain.gaps.get());
        let told = self.drain.base_records.get().wrapping_add(self.drain.gap_records.get());
        let dropped = self.shown.dropped_records.get().saturating_sub(told);
        waiting.saturating_sub(gaps).saturating_add(dropped)
    }

    /// Records that were lost from the ring before they were taken.
    pub(crate) fn lost_from_ring(&self) -> u64 {
        self.drain.lapped.get()
    }

    /// The counters of the recording that has ended; `None` when there is nothing to tell.
    pub(crate) fn tally(&self) -> Option<Tally> {
        let (drain, shown) = (&self.drain, &self.shown);
        let since = |shown: &Word, base: &Word| shown.get().saturating_sub(base.get());
        let tally = Tally {
            dropped_records: drain.lost_records.get(),
            dropped_groups: drain.lost_groups.get(),
            truncated: since(&shown.truncated, &drain.base_truncated),
            out_of_order: since(&shown.out_of_order, &drain.base_out_of_order),
            high_water: drain.high_water.get(),
        };
        (self.taken() != drain.first.get() || tally.dropped_records > 0).then_some(tally)
    }

    /// Position of the first record of this recording.
    pub(crate) fn first_position(&self) -> u64 {
        self.drain.first.get()
    }

    /// Sets the counters, as if so much had been recorded.
    pub(super) fn preset_counters(&self, position: u64, spans: u64) {
        self.head.set(position);
        self.known_tail.set(position);
        self.next_span.set(spans);
        self.mirror().published.publish(position);
        self.take_until(position);
        self.settle();
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;
    use crate::clock::AutoClock;
    use crate::probe::Probe;

    /// The thread that was telling (owner or drain) is not in the child, so that it never says that it
    /// is done: of a lane that had an owner, and of one that nobody had yet.
    #[test]
    fn a_lane_that_was_telling_of_a_gap_when_it_was_forked_tells_of_gaps_in_the_child() {
        let probe = Box::new(Probe::<AutoClock, 2, 32, 4>::new());
        let lanes = probe.view().lanes;
        drop(probe.view().claim("the first lane").unwrap());
        for lane in lanes {
            lane.told.telling.store(true, Ordering::Relaxed);
            lane.survive_fork(1, 2, false);
        }

        for block in lanes {
            let lane = probe.view().claim("in the child").unwrap();
            let fill = || (0..40).for_each(|i| lane.recorder().scalar(NameId::NONE, i.into()));
            fill();
            assert_eq!(block.observe_head(), 32, "for the rest there is no room");
            block.take_until(32);
            fill();
            assert_eq!(block.observe_head(), 64, "behind what was taken there is room again");
            assert_eq!(block.shown.gaps.get(), 1, "and a gap before it tells of the eight");
            let (_, closing) = block.end_recording(block.id());
            assert_eq!(closing.map(|gap| gap.records), Some(9), "and the closing one of the rest");
            core::mem::forget(lane);
        }
    }
}
