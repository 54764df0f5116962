//! Host time of spans: all of it, what of it is their own, and what of that is in the measured region.

use super::super::{Index, intervals};
use rayon::prelude::*;
use tmrun_formats::evidence::GraphScope;
use tmrun_formats::trace::{Span, TraceDocument};

/// The host time of every span.
pub(crate) struct Host {
    /// Each span.
    pub spans: Vec<HostTime>,
    /// How each span belongs to the measured one; not at all if that lies in it.
    pub scopes: Vec<Option<GraphScope>>,
    /// How long the measured span took.
    pub measured_ns: u64,
}

/// The host time of one span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostTime {
    /// From begin to end.
    pub total: u64,
    /// Less what hangs under it.
    pub own: u64,
    /// What of the total is in the measured region.
    pub overlap: u64,
    /// What of that is not in what hangs under it.
    pub own_overlap: u64,
}

impl Host {
    pub fn of(trace: &TraceDocument<'_>, index: &Index<'_>) -> Self {
        Self::until(trace, index, 0)
    }

    /// The same, where a span that did not end lasts until `end`, if it began before.
    pub fn until(trace: &TraceDocument<'_>, index: &Index<'_>, end: u64) -> Self {
        let totals = totals(trace, index, end);
        let total = |span: usize| totals.get(span).copied().unwrap_or(0);
        let interval = |span: usize| {
            let start = trace.spans.get(span).map_or(0, |span| span.start_ns);
            (start, start.saturating_add(total(span)))
        };
        let measured = index.tree.measured.first().map(|&span| span as usize);
        let (begin, end) = measured.map_or((0, 0), interval);
        let clip = |(from, until): (u64, u64)| (from.max(begin), until.min(end));
        let time = |below: &mut Vec<(u64, u64)>, span: usize| {
            let ops = index.ops.of(span).filter_map(|op| trace.ops.get(op));
            below.clear();
            below.extend(index.tree.children.of(span).map(interval));
            below.extend(
                ops.map(|op| (op.timestamp_ns, op.timestamp_ns.saturating_add(op.duration_ns))),
            );
            below.sort_unstable();
            let (from, until) = clip(interval(span));
            let overlap = until.saturating_sub(from);
            let below_overlap = intervals::union(below.iter().copied().map(clip));
            HostTime {
                total: total(span),
                own: total(span).saturating_sub(intervals::union(below.iter().copied())),
                overlap,
                own_overlap: overlap.saturating_sub(below_overlap),
            }
        };
        let spans = (0..trace.spans.len()).into_par_iter().with_min_len(1024);
        Self {
            spans: spans.map_init(Vec::new, time).collect(),
            scopes: scopes(index),
            measured_ns: measured.map_or(0, total),
        }
    }

    pub fn time(&self, span: usize) -> HostTime {
        self.spans.get(span).copied().unwrap_or_default()
    }
}

/// How long each span took. One without a duration takes as long as what hangs under it.
fn totals(trace: &TraceDocument<'_>, index: &Index<'_>, end: u64) -> Vec<u64> {
    let duration =
        |span: &Span<'_>| span.duration_ns.unwrap_or_else(|| end.saturating_sub(span.start_ns));
    let durations = trace.spans.iter().map(duration);
    let mut totals: Vec<u64> = durations.collect();
    for &span in index.tree.top_down.iter().rev() {
        let span = span as usize;
        if totals.get(span) == Some(&0) {
            let ops =
                index.ops.of(span).filter_map(|op| trace.ops.get(op)).map(|op| op.duration_ns);
            let children =
                index.tree.children.of(span).filter_map(|child| totals.get(child).copied());
            let below = ops.chain(children).fold(0, u64::saturating_add);
            if let Some(total) = totals.get_mut(span) {
                *total = below;
            }
        }
    }
    totals
}

fn scopes(index: &Index<'_>) -> Vec<Option<GraphScope>> {
    let scope = |&is_inside: &bool| match is_inside {
        true => GraphScope::MeasuredSubtree,
        false => GraphScope::ConcurrentOverlap,
    };
    let mut scopes: Vec<_> = index.tree.in_measured.iter().map(scope).map(Some).collect();
    let mut at = index.tree.measured.first().map(|&span| span as usize);
    // Upwards, until there is no parent or one that was passed before.
    while let Some(span) = at {
        at = index.tree.parents.get(span).and_then(|parent| parent.get());
        match at.and_then(|above| scopes.get_mut(above)) {
            Some(scope) if *scope == Some(GraphScope::ConcurrentOverlap) => *scope = None,
            _ => break,
        }
    }
    scopes
}
