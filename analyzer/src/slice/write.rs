//! The file of a region: what it keeps, and what was left out as holes.

use std::io::{self, Write};

use tmrun_formats::wire::{
    ChunkKind, Frame, FrameError, GROUP_MAX, HoleV1, LaneStartV1, LaneStepV1, Place, Record, groups,
};
use tmrun_formats::{GapClass, GapReason, LaneId};

use super::kept::{self, Kept, Run};
use super::region::Region;
use crate::rewrite::{File, Gaps, definitions};
use crate::scan::{ChunkState, Missing, Recording};

/// Records of a chunk, a group more or less.
const CHUNK: usize = 4096;

/// Writes a recording that has a region of another, and all that its evidence needs. What was left
/// out is in Hole frames of reason `sliced`; what the other one lacks of the region, this one lacks
/// for the same reason.
///
/// # Errors
///
/// When it cannot be written.
pub fn slice(recording: &Recording<'_>, region: &Region, out: &mut dyn Write) -> io::Result<()> {
    let kept = kept::of(recording, region);
    let mut file = File::begin(out, recording.header())?;
    file.frames(definitions(recording))?;
    for info in recording.chunks() {
        if info.state == ChunkState::Intact
            && info.header.kind == ChunkKind::META
            && let Some(chunk) = info.chunk(recording.bytes())
        {
            file.copy_frames(&chunk, has_its_place_here)?;
        }
    }
    lanes(recording, region, &kept, &mut file)?;
    let gaps = Gaps::of(recording, |missing| touches(missing, region));
    for (place, records) in gaps.chunks() {
        file.records(place, &records)?;
    }
    file.frames(definitions(recording))?;
    file.frames(end(recording, region, &kept, &gaps))?;
    file.end().map(|_| ())
}

/// What is said of the beginning and the end stands there, and of the lanes what holds here.
fn has_its_place_here(frame: &Result<Frame<'_>, FrameError>) -> bool {
    match frame {
        Ok(
            Frame::Run(_) | Frame::Name(_) | Frame::DType(_) | Frame::Device(_) | Frame::Clock(_),
        ) => false,
        Ok(
            Frame::OpenSpan(_)
            | Frame::Totals(_)
            | Frame::RecorderCost(_)
            | Frame::Terminal(_)
            | Frame::Hole(_)
            | Frame::LaneStart(_)
            | Frame::LaneStep(_)
            | Frame::Part(_)
            | Frame::RecordingFile(_),
        ) => false,
        Ok(_) | Err(FrameError::Unknown { .. }) => true,
        Err(FrameError::Decode(_)) => false,
    }
}

/// The lanes, one behind the other.
fn lanes(
    recording: &Recording<'_>,
    region: &Region,
    kept: &Kept<'_>,
    file: &mut File<'_>,
) -> io::Result<()> {
    let lost = lost(recording, region);
    for (&lane, runs) in kept {
        let begin = begin(recording, lane);
        let start = recording.meta().starts.get(&lane).copied().unwrap_or_default();
        file.frames([Frame::LaneStart(LaneStartV1 { lane, sequence: begin, ..start })])?;
        let lost: Vec<HoleV1> = lost.iter().filter(|hole| hole.lane == lane).copied().collect();
        let mut next = begin;
        for run in runs {
            if run.first > next || next == begin {
                file.frames(holes(lane, next, run.first, &lost).map(Frame::Hole))?;
                file.frames([Frame::LaneStep(LaneStepV1::of(lane, run.first, run.state))])?;
            }
            records(lane, run, file)?;
            next = run.end();
        }
        let end = recording.lanes().get(lane).map_or(next, |lane| lane.end);
        file.frames(holes(lane, next, end, &lost).map(Frame::Hole))?;
    }
    Ok(())
}

