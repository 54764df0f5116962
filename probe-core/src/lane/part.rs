//! What the drain knows of a lane at its tail, and what of the lane is not in the file: records that
//! were left out, or could not be written.

use tmrun_formats::wire::{Gap, HoleV1, LaneStartV1, StepMark, StepState};
use tmrun_formats::{GapReason, LaneId, Phase, Planes, Ticks};

use super::{LaneBlock, add};
use crate::sync::{Ordering, Word, fence};

const OPEN: u64 = 1;
const SURE: u64 = 2;
const WITHIN: u64 = 4;
const MICRO: u64 = 8;

/// A recording that goes on in another file.
impl LaneBlock {
    /// The file ends here. Returns how many records were dropped in it: those that its Gap records
    /// tell of, and those that were lost from the ring.
    pub(crate) fn end_part(&self) -> u64 {
        let drain = &self.drain;
        drain.lost_records.set(drain.gap_records.get());
        drain.lost_groups.set(drain.gap_groups.get());
        drain.gap_records.get().saturating_add(drain.lapped.get())
    }

    /// The next file begins here: its counts are from here on. What no Gap record tells of yet is
    /// told of in it.
    pub(crate) fn begin_part(&self) {
        let drain = &self.drain;
        add(&drain.earlier_records, drain.gap_records.get());
        add(&drain.earlier_groups, drain.gap_groups.get());
        self.rebase();
        self.begin_counters();
        drain.lapped.set(0);
        drain.first.set(self.taken());
        self.repeat_claim();
    }

    /// Where the file takes the lane up, if an earlier one has something of it.
    pub(crate) fn start(&self, lane: LaneId) -> Option<LaneStartV1> {
        let start = LaneStartV1 {
            lane,
            sequence: self.first_position(),
            dropped_records: self.drain.earlier_records.get(),
            dropped_groups: self.drain.earlier_groups.get(),
        };
        (start.sequence > 0 || start.dropped_records > 0).then_some(start)
    }

    /// The last claim that the file knows of is written once more: what follows may be its records.
    pub(crate) fn repeat_claim(&self) {
        let claims = &self.drain.claims;
        claims.set(claims.get().saturating_sub(1));
    }

    /// The step state behind the last record that was taken.
    pub(crate) fn step_state(&self) -> StepState {
        let (number, rest) = (self.drain.step.get(), self.drain.step_rest.get());
        let open = StepMark {
            number,
            phase: Phase((rest >> 8) as u8),
            micro_batch: (rest & MICRO != 0).then_some((rest >> 32) as u32),
            within_step: rest & WITHIN != 0,
        };
        StepState { open: (rest & OPEN != 0).then_some(open), sure: rest & SURE != 0 }
    }

    pub(crate) fn set_step_state(&self, state: StepState) {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let rest = state.open.map_or(0, |open| {
            let micro = open.micro_batch.map_or(0, |micro| u64::from(micro) << 32 | MICRO);
            OPEN | micro | u64::from(open.phase.0) << 8 | flag(open.within_step, WITHIN)
        });
        self.drain.step.set(state.open.map_or(0, |open| open.number));
        self.drain.step_rest.set(rest | flag(state.sure, SURE));
    }

    /// A step began.
    pub(crate) fn step_began(&self, number: u64, at: Ticks) {
        self.drain.begun.set(number);
        self.drain.begun_at.set(at.0);
    }

    /// When the step that ends now began, unless another one began in between.
    pub(crate) fn when_step_began(&self, number: u64) -> Option<Ticks> {
        let began = self.drain.begun.get() == number;
        began.then(|| Ticks(self.drain.begun_at.get()))
    }

    /// So many records from this position on are left out of the file.
    pub(crate) fn leave_out(&self, from: u64, records: u64) {
        let (left_out, mirror) = (&self.drain.left_out, self.shown_mirror());
        if left_out.get() == 0 {
            left_out.set(from.wrapping_add(1));
            // Before the end, which may be that of an earlier stretch: then there is none between.
            mirror.iter().for_each(|mirror| mirror.left_out_from.set(from));
        }
        fence(Ordering::Release);
        mirror.iter().for_each(|mirror| mirror.left_out_to.set(from.wrapping_add(records)));
    }

    /// Records from this position on could not be written.
    pub(crate) fn fail_to_write(&self, from: u64) {
        let unwritten = &self.drain.unwritten;
        if unwritten.get() == 0 {
            unwritten.set(from.wrapping_add(1));
        }
    }

    /// A Gap record of the lane could not be written: what it told of is told of later.
    pub(crate) fn fail_to_tell(&self, gap: &Gap) {
        let drain = &self.drain;
        if drain.unsaid_records.get() == 0 {
            drain.unsaid_first.set(gap.first.0);
        }
        drain.unsaid_last.set(gap.last.0);
        drain.unsaid_planes.set(drain.unsaid_planes.get() | u64::from(gap.planes.0));
        add(&drain.unsaid_records, gap.records);
        add(&drain.unsaid_groups, gap.groups);
    }

    /// Takes what the Gap records told of that could not be written.
    pub(crate) fn take_unsaid(&self, lane: LaneId) -> Option<Gap> {
        let drain = &self.drain;
        let take = |word: &Word| {
            let value = word.get();
            word.set(0);
            value
        };
        let gap = Gap {
            first: Ticks(take(&drain.unsaid_first)),
            last: Ticks(take(&drain.unsaid_last)),
            records: take(&drain.unsaid_records),
            groups: take(&drain.unsaid_groups),
            planes: Planes(take(&drain.unsaid_planes) as u32),
            lane,
            reason: GapReason::OVERRUN,
        };
        (gap.records > 0).then_some(gap)
    }

    /// What is missing from the file between its last record of the lane and this position.
    pub(crate) fn missing(&self, lane: LaneId, to: u64) -> impl Iterator<Item = HoleV1> + use<> {
        let position = |word: u64| word.checked_sub(1);
        let left_out = position(self.drain.left_out.get());
        let unwritten = position(self.drain.unwritten.get());
        let hole = move |from: Option<u64>, to: u64, reason| {
            let sequence = from?;
            let records = to.wrapping_sub(sequence);
            (records > 0).then_some(HoleV1 { lane, sequence, records, reason })
        };
        [
            hole(left_out, unwritten.unwrap_or(to), GapReason::LEFT_OUT),
            hole(unwritten, to, GapReason::SINK_FAILED),
        ]
        .into_iter()
        .flatten()
    }

    /// The file says what is missing.
    pub(crate) fn nothing_missing(&self) {
        self.drain.left_out.set(0);
        self.drain.unwritten.set(0);
    }
}
