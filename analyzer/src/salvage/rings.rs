//! The mapped rings of a process that died, joined to what had been drained of them.
//!
//! The result is the recording as its recorder would have left it, had it been able to go on from
//! the last whole chunk: the same bytes up to there, then what the rings still hold, record by record
//! where the position says that it is the one that belongs there. What is damaged before that comes
//! out of the rings too, as long as no later record has its slot. It is for
//! [`salvage`](super::salvage()) to make a clean file of.

mod closing;
mod counters;
mod names;
mod ring;
mod slots;
mod tail;
mod whole;

use std::io::{self, Write};

use tmrun_formats::rings::{ClockCell, RingsHeader, RunArea};
use tmrun_formats::wire::{
    CalibrationV1, FileHeader, Frame, Frames, Gap, LaneV1, OpenSpanV1, RecorderCostV1, TerminalV1,
    TotalsV1,
};
use tmrun_formats::{DecodeError, GapReason, LaneId, RunId, SpanId, Ticks};

use super::ended::of_process;
use crate::scan::{Recording, every_plane};
use closing::{Changes, Closing, Moments};
use counters::Counters;
use names::NameTable;
use ring::Ring;
use tail::Tail;
use whole::Whole;

/// A rings file, opened.
#[derive(Debug, Clone, Copy)]
pub struct Rings<'r> {
    bytes: &'r [u8],
    header: RingsHeader,
}

impl<'r> Rings<'r> {
    /// Reads the header of a rings file.
    ///
    /// # Errors
    ///
    /// When these bytes are no rings file, or end before what its header speaks of.
    pub fn open(bytes: &'r [u8]) -> Result<Self, DecodeError> {
        Ok(Self { bytes, header: RingsHeader::decode(bytes)? })
    }

    /// The run that was being recorded.
    pub const fn run(&self) -> RunId {
        self.header.run
    }

    /// The process that recorded.
    pub const fn pid(&self) -> u64 {
        self.header.pid
    }

    /// Whether there is a process of that number, on this host. It need not be the one.
    pub fn is_alive(&self) -> bool {
        std::path::Path::new("/proc").join(self.header.pid.to_string()).exists()
    }

    /// Whether the recording was finished: then all of it is in its file.
    pub fn is_finished(&self) -> bool {
        let state = usize::try_from(RingsHeader::STATE).ok().and_then(|at| self.bytes.get(at));
        state == Some(&RingsHeader::FINISHED)
    }

    /// The file that the rings were drained into.
    pub fn recording_file(&self) -> Option<&'r str> {
        self.frames().find_map(|frame| match frame {
            Frame::RecordingFile(file) => Some(file.text),
            _ => None,
        })
    }

    /// What describes the run.
    fn frames(&self) -> impl Iterator<Item = Frame<'r>> + use<'r> {
        let area = self.header.part(self.bytes, self.header.run_area, RunArea::SIZE);
        let frames = RunArea::frames(area).unwrap_or_default();
        Frames::new(frames, 0).map_while(Result::ok).filter_map(|raw| raw.decode().ok())
    }

    fn clock(&self) -> impl Iterator<Item = CalibrationV1> {
        let length = ClockCell::COUNT.saturating_mul(ClockCell::SIZE);
        let cells = self.header.part(self.bytes, self.header.clock, length);
        ClockCell::read(cells).map(|cell| cell.sample)
    }

    fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        let lanes = u16::try_from(self.header.lanes).unwrap_or(LaneId::RECORDER.0);
        (0..lanes).map(LaneId).chain([LaneId::RECORDER])
    }
}

/// What became of the process that recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// It is gone.
    Gone,
    /// It is there and may still record. Its rings were read before what it drained of them, so that
    /// nothing is missing between the two.
    There,
}

/// Writes the drained recording, as far as it is whole, and what the rings hold beyond it or of what
/// is damaged in it. Without a recording (it is gone) only what the rings hold.
///
/// # Errors
///
/// When `out` fails.
pub fn join(
    drained: Option<&Recording<'_>>,
    rings: &Rings<'_>,
    process: Process,
    out: &mut dyn Write,
) -> io::Result<()> {
    let RingsHeader { run, created_ns, ticks_per_second, .. } = rings.header;
    let header = FileHeader { run, created_ns, ticks_per_second }.encode();
    let bytes = drained.map_or(&header[..], |drained| drained.bytes());
    let whole = Whole::of(bytes, drained, rings);
    let mut tail = Tail::new(out, whole.number);
    let names = NameTable::of(rings, drained);
    let mut counters = Counters::of(drained, Changes::of(rings, &names, process));
    whole.write(drained, rings, &mut counters, &mut tail)?;
    describe(drained, rings, &names, &mut tail)?;

    let mut greatest = drained.and_then(|drained| drained.span()).map_or(Ticks(0), |span| span.1);
    let mut ends = Vec::new();
    for lane in rings.lanes() {
        let start = drained.and_then(|drained| drained.meta().starts.get(&lane));
        let ring = Ring::of(rings, lane, start, &whole, process);
        claims(drained, &names, lane, &ring, &mut tail)?;
        ring.write(&mut counters, &mut tail)?;
        greatest = greatest.max(ring.greatest());
        ends.push((lane, ring));
    }
    let gaps: Vec<_> =
        ends.iter().filter_map(|(lane, ring)| counters.closing(*lane, ring)).collect();
    let more = ends.iter().filter(|(_, ring)| ring.has_more());
    let more = more.map(|(lane, _)| Gap {
        first: Ticks(0),
        last: greatest,
        records: 0,
        groups: 0,
        planes: every_plane(),
        lane: *lane,
        reason: GapReason::CORRUPT,
    });
    let moments = Moments::of(rings, drained, greatest);
    let missed = counters.missed(rings, &moments);
    let gaps = gaps.into_iter().chain(more).chain(missed).map(Closing::Gap);
    let closing: Vec<_> = counters.changes.closing(&moments).into_iter().chain(gaps).collect();
    let (gaps_lane, gaps_from) = room(&ends, &whole, closing.len() as u64);
    let gaps_end = tail.closing(gaps_lane, gaps_from, &closing)?;

    let open = ends.iter().flat_map(|(lane, ring)| open_spans(*lane, ring));
    tail.frames(open.map(Frame::OpenSpan))?;
    let totals = ends.iter().filter_map(|(lane, ring)| {
        let records = if *lane == gaps_lane { gaps_end } else { ring.end() };
        totals(*lane, ring, records)
    });
    tail.frames(totals.map(Frame::Totals))?;
    tail.frames(cost(drained, rings).map(Frame::RecorderCost))?;
    let reason = of_process(process, rings.header.pid);
    let terminal = TerminalV1 { complete: false, reason: Some(&reason), ticks: greatest };
    tail.frames([Frame::Terminal(terminal)])
}

