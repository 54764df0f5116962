//! How the new file ends: what was open, the counters, and how the run ended.

use std::io;

use tmrun_formats::wire::{Frame, TerminalV1, TotalsV1};

use super::file::File;
use super::gaps::Gaps;
use crate::scan::Recording;

/// The closing frames; the terminal is the last.
pub(super) fn frames(
    recording: &Recording<'_>,
    gaps: &Gaps<'_>,
    file: &mut File<'_>,
) -> io::Result<()> {
    let meta = recording.meta();
    let open = meta.open_spans.iter().copied().map(Frame::OpenSpan);
    let totals = totals(recording).map(|totals| Frame::Totals(gaps.counted(totals)));
    let cost = meta.cost.into_iter().map(Frame::RecorderCost);
    let terminal = Frame::Terminal(terminal(recording));
    file.frames(open.chain(totals).chain(cost).chain([terminal]))
}

/// The counters of the lanes. Those that are less than what is there are wrong, and left out.
fn totals(recording: &Recording<'_>) -> impl Iterator<Item = TotalsV1> {
    let of_lane = |lane: &crate::scan::Lane<'_>| lane.totals.filter(|t| t.records >= lane.next);
    recording.lanes().iter().filter_map(move |(_, lane)| of_lane(lane))
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
