//! From damaged bytes and missing positions to gaps.
//!
//! A hole in a lane's sequence says how many records are missing, damaged bytes say where. Bytes
//! that lie where the records of a hole must have been are that hole, and counted once. Damaged
//! bytes without a hole are a gap too, of no known count.

use tmrun_formats::wire::{ChunkHeader, HoleV1};
use tmrun_formats::{DecodeError, GapReason, LaneId, Planes, Ticks};

use super::error::Finding;
use super::gaps::{Gap, GapList, every_plane};
use super::lanes::Hole;
use super::walk::ChunkInfo;

/// What is wrong with a file, before it is known what is missing.
#[derive(Debug, Default)]
pub(super) struct Damages {
    holes: Vec<Hole>,
    counted: Vec<Gap>,
    suspects: Vec<Suspect>,
    /// How many suspects, by offset, have the records behind them.
    placed: usize,
    /// The greatest tick of the last chunk of records so far.
    greatest: Option<Ticks>,
}

/// Damaged bytes of which nobody knows what they held.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    offset: u64,
    reason: GapReason,
    lane: Option<LaneId>,
    range: Option<(Ticks, Ticks)>,
    planes: Planes,
    /// Its kind is known not to be records, so no hole in a lane's sequence is its doing.
    apart: bool,
    /// The greatest tick of the chunk of records before it in the file, and the least of the one
    /// behind it.
    before: Option<Ticks>,
    behind: Option<Ticks>,
}

impl Suspect {
    fn at(offset: u64, reason: GapReason) -> Self {
        Self {
            offset,
            reason,
            lane: None,
            range: None,
            planes: every_plane(),
            apart: false,
            before: None,
            behind: None,
        }
    }
}

impl Damages {
    pub(super) fn hole(&mut self, hole: Hole) {
        self.holes.push(hole);
    }

    /// Records of which the count is known.
    pub(super) fn counted(&mut self, gap: Gap) {
        self.counted.push(gap);
    }

    /// Bytes that are no chunk.
    pub(super) fn uncounted(&mut self, offset: u64, reason: GapReason) {
        self.suspects.push(Suspect::at(offset, reason));
    }

    /// A chunk of records at a position that its lane has gone past.
    pub(super) fn displaced(&mut self, header: &ChunkHeader, offset: u64) {
        let range = (header.least.min(header.greatest), header.greatest.max(header.least));
        self.suspects.push(Suspect {
            lane: Some(header.lane),
            range: Some(range),
            ..Suspect::at(offset, GapReason::CORRUPT)
        });
    }

    /// A chunk, or a frame in one, that holds no records and cannot be used.
    pub(super) fn without_records(&mut self, offset: u64, planes: Planes) {
        let suspect = Suspect::at(offset, GapReason::CORRUPT);
        self.suspects.push(Suspect { planes, apart: true, ..suspect });
    }

    /// The next chunks of the file, all suspects up to their end being known: the time of a suspect
    /// is between the records before it in the file and those behind it.
    pub(super) fn place(&mut self, chunks: &[ChunkInfo]) {
        let waiting = self.suspects.get_mut(self.placed..).unwrap_or_default();
        waiting.sort_by_key(|suspect| suspect.offset);
        for chunk in chunks.iter().filter(|chunk| chunk.has_records()) {
            self.place_before(chunk.offset, Some(chunk.header.least));
            self.greatest = Some(chunk.header.greatest);
        }
    }

    fn place_before(&mut self, offset: u64, least: Option<Ticks>) {
        let waiting = self.suspects.get_mut(self.placed..).unwrap_or_default();
        for suspect in waiting.iter_mut().take_while(|suspect| suspect.offset < offset) {
            (suspect.before, suspect.behind) = (self.greatest, least);
            self.placed = self.placed.saturating_add(1);
        }
    }

