//! The file of a region: what it keeps, and what was left out as holes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tmrun_formats::wire::{
    ChunkKind, Frame, FrameError, GROUP_MAX, HoleV1, LaneStepV1, Place, Record, StepState, groups,
};
use tmrun_formats::{GapClass, GapReason, LaneId, SpanId};

use super::concern::Concern;
use super::kept::{self, Kept, Run};
use super::left_out;
use super::outside::Outside;
use super::region::Region;
use crate::rewrite::{File, Gaps, definitions, gap_record};
use crate::scan::{ChunkState, Gap, Missing, Recording};

/// Records of a chunk, a group more or less.
const CHUNK: usize = 4096;

/// Writes a recording that has a region of another, and all that its evidence needs. What was left
/// out is in Hole frames of reason `sliced`. What the other one lacks of the region this one lacks for
/// the same reason, of the same stretch of time: a Gap record says so, at the first of the positions
/// that are lost where there are any.
///
/// # Errors
///
/// When it cannot be written.
pub fn slice(recording: &Recording<'_>, region: &Region, out: &mut dyn Write) -> io::Result<()> {
    let concern = Concern::of(recording, region);
    let is_told = |missing: &Missing| {
        missing.gap.class == GapClass::Lost && concern.is_told_in_a_slice(&missing.gap)
    };
    // What is not in the file at all has no position in it.
    let outside = region.outside.iter().filter(|o| o.behind && !o.is_told(recording));
    let outside = outside.map(|outside| outside.gap(recording, region.extent));
    let gaps = Gaps::of(recording, is_told, outside);
    let mut kept = kept::of(recording, region);
    let lost = lost(recording, |missing| {
        is_lost(missing, &concern) || is_lost_beside(missing, region, &kept)
    });
    let left_out = left_out::of(recording, region, &kept);
    let left_out = left_out.iter().filter_map(|left_out| told(&left_out.gap, left_out.position));
    let missing: Vec<_> = lost.into_iter().chain(left_out).chain(gaps.chunks()).collect();
    let runs =
        missing.iter().map(|(place, records)| (place.lane, Run::apart(place.sequence, records)));
    kept::add_apart(&mut kept, runs);
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
    file.frames(definitions(recording))?;
    file.frames(end(recording, region, &kept, &gaps))?;
    file.end().map(|_| ())
}

/// As in every file that is made of another; but what is said of the lanes, and of the file's part in a
/// recording, is said anew.
fn has_its_place_here(frame: &Result<Frame<'_>, FrameError>) -> bool {
    let is_said_anew =
        matches!(frame, Ok(Frame::LaneStart(_) | Frame::LaneStep(_) | Frame::Part(_)));
    !is_said_anew && crate::rewrite::has_its_place(frame)
}

/// The lanes, one behind the other.
fn lanes(
    recording: &Recording<'_>,
    region: &Region,
    kept: &Kept<'_>,
    file: &mut File<'_>,
) -> io::Result<()> {
    let starts = &recording.meta().starts;
    file.frames(starts.values().copied().map(Frame::LaneStart))?;
    // A lane may be in the step where the file takes it up, and have nothing of it.
    let taken_up = region.outside.iter().filter(|outside| !outside.behind);
    file.frames(taken_up.filter_map(|Outside { lane, .. }| {
        let (start, known) = (starts.get(lane)?, recording.lanes().get(*lane)?);
        Some(Frame::LaneStep(LaneStepV1::of(*lane, start.sequence, known.start)))
    }))?;
    let begins = begins(recording);
    for (&lane, runs) in kept {
        let (mut next, mut state) = (begins.get(&lane).copied().unwrap_or(0), None);
        for run in runs {
            // Where the marks do not say which step the lane is in, a frame does.
            if run.first > next || state != Some(run.state) {
                file.frames(hole(lane, next, run.first))?;
                file.frames([Frame::LaneStep(LaneStepV1::of(lane, run.first, run.state))])?;
            }
            records(lane, run, file)?;
            let behind = |state: StepState, record| state.behind(record, lane);
            (next, state) = (run.end(), Some(run.records().iter().fold(run.state, behind)));
        }
        let end = recording.lanes().get(lane).map_or(next, |lane| lane.end);
        file.frames(hole(lane, next, end))?;
    }
    Ok(())
}

/// The first position that the recording has anything of, of each lane.
fn begins(recording: &Recording<'_>) -> BTreeMap<LaneId, u64> {
    let chunks = recording.record_chunks().map(|chunk| (chunk.lane(), chunk.first_sequence()));
    let missing = recording.missing().iter();
    let missing = missing.filter_map(|missing| Some((missing.gap.lane?, missing.position?)));
    let mut begins = BTreeMap::new();
    for (lane, position) in chunks.chain(missing) {
        let begin = begins.entry(lane).or_insert(position);
        *begin = position.min(*begin);
    }
    begins.extend(recording.meta().starts.iter().map(|(&lane, start)| (lane, start.sequence)));
    begins
}

/// The Gap records of positions that are lost, each at the first of them, so that a hole of as many less
/// one follows.
fn lost(
    recording: &Recording<'_>,
    is_wanted: impl Fn(&Missing) -> bool,
) -> Vec<(Place, Vec<Record>)> {
    let missing = recording.missing().iter().filter(|missing| is_wanted(missing));
    missing.filter_map(|missing| told(&missing.gap, missing.position)).collect()
}

/// The Gap record of what is missing from a position of a lane on.
fn told(gap: &Gap, position: Option<u64>) -> Option<(Place, Vec<Record>)> {
    let (lane, sequence) = (gap.lane?, position?);
    let place = Place { lane, sequence, span: SpanId::NONE };
    Some((place, vec![gap_record(gap, sequence)]))
}

/// Whether something may have been of the region and is lost.
fn is_lost(missing: &Missing, concern: &Concern<'_>) -> bool {
    missing.gap.class == GapClass::Lost && concern.is_of(&missing.gap)
}

/// Whether something is lost right beside what is kept, so that a hole there would look as if something
/// of the region was left out.
fn is_lost_beside(missing: &Missing, region: &Region, kept: &Kept<'_>) -> bool {
    let (gap, Some(position)) = (&missing.gap, missing.position) else { return false };
    let runs = gap.lane.and_then(|lane| kept.get(&lane));
    let around = runs.and_then(|runs| kept::between(region, runs, position, gap.records));
    gap.class == GapClass::Lost
        && around.is_some_and(|(before, behind)| {
            before.end() == position || position.saturating_add(gap.records) == behind.first
        })
}

/// The positions from one to another, which are left out.
fn hole<'f>(lane: LaneId, sequence: u64, end: u64) -> Option<Frame<'f>> {
    let records = end.checked_sub(sequence).filter(|&records| records > 0)?;
    Some(Frame::Hole(HoleV1 { lane, sequence, records, reason: GapReason::SLICED }))
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
    gaps: &'r Gaps,
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
