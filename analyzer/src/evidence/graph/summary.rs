//! What stands out.

use super::super::Groups;
use super::Context;
use super::nodes::is_scope;
use std::cmp::Reverse;
use tmrun_formats::evidence::{
    GraphDeviceCost, GraphHeavySpan, GraphHostCost, GraphSummary, Timing,
};
use tmrun_formats::trace::Span;

/// How many entries a list has.
const MOST: usize = 8;

pub(super) fn of<'d>(
    context: &Context<'_, 'd, '_>,
    timing: &Timing<'d>,
    rows: &Groups,
) -> GraphSummary<'d> {
    let Context { trace, index, host, storage, .. } = *context;
    let spans = || trace.by_id.iter().filter_map(|&at| Some((at, trace.spans.get(at)?)));
    let inside = |at: usize| index.tree.in_measured.get(at) == Some(&true);

    let mut slowest = Top::default();
    for (at, _) in spans().filter(|(_, span)| is_scope(span)) {
        let time = host.time(at);
        let scope = host.scopes.get(at).copied().flatten();
        if let Some(scope) = scope.filter(|_| time.overlap > 0) {
            slowest.see((time.own_overlap, time.own), (at, scope));
        }
    }
    let mut busiest = Top::default();
    for (at, _) in spans().filter(|&(at, _)| inside(at)) {
        for row in rows.of(at).filter_map(|row| timing.device_spans.get(row)) {
            busiest.see(row.busy_ns, (at, row));
        }
    }
    let mut heaviest = Top::default();
    for (at, _) in spans().filter(|&(at, span)| inside(at) && is_scope(span)) {
        if let Some(bytes) = storage.of_span(at) {
            heaviest.see(bytes, at);
        }
    }

    let span = |at: usize| -> Option<&'d Span<'_>> { trace.spans.get(at) };
    let slowest = slowest.in_order().filter_map(|(_, (at, scope))| {
        let time = host.time(at);
        Some(GraphHostCost {
            id: (&*span(at)?.id).into(),
            name: (&*span(at)?.name).into(),
            scope,
            host_self_time_ns: time.own,
            measured_overlap_self_time_ns: time.own_overlap,
            full_duration_ns: time.total,
            measured_overlap_duration_ns: time.overlap,
        })
    });
    let busiest = busiest.in_order().filter_map(|(device_busy_ns, (at, row))| {
        Some(GraphDeviceCost {
            id: (&*span(at)?.id).into(),
            name: (&*span(at)?.name).into(),
            device: row.device.clone(),
            clock_id: row.clock_id.clone(),
            device_busy_ns,
        })
    });
    let heaviest = heaviest.in_order().filter_map(|(allocated_bytes, at)| {
        Some(GraphHeavySpan {
            id: (&*span(at)?.id).into(),
            name: (&*span(at)?.name).into(),
            allocated_bytes,
            peak_live_bytes: storage.peak(at).map(|peak| peak.bytes),
        })
    });
    GraphSummary {
        entrypoint: (&*trace.run.entrypoint).into(),
        outer_wall_time_ns: host.measured_ns,
        slowest_host_spans: slowest.collect(),
        slowest_device_spans: busiest.collect(),
        heaviest_spans: heaviest.collect(),
    }
}

/// The greatest of what was seen; of equals the first ones.
struct Top<K, T>(Vec<(Reverse<K>, T)>);

impl<K, T> Default for Top<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, T> Top<K, T> {
    fn see(&mut self, key: K, what: T) {
        let key = Reverse(key);
        let place = self.0.partition_point(|(other, _)| *other <= key);
        if place < MOST {
            self.0.insert(place, (key, what));
            self.0.truncate(MOST);
        }
    }

    fn in_order(self) -> impl Iterator<Item = (K, T)> {
        self.0.into_iter().map(|(Reverse(key), what)| (key, what))
    }
}