    /// The gaps. `span` is the time that the file covers. A hole that the file declares has the
    /// reason that it says; another one without any damaged bytes is a finding: the writer left it.
    pub(super) fn finish(
        mut self,
        span: (Ticks, Ticks),
        declared: &[HoleV1],
        gaps: &mut GapList,
        findings: &mut Vec<Finding>,
    ) {
        self.place(&[]);
        self.place_before(u64::MAX, None);
        let mut declared = declared.to_vec();
        declared.sort_by_key(|hole| (hole.lane, end(hole)));
        let near = |s: &&Suspect| !s.apart;
        let offsets: Vec<u64> = self.suspects.iter().filter(near).map(|s| s.offset).collect();
        for hole in &self.holes {
            let (first, last) = (hole.after.unwrap_or(span.0), hole.before.unwrap_or(span.1));
            let range = (first.min(last), last.max(first));
            let lost = |reason, records| Gap::lost(reason, Some(hole.lane), range, records);
            let mut undeclared = hole.records;
            for (reason, records) in parts(hole, &declared) {
                gaps.push(lost(reason, records));
                undeclared = undeclared.saturating_sub(records);
            }
            if undeclared == 0 {
                continue;
            }
            gaps.push(lost(GapReason::CORRUPT, undeclared));
            let next = offsets.get(offsets.partition_point(|&offset| offset <= hole.bytes.0));
            if next.is_none_or(|&offset| offset >= hole.bytes.1) {
                findings.push(missing(hole));
            }
        }
        self.counted.iter().for_each(|&gap| gaps.push(gap));
        let explained = union(self.holes.iter().map(|hole| hole.bytes).collect());
        for suspect in &self.suspects {
            if suspect.apart || !covered(&explained, suspect.offset) {
                let between = (suspect.before.unwrap_or(span.0), suspect.behind.unwrap_or(span.1));
                let between = (between.0.min(between.1), between.0.max(between.1));
                let range = suspect.range.unwrap_or(between);
                let gap = Gap::lost(suspect.reason, suspect.lane, range, 0);
                gaps.push(Gap { planes: suspect.planes, ..gap });
            }
        }
    }
}

/// The parts of a hole that the file declares: why, and how many records. No position is counted
/// twice, however often it is declared.
fn parts<'d>(
    hole: &Hole,
    declared: &'d [HoleV1],
) -> impl Iterator<Item = (GapReason, u64)> + use<'d> {
    let (lane, mut from) = (hole.lane, hole.position);
    let to = hole.position.saturating_add(hole.records);
    let first = declared.partition_point(|d| (d.lane, end(d)) <= (lane, from));
    let of_lane = declared.get(first..).unwrap_or_default().iter();
    of_lane
        .take_while(move |d| d.lane == lane && d.sequence < to)
        .map(move |d| {
            let (start, end) = (d.sequence.max(from), end(d).min(to));
            from = from.max(end);
            (d.reason, end.saturating_sub(start))
        })
        .filter(|&(_, records)| records > 0)
}

/// The position behind a declared hole.
const fn end(hole: &HoleV1) -> u64 {
    hole.sequence.saturating_add(hole.records)
}

/// Positions of a lane that are simply not there.
fn missing(hole: &Hole) -> Finding {
    let error = DecodeError::Malformed {
        what: "position of the next record of a lane",
        offset: hole.bytes.1,
        expected: hole.position,
        found: hole.position.saturating_add(hole.records),
    };
    Finding { error, lane: Some(hole.lane), chunk: None }
}

/// The open intervals, without overlap and in order.
fn union(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (first, last) in intervals {
        match joined.last_mut() {
            Some(open) if first < open.1 => open.1 = open.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

fn covered(intervals: &[(u64, u64)], offset: u64) -> bool {
    let behind = intervals.partition_point(|&(first, _)| first < offset);
    behind.checked_sub(1).and_then(|at| intervals.get(at)).is_some_and(|&(_, last)| offset < last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_intervals_do_not_cover_their_ends() {
        let joined = union(vec![(10, 20), (30, 40), (15, 25), (25, 28)]);
        assert_eq!(joined, [(10, 25), (25, 28), (30, 40)]);
        let inside = |offset| covered(&joined, offset);
        assert!(inside(11) && inside(24) && inside(26) && inside(31));
        assert!(!inside(10) && !inside(25) && !inside(28) && !inside(40));
    }
}
