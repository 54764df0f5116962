//! How the new file ends: what is missing, what was open, the counters, and how the run ended.

use std::io;

use tmrun_formats::wire::{Frame, Gap, Place, Record, RecordHeader, TerminalV1, TotalsV1};
use tmrun_formats::{LaneId, Level, SpanId};

use super::file::File;
use super::holes::Holes;
use crate::scan::{Missing, Recording};

/// Gap records a chunk: a reader lists so many of one chunk, and adds up the rest.
const GAPS: usize = 64;

/// Gap records, on the recorder's lane, of what is missing and has no position.
pub(super) fn gaps(
    recording: &Recording<'_>,
    holes: &mut Holes,
    file: &mut File<'_>,
) -> io::Result<()> {
    let lane = LaneId::RECORDER;
    let mut sequence = own_end(recording);
    let uncounted: Vec<&Missing> = uncounted(recording).collect();
    for missing in uncounted.chunks(GAPS) {
        let records: Vec<Record> =
            (sequence..).zip(missing).map(|(at, missing)| gap_record(missing, at)).collect();
        file.frames(holes.before(lane, sequence))?;
        file.records(Place { lane, sequence, span: SpanId::NONE }, &records)?;
        sequence = sequence.saturating_add(records.len() as u64);
    }
    Ok(())
}

/// Behind which position all ends that the recorder's lane ever had.
fn own_end(recording: &Recording<'_>) -> u64 {
    recording.lanes().get(LaneId::RECORDER).map_or(0, |lane| lane.end)
}

fn uncounted<'r>(recording: &'r Recording<'_>) -> impl Iterator<Item = &'r Missing> {
    recording.missing().iter().filter(|missing| missing.position.is_none())
}

fn gap_record(missing: &Missing, position: u64) -> Record {
    let gap = &missing.gap;
    let payload = Gap {
        first: gap.first,
        last: gap.last,
        records: gap.records,
        groups: gap.groups,
        planes: gap.planes,
        lane: gap.lane.unwrap_or(LaneId::RECORDER),
        reason: gap.reason,
    };
    let header = RecordHeader::of::<Gap>(Level::PULSE);
    Record::new(RecordHeader { ticks: gap.first, seq: position as u32, ..header }, &payload)
}

/// The closing frames; the terminal is the last.
pub(super) fn frames(recording: &Recording<'_>, file: &mut File<'_>) -> io::Result<()> {
    let meta = recording.meta();
    let open = meta.open_spans.iter().copied().map(Frame::OpenSpan);
    let cost = meta.cost.into_iter().map(Frame::RecorderCost);
    file.frames(
        open.chain(totals(recording).map(Frame::Totals))
            .chain(cost)
            .chain([Frame::Terminal(terminal(recording))]),
    )
}

/// The counters of the lanes; those of the recorder's own count the gaps that were added. Counters
/// that are less than what is there are wrong, and left out.
fn totals(recording: &Recording<'_>) -> impl Iterator<Item = TotalsV1> {
    let added = uncounted(recording).count() as u64;
    recording.lanes().iter().filter_map(move |(id, lane)| {
        let totals = lane.totals.filter(|totals| totals.records >= lane.next)?;
        if id != LaneId::RECORDER || added == 0 {
            return Some(totals);
        }
        let records = own_end(recording).saturating_add(added);
        Some(TotalsV1 { records, ..totals })
    })
}

/// How the run ended, or that nobody knows.
fn terminal<'r>(recording: &Recording<'r>) -> TerminalV1<'r> {
    recording.meta().terminal.unwrap_or_else(|| {
        let reason = match recording.trailer() {
            Some(_) => "salvaged: what the file said of the run's end is damaged",
            None => "salvaged: the file breaks off before the run's end",
        };
        let ticks = recording.span().map(|span| span.1).unwrap_or_default();
        TerminalV1 { complete: false, reason: Some(reason), ticks }
    })
}
