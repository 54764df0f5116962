//! The storages of a trace.

use super::super::Link;
use std::collections::HashMap;
use tmrun_formats::trace::TraceDocument;

/// The storages of a trace. A storage is a device and an id on it; a later life is of the same one.
#[derive(Debug)]
pub struct Storages {
    /// The storage of each memory event.
    pub of_events: Vec<Link>,
    /// The first event of each storage in the file.
    pub first: Vec<u32>,
    /// The memory events in the order of their times; those of one time in that of the file.
    pub by_time: Vec<u32>,
}

impl Storages {
    pub(super) fn of(trace: &TraceDocument<'_>) -> Self {
        let events = &trace.memory;
        let mut storages = HashMap::new();
        let mut first = Vec::new();
        let mut of_events = Vec::with_capacity(events.len());
        for (place, event) in (0..).zip(events) {
            let storage = storages.entry((&*event.device, &*event.storage_id));
            of_events.push(*storage.or_insert_with(|| {
                first.push(place);
                Link::to(first.len().saturating_sub(1))
            }));
        }
        let mut by_time: Vec<u32> = (0..).zip(events).map(|(place, _)| place).collect();
        by_time.sort_by_key(|&place| events.get(place as usize).map(|event| event.timestamp_ns));
        Self { of_events, first, by_time }
    }
}
