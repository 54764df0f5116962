//! Lanes: how far each one came, and what is missing on the way.

use std::collections::BTreeMap;

use tmrun_formats::wire::{ChunkHeader, LaneV1, TotalsV1};
use tmrun_formats::{LaneId, Ticks};

use super::steps::{LaneSteps, StepState};

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
    /// The position that its next record would have.
    pub next: u64,
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
            state: StepState::START,
            greatest: None,
            last_offset: 0,
            totals_offset: 0,
        }
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

    /// The file takes the lane up at this position, unless it has done so already.
    pub(super) fn begin_at(&mut self, id: LaneId, position: u64) {
        self.lanes.entry(id).or_insert_with(|| Lane { next: position, ..Lane::new() });
    }

    /// Takes in the header of a chunk of records at `offset`.
    pub(super) fn follow(&mut self, header: &ChunkHeader, offset: u64) -> Follows {
        let lane = self.entry(header.lane);
        let first = header.first_sequence;
        if lane.last_offset == 0 {
            // Its first chunk. Claims that came and went too fast to be named may lie before the
            // first that is.
            lane.next = lane.next.min(first);
        }
        let (expected, after) = (lane.next, lane.greatest);
        let missing = first.checked_sub(expected);
        let next = first.checked_add(header.records.into());
        let (Some(missing), Some(next)) = (missing, next) else {
            return Follows::Not { expected };
        };
        let bytes = (lane.last_offset, offset);
        lane.next = next;
        lane.last_offset = offset;
        if header.records > 0 {
            lane.greatest = lane.greatest.max(Some(header.greatest));
        }
        if missing == 0 {
            return Follows::Directly;
        }
        Follows::Behind(Hole {
            lane: header.lane,
            position: expected,
            records: missing,
            after,
            before: Some(header.least),
            bytes,
        })
    }

    /// The holes at the ends of the lanes: positions that the totals count and no chunk holds.
    pub(super) fn holes_at_the_end(&self) -> impl Iterator<Item = Hole> + '_ {
        self.lanes.iter().filter_map(|(&id, lane)| {
            let records = lane.totals?.records.checked_sub(lane.next)?;
            (records > 0).then_some(Hole {
                lane: id,
                position: lane.next,
                records,
                after: lane.greatest,
                before: None,
                bytes: (lane.last_offset, lane.totals_offset),
            })
        })
    }
}
