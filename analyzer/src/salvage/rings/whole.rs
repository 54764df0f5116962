//! What was drained, and what the rings still have of what is damaged in it.

use core::ops::Range;
use std::collections::BTreeMap;
use std::io;

use tmrun_formats::wire::{ChunkHeader, ChunkKind, Chunks, FileHeader, HoleV1, Place, Walked};
use tmrun_formats::{GapReason, LaneId, SpanId};

use super::Rings;
use super::counters::Counters;
use super::slots::{Slots, Stretch};
use super::tail::Tail;
use crate::scan::Recording;

/// A drained recording up to the end of its last intact chunk. What it lacks behind that is still in
/// the rings: the recorder gives a slot back when its record is in the file.
pub(super) struct Whole<'d> {
    bytes: &'d [u8],
    /// The number of the next chunk.
    pub(super) number: u64,
    /// The position behind what there is of each lane.
    pub(super) next: BTreeMap<LaneId, u64>,
    /// The greatest span id that a chunk of each lane knows of.
    pub(super) spans: BTreeMap<LaneId, SpanId>,
    /// Whether no byte of it is damaged, and none comes behind it.
    pub(super) is_intact: bool,
    /// In file order.
    absent: Vec<Absent>,
}

/// Positions whose records are not where they belong.
struct Absent {
    /// The damaged chunk that had them. Nothing where that cannot be told from other bytes: then
    /// they belong here, before an intact chunk of the lane.
    bytes: Range<usize>,
    lane: LaneId,
    positions: Range<u64>,
    /// A span id of the lane from about there.
    span: SpanId,
    /// The number that a chunk has here.
    number: u64,
}

impl<'d> Whole<'d> {
    /// Of a recording; of the header of a file, when the recording is gone.
    pub(super) fn of(bytes: &'d [u8], drained: Option<&Recording<'_>>, rings: &Rings<'_>) -> Self {
        let mut whole = Self {
            bytes: bytes.get(..FileHeader::SIZE).unwrap_or(bytes),
            number: 0,
            next: BTreeMap::new(),
            spans: BTreeMap::new(),
            is_intact: drained.is_some(),
            absent: Vec::new(),
        };
        let begins = |lane| match drained.and_then(|drained| drained.meta().starts.get(&lane)) {
            Some(start) => start.sequence,
            None => rings.header.block(rings.bytes, lane).first,
        };
        // What a damaged chunk says is believed once an intact one lies behind it.
        let (mut next, mut believed) = (BTreeMap::new(), 0);
        for walked in Chunks::new(bytes) {
            let chunk = match walked {
                Walked::Chunk(chunk) => chunk,
                Walked::Damage(_) => {
                    whole.is_intact = false;
                    continue;
                }
                Walked::Trailer(_) => continue,
            };
            let ChunkHeader { kind, lane, number, first_sequence, first_span, .. } = chunk.header;
            let start = usize::try_from(chunk.offset).unwrap_or(usize::MAX);
            let end = start.saturating_add(ChunkHeader::SIZE).saturating_add(chunk.payload.len());
            let (is_intact, span) = (chunk.check().is_ok(), SpanId(first_span));
            whole.is_intact &= is_intact;
            if kind == ChunkKind::RECORDS && chunk.header.records > 0 {
                let behind = first_sequence.saturating_add(chunk.header.records.into());
                let reached = next.entry(lane).or_insert_with(|| begins(lane));
                if first_sequence > *reached {
                    let (bytes, positions) = (start..start, *reached..first_sequence);
                    let number = number.saturating_sub(1);
                    whole.absent.push(Absent { bytes, lane, positions, span, number });
                }
                if !is_intact && first_sequence >= *reached {
                    let (bytes, positions) = (start..end, first_sequence..behind);
                    whole.absent.push(Absent { bytes, lane, positions, span, number });
                }
                *reached = behind.max(*reached);
            }
            if is_intact {
                let greatest = whole.spans.entry(lane).or_default();
                *greatest = span.max(*greatest);
                whole.bytes = bytes.get(..end).unwrap_or(bytes);
                whole.number = number.saturating_add(1);
                whole.next.clone_from(&next);
                believed = whole.absent.len();
            }
        }
        whole.absent.truncate(believed);
        drained.iter().for_each(|drained| whole.go_on_behind_holes(drained, rings));
        whole
    }

