//! The end of a recording: what is pending, what was dropped, what is still open.

use tmrun_formats::wire::{Frame, Gap, OpenSpanV1, RecorderCostV1, TotalsV1};
use tmrun_formats::{GapReason, LaneId, NameId};

use super::{Drain, Flush, Summary};
use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::sink::Sink;

/// Records that may wait in the recorder's own ring while the closing gaps are stored.
const OWN_WAITING: u64 = 64;

impl<C: Clock, S: Sink> Drain<'_, C, S> {
    /// Ends the recording: disarms the sites, takes what is published, and writes the closing gaps,
    /// the names again, open spans, totals, `frames` (the terminal, last of all), index and trailer.
    /// It writes what is pending and no more.
    ///
    /// The sink comes back, unless it fails now; a failure that an earlier poll returned is only in
    /// the summary. A sink that has failed is tried once more, for an end that says what is missing.
    pub fn finish(mut self, frames: &[Frame<'_>]) -> (Summary, Result<S, S::Error>) {
        self.hold.disarm();
        let mut result = self.poll(Flush::All).map(drop);
        // A sink that has failed may have room for the end, which says what is missing.
        result = result.and(self.retry());
        // Nothing is taken from a lane of the application any more: what it drops from here on, and
        // the Gap records that it stores of it, came after the end.
        let dropped = self.close_lanes(&mut result);
        let missing = self.tell_all_missing();
        let ended = self.write_closing_frames(frames).and_then(|()| self.out.trailer());
        result = result.and(missing).and(ended);
        let before = self.before;
        let dropped = dropped.saturating_add(self.sink_failed).saturating_add(before.dropped);
        let summary = Summary {
            records: (self.out.file().records().saturating_add(before.records))
                .saturating_sub(self.removed),
            dropped,
            sink_failed: self.sink_failed,
            left_out: self.left_out.saturating_add(self.removed),
            bytes: self.out.whole(),
        };
        drop(self.hold);
        (summary, result.map(|()| self.out.into_sink()))
    }

    /// Stores at most one gap a lane, of the drops that no Gap record of the lane tells of, and one
    /// of the records that found no lane. Returns how many records were dropped in all.
    fn close_lanes(&mut self, result: &mut Result<(), S::Error>) -> u64 {
        let own = &self.probe.shared.recorder;
        let mut all = 0_u64;
        for (lane, block) in self.probe.application_lanes() {
            let (dropped, gap) = block.end_recording(lane);
            all = all.saturating_add(dropped).saturating_add(block.lost_from_ring());
            if let Some(gap) = gap {
                own.store_own(gap.first, NameId::NONE, &gap);
            }
            if own.observe_head().wrapping_sub(own.taken()) >= OWN_WAITING {
                self.take_own(result);
            }
        }
        all = all.saturating_add(self.tell_of_missed());
        self.take_own(result);
        own.store_own_pending();
        self.take_own(result);
        let (dropped, _) = own.end_recording(LaneId::RECORDER);
        all.saturating_add(dropped)
    }

    /// Stores a gap of the records that found no lane, and returns how many they are.
    pub(super) fn tell_of_missed(&mut self) -> u64 {
        self.look_for_missed();
        let (shared, no_lane) = (self.probe.shared, self.probe.image.no_lane);
        let (own, missed) = (&shared.recorder, self.missed);
        if missed.records > 0 {
            let gap = Gap {
                first: missed.first,
                last: missed.last,
                records: missed.records,
                groups: missed.groups,
                planes: no_lane.planes(),
                lane: LaneId::RECORDER,
                reason: GapReason::NO_LANE,
            };
            own.store_own(gap.first, NameId::NONE, &gap);
        }
        let (records, groups) = missed.told;
        self.missed.told =
            (records.saturating_add(missed.records), groups.saturating_add(missed.groups));
        (self.missed.records, self.missed.groups) = (0, 0);
        shared.no_lane_told.clear_planes(no_lane);
        no_lane.show(missed.looked, missed.looked);
        missed.records
    }

    pub(super) fn take_own(&mut self, result: &mut Result<(), S::Error>) {
        let own = &self.probe.shared.recorder;
        let taken = self.take(LaneId::RECORDER, own, own.observe_head(), 1);
        if result.is_ok() {
            *result = taken;
        }
    }

    pub(super) fn write_closing_frames(&mut self, frames: &[Frame<'_>]) -> Result<(), S::Error> {
        self.write_new_names()?;
        self.write_names_again()?;
        let probe = self.probe;
        self.write_copied(probe.all_lanes().flat_map(|(lane, block)| open_spans(lane, block)))?;
        self.write_copied(probe.all_lanes().filter_map(|(lane, block)| totals(lane, block)))?;
        let unnamed = probe.names().unnamed().into();
        let cost = Frame::RecorderCost(RecorderCostV1 { unnamed, ..self.cost });
        self.out.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
            each(&cost);
            frames.iter().for_each(each);
        })
    }
}

fn open_spans(lane: LaneId, block: &LaneBlock) -> impl Iterator<Item = Frame<'static>> + '_ {
    block.open_spans().map(move |open| {
        Frame::OpenSpan(OpenSpanV1 {
            lane,
            span: open.id,
            parent: open.parent,
            name: open.name,
            start: open.start,
            depth: open.depth,
        })
    })
}

fn totals(lane: LaneId, block: &LaneBlock) -> Option<Frame<'static>> {
    let tally = block.tally()?;
    Some(Frame::Totals(TotalsV1 {
        lane,
        records: block.taken(),
        spans: block.spans(),
        dropped_records: tally.dropped_records,
        dropped_groups: tally.dropped_groups,
        truncated: tally.truncated,
        out_of_order: tally.out_of_order,
        high_water: tally.high_water,
    }))
}
