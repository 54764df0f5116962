//! How long devices were busy.

use super::ranks::{self, Ranks, rank};
use super::{Groups, Index, Link, intervals};
use rayon::prelude::*;
use std::borrow::Cow;
use tmrun_formats::evidence::{Timing, TimingClock, TimingSpan};
use tmrun_formats::trace::{CoverageLevel, DeviceInterval, TraceDocument};

/// The union of the intervals of each span on each clock, and of each clock.
#[must_use]
pub fn of<'d>(trace: &'d TraceDocument<'_>, index: &Index<'_>) -> Timing<'d> {
    let intervals = &trace.device_intervals;
    let clocks = Ranks::new(intervals.iter().map(clock));
    let owners = owners(trace, index);
    let mut rows: Vec<_> = (0_u32..).zip(intervals).zip(clocks.of).zip(owners).map(row).collect();
    rows.par_sort_unstable();
    let same =
        |left: &Row<'_>, right: &Row<'_>| left.owner == right.owner && left.clock == right.clock;
    let spans = rows.par_chunk_by(same).filter_map(|rows| span(intervals, rows));
    let device_spans = spans.collect();
    let mut times: Vec<_> = rows.iter().map(|row| (row.clock, row.start, row.end)).collect();
    times.par_sort_unstable();
    let device_clocks = times.chunk_by(|left, right| left.0 == right.0).filter_map(|times| {
        let &(device, clock_id) = clocks.keys.get(times.first()?.0 as usize)?;
        Some(TimingClock {
            device: device.into(),
            clock_id: clock_id.into(),
            interval_count: count(times.len()),
            busy_ns: intervals::union(times.iter().map(|&(_, start, end)| (start, end))),
        })
    });
    let declared = trace.run.capture_contract.device_timing;
    let seen = if intervals.is_empty() { CoverageLevel::None } else { CoverageLevel::Partial };
    Timing {
        device_coverage: declared.max(seen),
        device_spans,
        device_clocks: device_clocks.collect(),
    }
}

/// The rows of [`Timing::device_spans`] of each span.
pub(super) fn by_span(trace: &TraceDocument<'_>, timing: &Timing<'_>) -> Groups {
    let id = |span: usize| trace.spans.get(span).map_or("", |span| &*span.id);
    let mut spans = trace.by_id.iter().copied().peekable();
    // Both are in the order of the spans' ids.
    let owners = timing.device_spans.iter().map(|row| {
        while spans.next_if(|&span| *id(span) < *row.span_id).is_some() {}
        spans
            .peek()
            .filter(|&&span| *id(span) == *row.span_id)
            .map_or(Link::NONE, |&span| Link::to(span))
    });
    let owners: Vec<Link> = owners.collect();
    Groups::new(trace.spans.len(), owners.iter().enumerate().map(|(row, &owner)| (owner, row)))
}

/// An interval, in the order of spans, clocks and times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row<'d> {
    owner: Owner<'d>,
    clock: u32,
    start: u64,
    end: u64,
    interval: u32,
}

/// A span, in the order of ids: its place, or for one that is not in the trace the place that it
/// would have, and its id.
type Owner<'d> = (u64, &'d str);

fn owners<'d>(trace: &'d TraceDocument<'_>, index: &Index<'_>) -> Vec<Owner<'d>> {
    let places = ranks::of_spans(trace);
    let id = |span: usize| trace.spans.get(span).map_or("", |span| &*span.id);
    let owner = |(interval, span): (&'d DeviceInterval<'_>, &Link)| match span.get() {
        Some(span) => (u64::from(rank(&places, span)).saturating_mul(2).saturating_add(1), ""),
        None => {
            let before = trace.by_id.partition_point(|&span| *id(span) < *interval.span_id);
            (count(before).saturating_mul(2), &*interval.span_id)
        }
    };
    trace.device_intervals.iter().zip(&index.interval_spans).map(owner).collect()
}

fn row<'d>(
    (((interval, it), clock), owner): (((u32, &DeviceInterval<'_>), u32), Owner<'d>),
) -> Row<'d> {
    let end = it.start_ns.saturating_add(it.duration_ns);
    Row { owner, clock, start: it.start_ns, end, interval }
}

/// The rows of one span on one clock.
fn span<'d>(intervals: &'d [DeviceInterval<'_>], rows: &[Row<'_>]) -> Option<TimingSpan<'d>> {
    let each = rows.iter().filter_map(|row| intervals.get(row.interval as usize));
    let first = each.clone().next()?;
    Some(TimingSpan {
        span_id: (&*first.span_id).into(),
        device: (&*first.device).into(),
        clock_id: (&*first.clock_id).into(),
        backends: texts(each.clone().map(|interval| &*interval.backend)),
        streams: texts(each.map(|interval| &*interval.stream_id)),
        interval_count: count(rows.len()),
        busy_ns: intervals::union(rows.iter().map(|row| (row.start, row.end))),
    })
}

fn clock<'d>(interval: &'d DeviceInterval<'_>) -> (&'d str, &'d str) {
    (&interval.device, &interval.clock_id)
}

/// Sorted, each once.
fn texts<'d>(texts: impl Iterator<Item = &'d str>) -> Vec<Cow<'d, str>> {
    let mut all: Vec<Cow<'d, str>> = Vec::new();
    for text in texts {
        if all.last().is_none_or(|last| last != text) {
            all.push(text.into());
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
