//! How the new file ends: what was open, the counters, and how the run ended.

use std::collections::BTreeMap;
use std::io;

use tmrun_formats::wire::{Frame, OpenSpanV1, Span, TerminalV1};
use tmrun_formats::{LaneId, SpanId};

use super::ended::{BREAKS_OFF, DAMAGED};
use crate::rewrite::{File, Gaps};
use crate::scan::Recording;

/// The closing frames; the terminal is the last.
pub(super) fn frames(
    recording: &Recording<'_>,
    gaps: &Gaps,
    file: &mut File<'_>,
) -> io::Result<()> {
    let meta = recording.meta();
    let open = open_spans(recording).into_values().map(Frame::OpenSpan);
    let totals = recording.lanes().iter().filter_map(|(_, lane)| lane.counters());
    let totals = totals.map(|totals| Frame::Totals(gaps.counted(totals)));
    let cost = meta.cost.into_iter().map(Frame::RecorderCost);
    let terminal = terminal(recording).map(Frame::Terminal);
    file.frames(open.chain(totals).chain(cost).chain(terminal))
}

/// The spans that are open at the end, each once: the recorder may have written its end, and then
/// more than that was found in the rings.
fn open_spans(recording: &Recording<'_>) -> BTreeMap<(LaneId, SpanId), OpenSpanV1> {
    let open = recording.meta().open_spans.iter();
    let mut open: BTreeMap<_, _> = open.map(|open| ((open.lane, open.span), *open)).collect();
    if open.is_empty() {
        return open;
    }
    for chunk in recording.record_chunks() {
        for record in chunk.records() {
            if let Some(span) = record.payload::<Span>() {
                open.remove(&(chunk.lane(), span.id(record.header().span)));
            }
        }
    }
    open
}

/// How the run ended, or that nobody knows; nothing where the recording goes on in another file.
fn terminal<'r>(recording: &Recording<'r>) -> Option<TerminalV1<'r>> {
    if recording.goes_on() {
        return None;
    }
    Some(recording.meta().terminal.unwrap_or_else(|| {
        let reason = match recording.trailer() {
            Some(_) => DAMAGED,
            None => BREAKS_OFF,
        };
        let ticks = recording.span().map(|span| span.1).unwrap_or_default();
        TerminalV1 { complete: false, reason: Some(reason), ticks }
    }))
}
