//! Lanes: how far each one came, and what is missing on the way.

use std::collections::BTreeMap;

use tmrun_formats::wire::{HoleV1, LaneStartV1, LaneV1, TotalsV1};
use tmrun_formats::{LaneId, Ticks};

use super::steps::{LaneSteps, StepState};
use super::track::Track;

/// One lane of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane<'a> {
    /// Who claimed it last.
    pub claim: Option<LaneV1<'a>>,
    /// How many claims the file names.
    pub claims: u64,
    /// Its counters, as the recorder last wrote them; `None` in a file that was not finished.
    pub totals: Option<TotalsV1>,
    /// Records in intact chunks.
    pub records: u64,
    /// Chunks of its records that are intact.
    pub chunks: u64,
    /// Span records in intact chunks.
    pub spans: u64,
    /// The steps that began on it.
    pub steps: LaneSteps,
    /// The position behind its last record, as far as headers tell.
    pub next: u64,
    /// The position behind all that it ever had, as far as the file tells.
    pub end: u64,
    /// The step state where the file takes it up, as far as the file says: a step that is open there
    /// began in an earlier file.
    pub start: StepState,
    /// The step state behind its last record.
    pub state: StepState,
    pub(super) greatest: Option<Ticks>,
    pub(super) last_offset: u64,
    pub(super) totals_offset: u64,
}

impl Lane<'_> {
    fn new() -> Self {
        Self {
            claim: None,
            claims: 0,
            totals: None,
            records: 0,
            chunks: 0,
            spans: 0,
            steps: LaneSteps::default(),
            next: 0,
            end: 0,
            start: StepState::START,
            state: StepState::START,
            greatest: None,
            last_offset: 0,
            totals_offset: 0,
        }
    }

    /// Its counters; `None` also where they count less than what is there, for then they are wrong.
    pub fn counters(&self) -> Option<TotalsV1> {
        self.totals.filter(|totals| totals.records >= self.next)
    }
}

/// A stretch of positions of a lane that no intact header covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) lane: LaneId,
    /// Its first position.
    pub(super) position: u64,
    pub(super) records: u64,
    /// The ticks before and behind it, where they are known.
    pub(super) after: Option<Ticks>,
    pub(super) before: Option<Ticks>,
    /// The stretch of the file in which the records must have been.
    pub(super) bytes: (u64, u64),
}

/// How a chunk follows the one before it on its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// At the next position.
    Directly,
    /// Behind this hole.
    Behind(Hole),
    /// Not at all: it begins at or before a position that was there already, or ends beyond the
    /// last that there is.
    Not {
        /// The position that it should have begun at.
        expected: u64,
    },
}

/// The lanes of a file, by id.
#[derive(Debug, Clone, Default)]
pub struct Lanes<'a> {
    lanes: BTreeMap<LaneId, Lane<'a>>,
}

impl<'a> Lanes<'a> {
    /// The lane with this id.
    pub fn get(&self, id: LaneId) -> Option<&Lane<'a>> {
        self.lanes.get(&id)
    }

    /// All lanes, by id; the recorder's own is the last.
    pub fn iter(&self) -> impl Iterator<Item = (LaneId, &Lane<'a>)> {
        self.lanes.iter().map(|(&id, lane)| (id, lane))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn entry(&mut self, id: LaneId) -> &mut Lane<'a> {
        self.lanes.entry(id).or_insert_with(Lane::new)
    }

    /// How far the lanes came by the end of the file, by headers alone and in chunks that hold. `starts` is
    /// where it takes up lanes of earlier files.
    pub(super) fn ended(
        &mut self,
        walked: &Track,
        settled: &Track,
        starts: &BTreeMap<LaneId, LaneStartV1>,
    ) {
        for (id, at) in walked.lanes() {
            let lane = self.entry(id);
            lane.next = at.next;
            (lane.greatest, lane.last_offset) = (at.greatest, at.last_offset);
        }
        for (id, at) in settled.lanes() {
            let lane = self.entry(id);
            lane.state = at.state_at_end();
            let start = starts.get(&id).map(|start| at.state_at_start(start.sequence));
            lane.start = start.unwrap_or(StepState::START);
        }
    }

    /// Takes in the holes that the file declares: a lane came as far as their ends.
    pub(super) fn reach(&mut self, declared: &[HoleV1]) {
        for hole in declared {
            let lane = self.entry(hole.lane);
            lane.end = lane.end.max(hole.end());
        }
        for lane in self.lanes.values_mut() {
            let counted = lane.totals.map_or(0, |totals| totals.records);
            lane.end = lane.end.max(lane.next).max(counted);
        }
    }

    /// The holes at the ends of the lanes: positions that the totals count, or that are declared to
    /// be lost, and no chunk holds.
    pub(super) fn holes_at_the_end(&self, file_len: u64) -> impl Iterator<Item = Hole> + '_ {
        self.lanes.iter().filter_map(move |(&id, lane)| {
            let records = lane.end.checked_sub(lane.next)?;
            let end = lane.totals.map_or(file_len, |_| lane.totals_offset);
            (records > 0).then_some(Hole {
                lane: id,
                position: lane.next,
                records,
                after: lane.greatest,
                before: None,
                bytes: (lane.last_offset, end),
            })
        })
    }
}
