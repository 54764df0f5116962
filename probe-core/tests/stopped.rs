//! A drain that stopped looking, and one that has much to close: the loop waits for neither.

mod support;

use std::sync::{Mutex, PoisonError};

use support::read::{OVERRUN, SCALAR};
use support::{Counting, Memory, finish, start};
use tmrun_formats::{Level, NameId};
use tmrun_probe_core::{Probe, scalar};

/// A test of the process's memory runs alone.
static ALONE: Mutex<()> = Mutex::new(());

/// Pages of the process that are in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default()
}

/// With optimisation a hundred million, which is the claim; an interpreter takes too long for more than
/// a few.
const RECORDS: u64 = match (cfg!(miri), cfg!(debug_assertions)) {
    (true, _) => 1_000,
    (_, true) => 4_000_000,
    _ => 100_000_000,
};

#[test]
fn memory_does_not_grow_when_the_drain_has_stopped_and_every_record_is_counted() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let probe = Box::new(Probe::<Counting, 1, 1024, 64>::new());
    let lane = probe.view().claim("loop").unwrap();
    let drain = start(probe.view(), Memory::default(), Level::TIMING);
    (0..2048).for_each(|_| scalar!(lane, "loss", 1.0));
    let before = resident();
    (2048..RECORDS).for_each(|_| scalar!(lane, "loss", 1.0));
    assert!(resident() <= before + 64, "a quarter of a MiB is for everything else that runs");
    let (summary, file) = finish(drain);
    assert_eq!(file.of(SCALAR).len(), 1024);
    assert_eq!(summary.dropped, RECORDS.max(2048) - 1024);
    assert_eq!(file.dropped(0, OVERRUN), summary.dropped);
}

const PENDING: u64 = if cfg!(miri) { 1_000 } else { 1_000_000 };

#[test]
fn closing_writes_what_is_pending_and_no_more_and_counts_what_comes_behind_it() {
    static PROBE: Probe<Counting, 1, { 1 << 20 }, 64> = Probe::new();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let view = PROBE.view();
    let lane = view.claim("loop").unwrap();
    let drain = start(view, Memory::default(), Level::TIMING);
    (0..PENDING).for_each(|value| lane.recorder().scalar(NameId::NONE, value as f64));
    let (summary, sink) = drain.finish(&[support::TERMINAL]);
    (0..10).for_each(|_| lane.recorder().scalar(NameId::NONE, 0.0));
    let sink = sink.unwrap();
    assert_eq!((summary.records, summary.dropped), (PENDING + 1, 0), "and the level's record");
    // Each record once, as it lies in the ring; a header and an entry of the index for every 4,096.
    let (records, chunks) = (PENDING * 64, PENDING.div_ceil(4096));
    assert!(sink.bytes.len() as u64 - records < chunks * 128 + 4096, "{}", sink.bytes.len());
    assert!((sink.writes as u64) < 2 * chunks + 40, "{} writes", sink.writes);
    assert_eq!(view.after_finish(), 10);
}