    /// Positions of which the drained recording says that they hold nothing are behind it too.
    fn go_on_behind_holes(&mut self, drained: &Recording<'_>, rings: &Rings<'_>) {
        let meta = drained.meta();
        for (&lane, start) in &meta.starts {
            self.next.entry(lane).or_insert(start.sequence);
        }
        for hole in &meta.holes {
            let first = || rings.header.block(rings.bytes, hole.lane).first;
            let next = self.next.entry(hole.lane).or_insert_with(first);
            if hole.sequence <= *next {
                *next = hole.end().max(*next);
            }
        }
    }

    /// Writes it, with what the rings still have where that belongs. What nobody asked to keep stays
    /// out.
    pub(super) fn write(
        &self,
        drained: Option<&Recording<'_>>,
        rings: &Rings<'_>,
        counters: &mut Counters,
        tail: &mut Tail<'_>,
    ) -> io::Result<()> {
        let holes = drained.map(|drained| &*drained.meta().holes).unwrap_or_default();
        let mut written = 0;
        for absent in &self.absent {
            let lane = absent.lane;
            let slots = Slots::of(rings, lane);
            let held = slots.given_back(&rings.header.block(rings.bytes, lane));
            let asked = asked_for(&absent.positions, lane, holes);
            let asked: Vec<_> = asked.into_iter().map(|asked| common(&asked, &held)).collect();
            if !asked.iter().cloned().flatten().any(|position| slots.record(position).is_some()) {
                continue;
            }
            tail.copy(self.bytes.get(written..absent.bytes.start).unwrap_or_default())?;
            written = absent.bytes.end;
            tail.number = absent.number;
            let mut reached = absent.positions.start;
            for positions in asked {
                slots.stretches(positions, |sequence, stretch| {
                    let Stretch::Held(records) = stretch else { return Ok(()) };
                    absent.declare(reached..sequence, tail)?;
                    reached = sequence.saturating_add(records.len() as u64);
                    records.iter().for_each(|record| counters.take(record));
                    tail.records(Place { lane, sequence, span: absent.span }, records)
                })?;
            }
            absent.declare(reached..absent.positions.end, tail)?;
        }
        tail.number = self.number;
        tail.copy(self.bytes.get(written..).unwrap_or_default())
    }
}

impl Absent {
    /// Says that the rings do not have these either, where no damaged byte is left that does.
    fn declare(&self, positions: Range<u64>, tail: &mut Tail<'_>) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let (lane, sequence) = (self.lane, positions.start);
        let records = positions.end.saturating_sub(sequence);
        tail.hole(HoleV1 { lane, sequence, records, reason: GapReason::CORRUPT })
    }
}

/// These positions of a lane without those that were left out because nobody asked to keep them.
fn asked_for(positions: &Range<u64>, lane: LaneId, holes: &[HoleV1]) -> Vec<Range<u64>> {
    let left_out = |hole: &&HoleV1| hole.lane == lane && hole.reason == GapReason::LEFT_OUT;
    let mut holes: Vec<_> = holes.iter().filter(left_out).map(|it| it.sequence..it.end()).collect();
    holes.sort_by_key(|hole| hole.start);
    let (mut asked, mut from) = (Vec::new(), positions.start);
    for hole in holes {
        asked.push(from..hole.start.min(positions.end));
        from = hole.end.max(from);
    }
    asked.push(from..positions.end);
    asked
}

fn common(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}
