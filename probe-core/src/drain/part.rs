//! A recording that goes on in another file, or goes on at all when its sink works again.

use tmrun_formats::NameId;
use tmrun_formats::wire::{FileHeader, Frame, LaneStepV1, PartV1, StepState};

use super::{Drain, Flush, Summary, store_taken};
use crate::clock::Clock;
use crate::drain::describe::Known;
use crate::levels::Stated;
use crate::sink::Sink;

impl<C: Clock, S: Sink> Drain<'_, C, S> {
    /// What the file came to so far.
    pub fn file(&self) -> Summary {
        Summary {
            records: self.out.file().records(),
            bytes: self.out.whole(),
            sink_failed: self.sink_failed,
            ..Summary::default()
        }
    }

    /// Records in the files before this one.
    #[cfg(feature = "std")]
    pub(crate) fn earlier_records(&self) -> u64 {
        self.before.records
    }

    /// Files with so many records were removed.
    #[cfg(feature = "std")]
    pub(crate) fn removed(&mut self, records: u64) {
        self.removed = self.removed.saturating_add(records);
    }

    /// Whether the sink has failed, and nothing is written.
    pub fn is_failing(&self) -> bool {
        self.out.failed()
    }

    /// Ends the file and goes on in another one: what is published is in the first, and what comes is
    /// in the second. Each is complete by itself; `end` and `begin` are what else they say, and `part`
    /// is which the second one is. Does nothing while the sink fails.
    ///
    /// # Errors
    ///
    /// When either sink fails. The recording goes on in the second one. While
    /// [that one fails](Self::is_failing), what it begins with is not in it: behind a
    /// [retry](Self::retry), call [`begin_file`](Self::begin_file).
    pub fn next_file(
        &mut self,
        sink: S,
        header: &FileHeader,
        end: &[Frame<'_>],
        begin: &[Frame<'_>],
        part: PartV1<'_>,
    ) -> Result<(), S::Error> {
        if self.out.failed() {
            return Ok(());
        }
        let mut result = self.poll(Flush::All).map(drop);
        let levels = self.settle_own(&mut result);
        let mut dropped = self.tell_of_missed();
        self.take_own(&mut result);
        for (_, block) in self.probe.all_lanes() {
            dropped = dropped.saturating_add(block.end_part());
        }
        result = result.and(self.tell_all_missing());
        result = result.and(self.write_closing_frames(end)).and_then(|()| self.out.trailer());
        self.before.records = self.before.records.saturating_add(self.out.file().records());
        self.before.dropped = self.before.dropped.saturating_add(dropped);
        self.out.next(sink);
        (self.known, self.named_at) = (Known::default(), 0);
        self.probe.all_lanes().for_each(|(_, block)| block.begin_part());
        self.missed.earlier = self.missed.told;
        // In the ring before the file says that it has begun: should the process die then, it is told.
        for (focus, change) in levels.into_iter().flatten() {
            self.probe.shared.recorder.store_own(change.asked, focus, &change);
        }
        let began = self.out.header(header).and_then(|()| self.begin_file(begin, part));
        result.and(began)
    }

    /// What the file begins with: `part` last, so that a file that says which it is has begun. Once
    /// more, when the sink failed on it.
    ///
    /// # Errors
    ///
    /// When the sink fails.
    pub fn begin_file(&mut self, begin: &[Frame<'_>], part: PartV1<'_>) -> Result<(), S::Error> {
        self.out.frames(begin)?;
        self.write_lane_steps()?;
        let lanes = self.probe.all_lanes();
        let starts = lanes.filter_map(|(lane, block)| block.start(lane).map(Frame::LaneStart));
        self.write_copied(starts)?;
        let (no_lane_records, no_lane_groups) = self.missed.earlier;
        self.out.frames(&[Frame::Part(PartV1 { no_lane_records, no_lane_groups, ..part })])
    }

    /// Tries whether a sink that has failed works again. If so the recording goes on, and the file
    /// says what is missing from it.
    ///
    /// # Errors
    ///
    /// When it fails again, or cannot [take back](Sink::cut) what it had written half.
    pub fn retry(&mut self) -> Result<(), S::Error> {
        if !self.out.failed() {
            return Ok(());
        }
        self.out.retry()?;
        // Some of it may not have been written.
        self.known = Known::default();
        self.probe.all_lanes().for_each(|(_, block)| block.repeat_claim());
        self.tell_all_missing()
    }

    /// Says what is missing of every lane up to where it was taken.
    pub(super) fn tell_all_missing(&mut self) -> Result<(), S::Error> {
        let (probe, look) = (self.probe, self.look.is_needed());
        for (lane, block) in probe.all_lanes() {
            let state = look.then(|| block.step_state());
            self.tell_missing(lane, block, block.taken(), state)?;
            let unsaid = if self.out.failed() { None } else { block.take_unsaid(lane) };
            if let Some(gap) = unsaid {
                probe.shared.recorder.store_own(gap.first, NameId::NONE, &gap);
            }
        }
        Ok(())
    }

    /// Stores what the recorder's own lane has to tell of this file, and returns what it has to say
    /// at the beginning of the next: what is asked for.
    fn settle_own(&mut self, result: &mut Result<(), S::Error>) -> Stated {
        let (shared, shown) = (self.probe.shared, self.probe.image.changes);
        let own = &shared.recorder;
        let store = |taken| store_taken::<C>(own, taken);
        let stated = shared.levels.take_changes_and_state(shown, store, C::ticks);
        self.take_own(result);
        own.store_own_pending();
        self.take_own(result);
        stated
    }

    fn write_lane_steps(&mut self) -> Result<(), S::Error> {
        let (lanes, followed) = (self.probe.application_lanes(), self.look.is_needed());
        self.write_copied(lanes.filter(|(_, block)| block.taken() > 0).filter_map(
            |(lane, block)| {
                let state = if followed { block.step_state() } else { StepState::START.doubted() };
                let step = LaneStepV1::of(lane, block.taken(), state);
                (state != StepState::START).then_some(Frame::LaneStep(step))
            },
        ))
    }
}