/// Where so many records go that say what is missing: behind all else of the recorder's lane, or of
/// the last one that has room for them.
fn room(ends: &[(LaneId, Ring<'_>)], whole: &Whole<'_>, records: u64) -> (LaneId, u64) {
    let end = |lane| {
        let ring = ends.iter().find(|(id, _)| *id == lane).map(|(_, ring)| ring.end());
        (lane, ring.or_else(|| whole.next.get(&lane).copied()).unwrap_or_default())
    };
    let has_room = |(_, end): &(LaneId, u64)| end.checked_add(records).is_some();
    let lanes = (0..=LaneId::RECORDER.0).rev().map(LaneId);
    // A file of 65,536 lanes that are all at their end is none.
    lanes.map(end).find(has_room).unwrap_or((LaneId::RECORDER, 0))
}

/// What the drained recording does not say of the run, its names and its clock.
fn describe(
    drained: Option<&Recording<'_>>,
    rings: &Rings<'_>,
    names: &NameTable<'_>,
    tail: &mut Tail<'_>,
) -> io::Result<()> {
    if drained.is_none_or(|drained| drained.meta().run.is_none()) {
        tail.frames(rings.frames().filter(|frame| !matches!(frame, Frame::RecordingFile(_))))?;
    }
    tail.frames(names.names().map(Frame::Name))?;
    tail.frames(names.devices().map(Frame::Device))?;
    tail.frames(names.dtypes().map(Frame::DType))?;
    tail.frames(rings.clock().map(Frame::Calibration))
}

/// Who had the lane, as far as the drained recording does not know.
fn claims(
    drained: Option<&Recording<'_>>,
    names: &NameTable<'_>,
    lane: LaneId,
    ring: &Ring<'_>,
    tail: &mut Tail<'_>,
) -> io::Result<()> {
    let known = drained.and_then(|drained| drained.lanes().get(lane)?.claim);
    let new = ring.image().last_claims();
    let new = new.filter(|(number, _)| known.is_none_or(|known| *number > known.claim));
    tail.frames(new.map(|(number, claim)| {
        Frame::Lane(LaneV1 {
            lane,
            claim: number,
            sequence: claim.sequence.max(ring.first()),
            name: names.text(claim.name),
            thread: claim.thread,
        })
    }))
}

fn open_spans(lane: LaneId, ring: &Ring<'_>) -> impl Iterator<Item = OpenSpanV1> {
    ring.open_spans().map(move |(depth, around, open)| OpenSpanV1 {
        lane,
        span: open.id,
        parent: open.origin.map_or(around, |(origin, _)| origin),
        name: open.name,
        start: open.start,
        depth,
    })
}

/// What recording costs, with how many names found no room.
fn cost(drained: Option<&Recording<'_>>, rings: &Rings<'_>) -> Option<RecorderCostV1> {
    let of_rings = || {
        rings.frames().find_map(|frame| match frame {
            Frame::RecorderCost(cost) => Some(cost),
            _ => None,
        })
    };
    let cost = drained.and_then(|drained| drained.meta().cost).or_else(of_rings)?;
    let unnamed = rings.header.part(rings.bytes, rings.header.unnamed, 4).first_chunk();
    let unnamed = unnamed.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    Some(RecorderCostV1 { unnamed: cost.unnamed.max(unnamed.into()), ..cost })
}

fn totals(lane: LaneId, ring: &Ring<'_>, records: u64) -> Option<TotalsV1> {
    let (dropped_records, dropped_groups) = ring.dropped();
    if records == ring.first() && dropped_records == 0 {
        return None;
    }
    let SpanId(spans) = ring.last_span();
    let (truncated, out_of_order) = ring.oddities();
    let high_water = ring.high_water();
    Some(TotalsV1 {
        lane,
        records,
        spans,
        dropped_records,
        dropped_groups,
        truncated,
        out_of_order,
        high_water,
    })
}