/// The first position of a lane that the recording has anything of.
fn begin(recording: &Recording<'_>, lane: LaneId) -> u64 {
    if let Some(start) = recording.meta().starts.get(&lane) {
        return start.sequence;
    }
    let of_lane = |missing: &&Missing| missing.gap.lane == Some(lane);
    let missing = recording.missing().iter().filter(of_lane).filter_map(|missing| missing.position);
    let chunk = recording.record_chunks().find(|chunk| chunk.lane() == lane);
    chunk.map(|chunk| chunk.first_sequence()).into_iter().chain(missing).min().unwrap_or(0)
}

/// Positions that are lost and may have been of the region, by lane and position.
fn lost(recording: &Recording<'_>, region: &Region) -> Vec<HoleV1> {
    let hole = |missing: &Missing| {
        let (lane, sequence) = (missing.gap.lane?, missing.position?);
        let (records, reason) = (missing.gap.records, missing.gap.reason);
        Some(HoleV1 { lane, sequence, records, reason })
    };
    let mut holes: Vec<_> = recording
        .missing()
        .iter()
        .filter(|missing| touches(missing, region))
        .filter_map(hole)
        .collect();
    holes.sort_by_key(|hole| (hole.lane, hole.sequence));
    holes
}

/// Whether something that is lost may have been of the region.
fn touches(missing: &Missing, region: &Region) -> bool {
    let gap = &missing.gap;
    let (from, to) = region.extent;
    gap.class == GapClass::Lost && gap.first <= to && gap.last >= from
}

/// The holes of a lane from one position to another: what is lost as it was, and between that what
/// is left out.
fn holes(lane: LaneId, from: u64, to: u64, lost: &[HoleV1]) -> impl Iterator<Item = HoleV1> {
    let mut holes = Vec::new();
    let mut next = from;
    let mut add = |sequence: u64, end: u64, reason| {
        let records = end.saturating_sub(sequence);
        if records > 0 {
            holes.push(HoleV1 { lane, sequence, records, reason });
        }
    };
    for hole in lost.iter().filter(|hole| hole.sequence < to && hole.end() > from) {
        let (begin, end) = (hole.sequence.max(next), hole.end().min(to));
        add(next, begin, GapReason::SLICED);
        add(begin, end, hole.reason);
        next = next.max(end);
    }
    add(next, to, GapReason::SLICED);
    holes.into_iter()
}

/// The records of a run, in chunks that end between groups.
fn records(lane: LaneId, run: &Run<'_>, file: &mut File<'_>) -> io::Result<()> {
    let mut rest: &[Record] = run.records();
    let mut sequence = run.first;
    while !rest.is_empty() {
        let least = CHUNK.saturating_sub(GROUP_MAX);
        let mut len = 0_usize;
        for group in groups(rest) {
            len = len.saturating_add(group.len());
            if len >= least {
                break;
            }
        }
        let Some((chunk, behind)) = rest.split_at_checked(len) else { break };
        file.records(Place { lane, sequence, span: run.span }, chunk)?;
        sequence = sequence.saturating_add(len as u64);
        rest = behind;
    }
    Ok(())
}

/// What was open, what the lanes counted, what recording costs, and how the run ended.
fn end<'r>(
    recording: &'r Recording<'_>,
    region: &Region,
    kept: &'r Kept<'_>,
    gaps: &'r Gaps<'_>,
) -> impl Iterator<Item = Frame<'r>> {
    let meta = recording.meta();
    let open = meta.open_spans.iter().filter(|open| open.start <= region.extent.1).copied();
    let lanes = recording.lanes().iter().filter(|(lane, _)| kept.contains_key(lane));
    let totals = lanes.filter_map(|(_, lane)| lane.counters());
    let totals = totals.map(|totals| Frame::Totals(gaps.counted(totals)));
    let cost = meta.cost.into_iter().map(Frame::RecorderCost);
    let terminal = meta.terminal.into_iter().map(Frame::Terminal);
    open.map(Frame::OpenSpan).chain(totals).chain(cost).chain(terminal)
}
