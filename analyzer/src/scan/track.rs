//! Where the lanes are at one place in the file, and how a chunk moves them.
//!
//! The first pass and every later walk over the same bytes go through this, so that a chunk that is
//! walked again has the same state and the same step as when the file was opened.

use std::collections::BTreeMap;

use tmrun_formats::wire::{Chunk, ChunkHeader, ChunkKind, Frame};
use tmrun_formats::{LaneId, Ticks};

use super::check::Checked;
use super::lanes::{Follows, Hole};
use super::steps::StepState;
use super::walk::{ChunkInfo, ChunkState};

/// How far one lane came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneAt {
    /// The position that its next record would have.
    pub(super) next: u64,
    /// The step state behind its last record.
    pub(super) state: StepState,
    pub(super) greatest: Option<Ticks>,
    /// Where its last chunk starts; 0 before its first.
    pub(super) last_offset: u64,
    /// The state at a position that the file says instead of its marks.
    told: Option<(u64, StepState)>,
    /// A claim says where the file takes it up.
    claimed: bool,
}

impl LaneAt {
    const fn new(next: u64) -> Self {
        Self {
            next,
            state: StepState::START,
            greatest: None,
            last_offset: 0,
            told: None,
            claimed: false,
        }
    }

    /// Takes in the header of a chunk of records at `offset`.
    fn follow(&mut self, header: &ChunkHeader, offset: u64) -> Follows {
        if header.records == 0 {
            // It takes no position, wherever it says that it stands.
            return Follows::Directly;
        }
        let first = header.first_sequence;
        if self.last_offset == 0 {
            // Its first chunk. Claims that came and went too fast to be named may lie before the
            // first that is. What else speaks of a later position says nothing of earlier ones.
            let begin = if self.claimed { first } else { 0 };
            self.next = if self.next > first { begin } else { self.next };
        }
        let (expected, after) = (self.next, self.greatest);
        let missing = first.checked_sub(expected);
        let next = first.checked_add(header.records.into());
        let (Some(missing), Some(next)) = (missing, next) else {
            return Follows::Not { expected };
        };
        let bytes = (self.last_offset, offset);
        self.next = next;
        self.last_offset = offset;
        self.greatest = self.greatest.max(Some(header.greatest));
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
}

/// All lanes at one place in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    lanes: BTreeMap<LaneId, LaneAt>,
    /// The lanes that were looked at since [`take_begun`](Self::take_begun), as they were there.
    begun: BTreeMap<LaneId, Option<LaneAt>>,
}

impl Track {
    /// From a place on, of which the lanes that matter are known.
    pub(super) fn at(lanes: &[(LaneId, LaneAt)]) -> Self {
        Self { lanes: lanes.iter().copied().collect(), begun: BTreeMap::new() }
    }

    /// The lanes that were known at the last call and were looked at since then, as they were there:
    /// all that a walk from there to here needs.
    pub(super) fn take_begun(&mut self) -> Box<[(LaneId, LaneAt)]> {
        let begun = core::mem::take(&mut self.begun);
        begun.into_iter().filter_map(|(id, lane)| Some((id, lane?))).collect()
    }

    /// The lanes, by id.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (LaneId, LaneAt)> + '_ {
        self.lanes.iter().map(|(&id, &lane)| (id, lane))
    }

    fn entry(&mut self, id: LaneId, next: u64) -> &mut LaneAt {
        self.begun.entry(id).or_insert_with(|| self.lanes.get(&id).copied());
        self.lanes.entry(id).or_insert_with(|| LaneAt::new(next))
    }

    /// Takes in the header of a chunk of records at `offset`.
    pub(super) fn follow(&mut self, header: &ChunkHeader, offset: u64) -> Follows {
        self.entry(header.lane, 0).follow(header, offset)
    }

    /// The next chunk of the file, by its header alone; for one of records also how it follows.
    pub(super) fn chunk(&mut self, chunk: &Chunk<'_>) -> (ChunkInfo, Option<Follows>) {
        let &Chunk { offset, header, .. } = chunk;
        let (step, state) = (StepState::START, ChunkState::Intact);
        let mut info = ChunkInfo { offset, header, state, step, behind_hole: false };
        if !header.is_known() {
            info.state = ChunkState::Unknown;
        }
        if header.kind == ChunkKind::RECORDS {
            let follows = self.follow(&header, offset);
            match follows {
                Follows::Directly => {}
                Follows::Behind(_) => info.behind_hole = true,
                Follows::Not { .. } => info.state = ChunkState::Displaced,
            }
            return (info, Some(follows));
        }
        if header.kind == ChunkKind::META && header.is_known() {
            self.claims(chunk);
        }
        (info, None)
    }

    /// The first claim of a lane says at which position the file takes it up: a probe that was
    /// recorded before does not begin at 0. Claims that came and went too fast to be named may lie
    /// before it; a hole that is declared before the lane's first chunk says so. A lane's step may
    /// be told too.
    fn claims(&mut self, chunk: &Chunk<'_>) {
        if chunk.check().is_err() {
            return;
        }
        for raw in chunk.frames().map_while(Result::ok) {
            match raw.decode() {
                Ok(Frame::Lane(claim)) => self.entry(claim.lane, claim.sequence).claimed = true,
                Ok(Frame::Hole(hole)) if hole.records > 0 => {
                    let lane = self.entry(hole.lane, hole.sequence);
                    if lane.last_offset == 0 {
                        lane.next = lane.next.min(hole.sequence);
                    }
                }
                Ok(Frame::LaneStep(step)) => {
                    let lane = self.entry(step.lane, step.sequence);
                    lane.told = Some((step.sequence, step.state()));
                }
                _ => {}
            }
        }
    }

    /// What became of a chunk, once it is checked; in file order.
    pub(super) fn settle(&mut self, info: &mut ChunkInfo, checked: &Checked) {
        if info.state != ChunkState::Intact {
            return;
        }
        if checked.error.is_some() {
            info.state = ChunkState::Damaged;
        }
        if info.header.kind != ChunkKind::RECORDS {
            return;
        }
        let lane = self.entry(info.header.lane, 0);
        if info.behind_hole || checked.error.is_some() {
            lane.state = lane.state.doubted();
        }
        let told = lane.told.take_if(|(sequence, _)| *sequence == info.header.first_sequence);
        if let Some((_, state)) = told {
            lane.state = if checked.error.is_some() { state.doubted() } else { state };
        }
        if checked.error.is_none() {
            info.step = lane.state;
            lane.state = checked.steps.apply(lane.state);
        }
    }
}
