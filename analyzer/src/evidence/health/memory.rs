//! Storages come before they go.

use super::{HealthCode, Issues, Subject};
use crate::evidence::Link;
use std::collections::HashSet;
use tmrun_formats::trace::MemoryAction;

/// A storage between its allocation and its free.
#[derive(Clone, Copy)]
struct Live {
    /// The event that allocated it; no other life has it.
    since: u32,
    bytes: u64,
    /// The tensor that allocated it.
    tensor: Link,
}

/// Memory events in the order of their times, and those of one time in that of the file.
pub(super) fn check(subject: &Subject<'_>, issues: &mut Issues) {
    let Subject { trace, index, .. } = subject;
    let mut storages = vec![None::<Live>; index.storages.first.len()];
    let mut aliases = HashSet::new();
    let mut live = 0_usize;
    for &place in &index.storages.by_time {
        let at = place as usize;
        let storage = index.storages.of_events.get(at).and_then(|storage| storage.get());
        let storage = storage.and_then(|storage| storages.get_mut(storage));
        let (Some(event), Some(storage)) = (trace.memory.get(at), storage) else { continue };
        let tensor = index.tensors.of_memory.get(at).copied().unwrap_or(Link::NONE);
        let what = || {
            let (time, storage, device) = (event.timestamp_ns, &event.storage_id, &event.device);
            format!("memory: {} of {storage:?} on {device:?} at {time} ns", event.action)
        };
        let before = *storage;
        match (event.action, before) {
            (MemoryAction::Alloc, None) => {
                *storage = Some(Live { since: place, bytes: event.bytes, tensor });
                live = live.saturating_add(1);
            }
            (MemoryAction::Free, None) => {
                let message =
                    format!("{}: expected it to be live; was its alloc recorded?", what());
                issues.add(HealthCode::UnpairedFree, message);
            }
            (_, Some(Live { bytes, .. })) if bytes != event.bytes => {
                let message =
                    format!("{}: bytes is {}: expected its size, {bytes}", what(), event.bytes);
                issues.add(HealthCode::AllocationSizeMismatch, message);
            }
            (MemoryAction::Alloc, Some(life)) => {
                if life.tensor == tensor || !aliases.insert((life.since, tensor)) {
                    let tensor = &event.tensor_id;
                    let message = format!("{}: tensor {tensor:?} has allocated it already", what());
                    issues.add(HealthCode::DuplicateAllocation, message);
                }
            }
            (MemoryAction::Free, Some(_)) => {}
        }
        if event.action == MemoryAction::Free && storage.take().is_some() {
            live = live.saturating_sub(1);
        }
    }
    if live > 0 {
        let message =
            format!("storages that are live at the end: {live}; no free of them was recorded");
        issues.add(HealthCode::RetainedAllocations, message);
    }
}
