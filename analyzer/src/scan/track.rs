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
    /// The first that it said, before the lane's first chunk.
    told_first: Option<(u64, StepState)>,
    /// Before its first chunk the file said where it takes the lane up.
    taken_up: bool,
    /// The first position that was declared to be missing there.
    missing_from: u64,
}

impl LaneAt {
    const NEW: Self = Self {
        next: 0,
        state: StepState::START,
        greatest: None,
        last_offset: 0,
        told: None,
        told_first: None,
        taken_up: false,
        missing_from: u64::MAX,
    };

    /// The file takes it up at this position, unless it said another before. Without a word it is 0:
    /// a probe that was recorded before goes on where it was.
    fn take_up(&mut self, sequence: u64) {
        if self.last_offset == 0 && !self.taken_up {
            self.taken_up = true;
            self.next = sequence.min(self.missing_from);
        }
    }

    /// The file says which step it is in at this position, whatever its marks do. It says nothing of the
    /// positions before.
    fn tell(&mut self, sequence: u64, state: StepState) {
        if self.last_offset == 0 {
            self.told_first = self.told_first.or(Some((sequence, state)));
        }
        self.told = Some((sequence, state));
    }

    /// The step state where the file takes it up, at this position.
    pub(super) fn state_at_start(&self, sequence: u64) -> StepState {
        let told = self.told_first.filter(|(at, _)| *at == sequence);
        told.map_or(StepState::START, |(_, state)| state)
    }

    /// The step state at its end: behind its last record, or as the file says where it has none.
    pub(super) fn state_at_end(&self) -> StepState {
        let told = self.told.filter(|(at, _)| *at >= self.next && self.last_offset == 0);
        told.map_or(self.state, |(_, state)| state)
    }

    /// A hole is declared at this position. Claims that came and went too fast to be named may lie
    /// before the first that is. Who writes the file again declares the holes elsewhere, so that
    /// neither their order among the claims nor one that begins later may matter.
    fn lack(&mut self, sequence: u64) {
        if self.last_offset == 0 {
            self.missing_from = self.missing_from.min(sequence);
            self.next = self.next.min(sequence);
        }
    }

    /// Takes in the header of a chunk of records at `offset`.
    fn follow(&mut self, header: &ChunkHeader, offset: u64) -> Follows {
        if header.records == 0 {
            // It takes no position, wherever it says that it stands.
            return Follows::Directly;
        }
        let first = header.first_sequence;
        // Its first chunk may be of such a claim, too.
        let is_first = self.last_offset == 0;
        let expected = if is_first { self.next.min(first) } else { self.next };
        let after = self.greatest;
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

    fn entry(&mut self, id: LaneId) -> &mut LaneAt {
        self.begun.entry(id).or_insert_with(|| self.lanes.get(&id).copied());
        self.lanes.entry(id).or_insert(LaneAt::NEW)
    }

    /// Takes in the header of a chunk of records at `offset`.
    pub(super) fn follow(&mut self, header: &ChunkHeader, offset: u64) -> Follows {
        self.entry(header.lane).follow(header, offset)
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
            self.frames(chunk);
        }
        (info, None)
    }

    /// What is told of the lanes: where they begin, and which step they are in somewhere.
    fn frames(&mut self, chunk: &Chunk<'_>) {
        if chunk.check().is_err() {
            return;
        }
        for raw in chunk.frames().map_while(Result::ok) {
            match raw.decode() {
                Ok(Frame::LaneStart(start)) => self.entry(start.lane).take_up(start.sequence),
                Ok(Frame::Lane(claim)) => self.entry(claim.lane).take_up(claim.sequence),
                Ok(Frame::Hole(hole)) if hole.records > 0 => {
                    self.entry(hole.lane).lack(hole.sequence);
                }
                Ok(Frame::LaneStep(step)) => {
                    self.entry(step.lane).tell(step.sequence, step.state());
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
        let lane = self.entry(info.header.lane);
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
