//! A producer and a drain that really run at the same time.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use support::read::OVERRUN;
use support::{Counting, Memory, finish, start};
use tmrun_formats::{Level, NameId, TensorId};
use tmrun_probe_core::{Clock, Flush, OpFact, Overrun, Overwrite, Probe};

/// An interpreter that looks for data races takes a thousand times as long.
const GROUPS: u64 = if cfg!(miri) { 300 } else { 60_000 };
const ROUNDS: u64 = if cfg!(miri) { 5 } else { 200 };

/// The producer pushes `groups` groups of sizes 1 to 16; the drain polls as `flush` says. Returns how
/// many records were dropped and how many written over.
fn race<C: Clock>(groups: u64, flush: impl Fn(u64) -> Flush) -> (u64, u64) {
    let probe = Box::new(Probe::<C, 1, 64, 64>::new());
    let view = probe.view();
    let lane = view.claim("producer").unwrap();
    let mut drain = start(view, Memory::default(), Level::TIMING);
    let done = &AtomicBool::new(false);
    let mut attempted = 0;
    std::thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut attempted = 0;
            for number in 1..=groups {
                let size = (number * 7 % 16 + 1) as usize;
                let inputs = vec![TensorId(number); (size - 1) * 5];
                let fact =
                    OpFact { output: TensorId(number), inputs: &inputs, ..OpFact::default() };
                lane.recorder().op(NameId::NONE, &fact);
                attempted += size as u64;
            }
            done.store(true, Ordering::Release);
            attempted
        });
        let mut polls = 0;
        while !done.load(Ordering::Acquire) {
            drain.poll(flush(polls)).unwrap();
            polls += 1;
        }
        attempted = producer.join().unwrap();
    });
    let (summary, file) = finish(drain);
    let stored = file.stored(0);
    let (dropped, lapped) = (file.dropped(0, OVERRUN), file.lapped(0));
    assert_eq!(stored.len() as u64 + dropped + lapped, attempted);
    assert_eq!(summary.dropped, dropped + lapped);
    let numbers: Vec<_> =
        stored.iter().filter(|record| !record.continues()).map(|r| r.u64_at(8)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, and none twice");
    for group in stored.chunk_by(|_, next| next.continues()) {
        let number = group[0].u64_at(8);
        assert_eq!(group.len() as u64, number * 7 % 16 + 1, "group {number} is whole");
        for input in &group[1..] {
            assert!((0..5).all(|at| input.u64_at(at * 8) == number), "group {number} is not torn");
        }
    }
    assert!(C::OVERRUN == Overrun::DropNewest || numbers.last() == Some(&groups), "the newest");
    (dropped, lapped)
}

#[test]
fn a_drain_that_takes_all_it_sees_loses_nothing_uncounted() {
    assert_eq!(race::<Counting>(GROUPS, |_| Flush::All).1, 0);
}

#[test]
fn a_drain_that_takes_chunks_loses_nothing_uncounted() {
    let flush = |poll| if poll % 64 == 63 { Flush::All } else { Flush::Full };
    assert_eq!(race::<Counting>(GROUPS, flush).1, 0);
}

#[test]
fn what_is_written_over_under_the_drain_is_never_taken_torn_and_is_counted() {
    assert_eq!(race::<Overwrite<Counting>>(GROUPS, |_| Flush::All).0, 0);
}

#[test]
fn a_drain_that_sleeps_finds_the_newest() {
    let flush = |poll| if poll % 64 == 63 { Flush::All } else { Flush::Full };
    assert_eq!(race::<Overwrite<Counting>>(GROUPS, flush).0, 0);
}

/// The recording ends while the producer goes on: the file is whole and agrees with itself, and
/// what came after its end is counted apart.
#[test]
fn a_recording_that_ends_under_a_busy_producer_is_whole() {
    let probe = Box::new(Probe::<Counting, 1, 64, 64>::new());
    let view = probe.view();
    let lane = view.claim("producer").unwrap();
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut attempted = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                lane.recorder().scalar(NameId::NONE, attempted as f64);
                attempted += 1;
            }
            attempted
        });
        let mut accounted = 0;
        for _ in 0..ROUNDS {
            let mut drain = start(view, Memory::default(), Level::TIMING);
            drain.poll(Flush::All).unwrap();
            let (summary, file) = finish(drain);
            assert_eq!(summary.dropped, file.dropped(0, OVERRUN));
            let totals = file.totals(0).map_or(0, |totals| totals.dropped_records);
            assert_eq!(totals, file.dropped(0, OVERRUN));
            accounted += file.stored(0).len() as u64 + totals;
        }
        stop.store(true, Ordering::Relaxed);
        let attempted = producer.join().unwrap();
        assert_eq!(accounted + view.after_finish(), attempted, "every one is somewhere, once");
    });
}
