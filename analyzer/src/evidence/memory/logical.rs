//! Storages as the program allocates them.

use super::super::{Index, Link};
use super::live::Live;
use super::{Lifetime, Lifetimes};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tmrun_formats::evidence::{
    LogicalDeviceMemory, LogicalMemory, LogicalMemoryPeak, LogicalMemoryPoint, StorageLifetime,
};
use tmrun_formats::trace::TraceDocument;

/// What became of storages; nothing without an event.
pub(super) fn of<'d>(
    trace: &'d TraceDocument<'_>,
    index: &Index<'d>,
    lifetimes: &Lifetimes,
) -> Option<LogicalMemory<'d>> {
    if trace.memory.is_empty() {
        return None;
    }
    let time = |place: u32| trace.memory.get(place as usize).map_or(0, |event| event.timestamp_ns);
    let mut sweep = Sweep { trace, lifetimes, live: Live::default(), by_device: BTreeMap::new() };
    let mut timeline: Vec<LogicalMemoryPoint<'d>> = Vec::new();
    let mut allocations = 0_usize;
    let mut peak: Option<(LogicalMemoryPoint<'d>, usize)> = None;
    let mut position = 0_usize;
    for events in index.storages.by_time.chunk_by(|&left, &right| time(left) == time(right)) {
        let Some(&first) = events.first() else { continue };
        for &place in events {
            allocations = allocations.saturating_add(usize::from(sweep.pass(position, place)));
            position = position.saturating_add(1);
        }
        let timestamp_ns = time(first);
        sweep.mark(events, timestamp_ns);
        let point = sweep.live.point(timestamp_ns);
        let highest = peak.as_ref().map(|(peak, _)| peak.live_bytes);
        if allocations > 0 && highest.is_none_or(|highest| point.live_bytes > highest) {
            peak = Some((point.clone(), position));
        }
        timeline.push(point);
    }
    let by_device: Vec<_> = sweep.by_device.into_values().collect();
    let sum = |of: fn(&LogicalDeviceMemory<'_>) -> u64| {
        by_device.iter().map(of).fold(0, u64::saturating_add)
    };
    let written = Written { trace, index, lifetimes };
    Some(LogicalMemory {
        storage_allocation_count: sum(|device| device.storage_allocation_count),
        matched_storage_free_count: sum(|device| device.matched_storage_free_count),
        total_allocated_bytes: sum(|device| device.total_allocated_bytes),
        peak: peak.map(|(point, until)| LogicalMemoryPeak {
            timestamp_ns: point.timestamp_ns,
            live_bytes: point.live_bytes,
            live_bytes_by_device: point.live_bytes_by_device,
            live_bytes_by_category: point.live_bytes_by_category,
            live_allocations: written.live(until),
        }),
        timeline,
        lifetimes: written.all(),
        by_device,
    })
}

/// A walk through the events by their times.
struct Sweep<'t, 'd, 'a> {
    trace: &'d TraceDocument<'a>,
    lifetimes: &'t Lifetimes,
    live: Live<'d>,
    by_device: BTreeMap<&'d str, LogicalDeviceMemory<'d>>,
}

impl Sweep<'_, '_, '_> {
    /// Takes one event; says whether it allocates.
    fn pass(&mut self, position: usize, place: u32) -> bool {
        let Some(event) = self.trace.memory.get(place as usize) else { return false };
        let device: &str = &event.device;
        let counts = self.by_device.entry(device).or_insert_with(|| LogicalDeviceMemory {
            device: device.into(),
            storage_allocation_count: 0,
            matched_storage_free_count: 0,
            total_allocated_bytes: 0,
            peak_live_bytes: None,
            peak_timestamp_ns: None,
        });
        let lifetime = self.lifetimes.at.get(position).and_then(|at| at.of(&self.lifetimes.all));
        let Some(lifetime) = lifetime else { return false };
        let Some(allocation) = lifetime.allocation(self.trace) else { return false };
        let (category, bytes) = (allocation.category, allocation.bytes);
        let begins = lifetime.begins as usize == position;
        if begins {
            self.live.add(device, category, bytes);
            counts.storage_allocation_count = counts.storage_allocation_count.saturating_add(1);
            counts.total_allocated_bytes = counts.total_allocated_bytes.saturating_add(bytes);
        } else if lifetime.ends == Link::to(position) {
            self.live.remove(device, category, bytes);
            counts.matched_storage_free_count = counts.matched_storage_free_count.saturating_add(1);
        }
        begins
    }

    /// Ends a point in time: what is live now is the most so far of its devices, or is not. Those
    /// that no event was of have not changed.
    fn mark(&mut self, events: &[u32], timestamp_ns: u64) {
        for event in events.iter().filter_map(|&place| self.trace.memory.get(place as usize)) {
            let Some(counts) = self.by_device.get_mut(&*event.device) else { continue };
            let bytes = self.live.on_device(&event.device);
            if counts.storage_allocation_count > 0
                && counts.peak_live_bytes.is_none_or(|peak| bytes > peak)
            {
                counts.peak_live_bytes = Some(bytes);
                counts.peak_timestamp_ns = Some(timestamp_ns);
            }
        }
    }
}

/// Lifetimes as they are published.
struct Written<'t, 'd, 'a> {
    trace: &'d TraceDocument<'a>,
    index: &'t Index<'d>,
    lifetimes: &'t Lifetimes,
}

impl<'d> Written<'_, 'd, '_> {
    /// Every one, with all tensors that it ever had.
    fn all(&self) -> Vec<StorageLifetime<'d>> {
        let all = self.lifetimes.all.iter().enumerate();
        all.filter_map(|(place, one)| self.one(place, one, one.end_ns, usize::MAX)).collect()
    }

    /// Those that are live before a position, with what is known of them there.
    fn live(&self, before: usize) -> Vec<StorageLifetime<'d>> {
        let live = |one: &Lifetime| {
            (one.begins as usize) < before && one.ends.get().is_none_or(|ends| ends >= before)
        };
        let all = self.lifetimes.all.iter().enumerate().filter(|(_, one)| live(one));
        all.filter_map(|(place, one)| self.one(place, one, None, before)).collect()
    }

    fn one(
        &self,
        place: usize,
        lifetime: &Lifetime,
        end_timestamp_ns: Option<u64>,
        before: usize,
    ) -> Option<StorageLifetime<'d>> {
        let event = lifetime.allocation(self.trace)?;
        let seen = self.lifetimes.positions.of(place).take_while(|&position| position < before);
        let by_time = &self.index.storages.by_time;
        let events = seen.filter_map(|position| by_time.get(position));
        let events = events.filter_map(|&place| self.trace.memory.get(place as usize));
        let mut tensor_ids: Vec<Cow<'d, str>> = Vec::new();
        for id in events.map(|event| &*event.tensor_id) {
            if tensor_ids.last().is_none_or(|last| last != id) {
                tensor_ids.push(id.into());
            }
        }
        tensor_ids.sort_unstable();
        tensor_ids.dedup();
        Some(StorageLifetime {
            device: (&*event.device).into(),
            storage_id: (&*event.storage_id).into(),
            tensor_ids,
            allocation_span_id: (&*event.span_id).into(),
            op_name: event.op_name.as_deref().map(Cow::Borrowed),
            bytes: event.bytes,
            shape: (&*event.shape).into(),
            dtype: (&*event.dtype).into(),
            category: event.category,
            start_timestamp_ns: lifetime.start_ns,
            end_timestamp_ns,
        })
    }
}
