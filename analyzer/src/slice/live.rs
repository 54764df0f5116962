//! Storage that is live when a region begins: its allocations, which lie before it.

use std::collections::{BTreeMap, HashMap};

use tmrun_formats::wire::{Alloc, Free, Kind, Record, flags};
use tmrun_formats::{DeviceCode, LaneId, Ticks};

/// Where an event stands: its moment, and for equal moments lane and position.
pub(crate) type At = (Ticks, LaneId, u64);

/// A storage: its device, its number, and whether that is a name's.
type Storage = (DeviceCode, u64, bool);

/// The storages of a part of a recording. Parts can be put together in any order: what a storage's
/// last free in any of them ends is forgotten, so memory is in proportion to what is live and to how
/// many storages there ever were.
#[derive(Debug, Default)]
pub(crate) struct Live(HashMap<Storage, Held>);

/// The storage of an allocation or a free.
fn storage(record: &Record) -> Option<Storage> {
    let named = record.header().flags & flags::STORAGE_NAMED != 0;
    let alloc = record.payload::<Alloc>().map(|alloc| (alloc.device, alloc.storage.0, named));
    alloc.or_else(|| record.payload::<Free>().map(|free| (free.device, free.storage.0, named)))
}

#[derive(Debug, Default)]
struct Held {
    freed: Option<At>,
    /// Allocations behind that: the first, and aliases of the same storage.
    allocated: Vec<At>,
}

impl Held {
    fn free(&mut self, at: At) {
        self.freed = self.freed.max(Some(at));
        let freed = self.freed;
        self.allocated.retain(|&allocated| Some(allocated) > freed);
    }

    fn allocate(&mut self, at: At) {
        if Some(at) > self.freed {
            self.allocated.push(at);
        }
    }
}

impl Live {
    /// Takes in a record at this position of its lane.
    pub(crate) fn record(&mut self, lane: LaneId, position: u64, record: &Record) {
        let at = (record.header().ticks, lane, position);
        let Some(storage) = storage(record) else { return };
        match record.kind() {
            Some(Kind::Free) => self.held(storage).free(at),
            _ => self.held(storage).allocate(at),
        }
    }

    /// Where the storage of this allocation was last freed, if that is behind it.
    pub(super) fn freed(&self, record: &Record) -> Option<(LaneId, u64)> {
        let (at, lane, position) = self.0.get(&storage(record)?)?.freed?;
        (at >= record.header().ticks).then_some((lane, position))
    }

    fn held(&mut self, storage: Storage) -> &mut Held {
        self.0.entry(storage).or_default()
    }

    pub(super) fn merge(mut self, mut other: Self) -> Self {
        if self.0.len() < other.0.len() {
            core::mem::swap(&mut self, &mut other);
        }
        for (storage, theirs) in other.0 {
            let held = self.held(storage);
            theirs.freed.into_iter().for_each(|at| held.free(at));
            theirs.allocated.into_iter().for_each(|at| held.allocate(at));
        }
        self
    }

    /// The allocations of what is live, by lane and position.
    pub(crate) fn allocations(&self) -> BTreeMap<(LaneId, u64), Ticks> {
        let live = self.0.values().flat_map(|held| &held.allocated);
        live.map(|&(at, lane, position)| ((lane, position), at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun_formats::wire::RecordHeader;
    use tmrun_formats::{Level, StorageId};

    fn event(at: u64, storage: u64, allocates: bool) -> Record {
        let storage = StorageId(storage);
        if allocates {
            let header = RecordHeader::of::<Alloc>(Level::METADATA);
            Record::new(
                RecordHeader { ticks: Ticks(at), ..header },
                &Alloc { storage, ..Alloc::default() },
            )
        } else {
            let header = RecordHeader::of::<Free>(Level::METADATA);
            Record::new(
                RecordHeader { ticks: Ticks(at), ..header },
                &Free { storage, ..Free::default() },
            )
        }
    }

    #[test]
    fn what_is_live_does_not_depend_on_how_a_recording_is_dealt_out() {
        let events = [
            event(1, 7, true),
            event(2, 8, true),
            event(3, 7, false),
            event(4, 7, true),
            event(5, 7, true),
            event(6, 9, false),
            event(7, 8, false),
        ];
        for cut in 0..=events.len() {
            let part = |range: std::ops::Range<usize>| {
                let mut live = Live::default();
                for at in range {
                    live.record(LaneId(0), at as u64, &events[at]);
                }
                live
            };
            let (a, b) = (part(0..cut), part(cut..events.len()));
            let merged = if cut % 2 == 0 { a.merge(b) } else { b.merge(a) };
            let live: Vec<u64> = merged.allocations().into_values().map(|at| at.0).collect();
            assert_eq!(live, [4, 5], "cut at {cut}: storage 7, by its second life and an alias");
        }
    }
}
