//! Whatever the producer and the drain do, and in whatever order: what is stored is in the file, in
//! order, and what is not is in its gaps, exactly.

mod support;

use proptest::prelude::*;
use support::read::{self, CONTINUES, OVERRUN};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, NameId, Planes, TensorId, Ticks};
use tmrun_probe_core::{Flush, Lane, OpFact, Probe, ProbeRef, span};

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The lane's owner records a group of so many records.
    Push(usize),
    /// The drain looks, and takes all or only what fills a chunk.
    Poll(Flush),
    /// The recording ends, and another begins.
    Restart,
    /// The lane is given back and claimed again.
    Reclaim,
}

/// What a lane's owner has tried since the recording began.
#[derive(Debug, Default, Clone)]
struct Attempts {
    records: u64,
    /// Size and number of every group, in order.
    groups: Vec<(usize, u64)>,
}

type Small = Probe<Counting, 1, 32, 64>;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => (1_usize..=16).prop_map(Event::Push),
        3 => Just(Event::Poll(Flush::All)),
        3 => Just(Event::Poll(Flush::Full)),
        1 => Just(Event::Restart),
        1 => Just(Event::Reclaim),
    ];
    prop::collection::vec(event, 0..120)
}

/// One group of `size` records, numbered.
fn push(lane: &Lane<'_, Counting>, size: usize, number: u64) {
    let inputs = [TensorId(number); 75];
    let inputs = &inputs[..(size - 1) * 5];
    let (start, end) = (Ticks(number * 10), Ticks(number * 10 + 5));
    let fact = OpFact { start, end, output: TensorId(number), inputs, ..OpFact::default() };
    lane.recorder().op(NameId(1), &fact);
}

/// The file holds what was attempted, less what it says was dropped.
fn holds(file: &read::File, attempts: &Attempts) {
    let stored = file.stored(0);
    let dropped = file.dropped(0, OVERRUN);
    assert_eq!(stored.len() as u64 + dropped, attempts.records, "attempted = stored + dropped");
    let mut left = attempts.groups.iter();
    let mut records = stored.iter().peekable();
    while let Some(head) = records.next() {
        assert_eq!((head.kind, head.flags & CONTINUES), (Kind::Op as u8, 0), "whole groups");
        let number = head.u64_at(8);
        let found = left.by_ref().find(|(_, attempt)| *attempt == number);
        let (size, _) = found.expect("groups are stored in the order of their attempts");
        for _ in 1..*size {
            let next = records.next().expect("a group is stored whole");
            assert_eq!((next.kind, next.u64_at(0)), (Kind::OpInput as u8, number));
            assert!(next.continues());
        }
        assert!(records.peek().is_none_or(|next| !next.continues()), "and nothing beyond it");
    }
    let groups: u64 = file.gaps().iter().map(|gap| gap.groups).sum();
    let heads = stored.iter().filter(|record| !record.continues()).count() as u64;
    assert_eq!(heads + groups, attempts.groups.len() as u64, "the same in groups");
    if let Some(totals) = file.totals(0) {
        assert_eq!((totals.dropped_records, totals.dropped_groups), (dropped, groups));
    } else {
        assert_eq!(dropped, 0);
    }
}

fn run(probe: ProbeRef<'_, Counting>, events: &[Event]) {
    let mut lane = Some(probe.claim("producer").unwrap());
    let mut drain = start(probe, Memory::default(), Level::TIMING);
    let mut attempts = Attempts::default();
    let mut number = 0;
    for event in events {
        match *event {
            Event::Push(size) => {
                number += 1;
                attempts.records += size as u64;
                attempts.groups.push((size, number));
                push(lane.as_ref().unwrap(), size, number);
            }
            Event::Poll(flush) => {
                drain.poll(flush).unwrap();
            }
            Event::Restart => {
                let (summary, file) = finish(drain);
                assert_eq!(summary.dropped, file.dropped(0, OVERRUN));
                holds(&file, &std::mem::take(&mut attempts));
                drain = start(probe, Memory::default(), Level::TIMING);
            }
            Event::Reclaim => {
                lane = None;
                lane = lane.or_else(|| probe.claim("producer").ok());
            }
        }
    }
    let (_, file) = finish(drain);
    holds(&file, &attempts);
    assert_eq!(probe.after_finish(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn attempted_is_stored_plus_dropped_at_any_schedule(
        events in events(),
        position in prop_oneof![Just(0_u64), (1_u64 << 32) - 200..(1_u64 << 32) + 50],
    ) {
        let probe = Box::new(Small::new());
        probe.view().preset_counters(tmrun_formats::LaneId(0), position, position);
        run(probe.view(), &events);
    }

    #[test]
    fn what_comes_between_two_recordings_is_counted_and_in_neither(
        before in prop::collection::vec(1_usize..=16, 0..12),
        between in prop::collection::vec(1_usize..=16, 0..12),
        behind in prop::collection::vec(1_usize..=16, 0..12),
    ) {
        let probe = Box::new(Small::new());
        let view = probe.view();
        let lane = view.claim("producer").unwrap();
        let mut number = 0;
        let mut attempt = |sizes: &[usize]| {
            let mut attempts = Attempts::default();
            for &size in sizes {
                number += 1;
                attempts.records += size as u64;
                attempts.groups.push((size, number));
                push(&lane, size, number);
            }
            attempts
        };
        let drain = start(view, Memory::default(), Level::TIMING);
        let first = attempt(&before);
        holds(&finish(drain).1, &first);
        let lost = attempt(&between);
        prop_assert_eq!(view.after_finish(), lost.records);
        let drain = start(view, Memory::default(), Level::TIMING);
        prop_assert_eq!(view.after_finish(), lost.records);
        let second = attempt(&behind);
        holds(&finish(drain).1, &second);
        prop_assert_eq!(view.after_finish(), lost.records);
    }
}

#[test]
fn a_ring_takes_exactly_its_size_and_says_what_it_did_not() {
    let probe = Box::new(Small::new());
    let view = probe.view();
    let lane = view.claim("producer").unwrap();
    let mut drain = start(view, Memory::default(), Level::TIMING);
    for number in 0..2 {
        push(&lane, 16, number);
    }
    push(&lane, 1, 2);
    assert_eq!(poll(&mut drain), 33, "the ring of 32, and the level's record");
    // The gap of one record needs a slot too: 16 + 15 + the gap is an exact fit.
    push(&lane, 16, 3);
    push(&lane, 15, 4);
    push(&lane, 1, 5);
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 2);
    assert_eq!(file.dropped(0, OVERRUN), 2);
    assert_eq!(file.stored(0).len(), 32 + 31);
    let gaps = file.gaps();
    assert_eq!((gaps[0].on, gaps[0].records), (0, 1), "the lane's own gap, at its place");
    assert_eq!((gaps[1].on, gaps[1].records), (read::RECORDER, 1), "the closing gap");
    assert_eq!([gaps[0].first, gaps[0].last], [20, 25], "when the third operation ran");
    assert_eq!([gaps[1].first, gaps[1].last], [50, 55]);
}

#[test]
fn a_gap_waits_until_the_group_behind_it_fits_too() {
    let probe = Box::new(Small::new());
    let view = probe.view();
    let lane = view.claim("producer").unwrap();
    let mut drain = start(view, Memory::default(), Level::TIMING);
    push(&lane, 16, 1);
    push(&lane, 16, 2);
    push(&lane, 16, 3);
    let _ = drain.poll(Flush::All).unwrap();
    push(&lane, 16, 4);
    let _ = drain.poll(Flush::Full).unwrap();
    let (_, file) = finish(drain);
    let on_lane: Vec<_> = file.records.iter().filter(|record| record.lane == 0).collect();
    assert_eq!(on_lane.len(), 49);
    assert_eq!(on_lane[32].gap().map(|gap| (gap.records, gap.groups)), Some((16, 1)));
}

#[test]
fn a_gap_covers_all_that_it_tells_of_in_time_and_in_planes() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("producer").unwrap();
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    let before = lane.recorder().now().0;
    let outer = span!(lane, "outer");
    let between = lane.recorder().now().0;
    let inner = span!(lane, "inner");
    (0..32).for_each(|_| lane.recorder().range(NameId::NONE, &tmrun_probe_core::Range::default()));
    drop(inner);
    lane.recorder().scalar(NameId::NONE, 1.0);
    let late = lane.recorder().now().0;
    // It began first and is lost last.
    drop(outer);
    let after = lane.recorder().now().0;
    let (_, file) = finish(drain);
    let [gap] = file.gaps()[..] else { panic!("one closing gap") };
    assert_eq!((gap.records, gap.groups), (3, 3));
    assert_eq!(gap.planes, Planes::HOST_TIME.union(Planes::SCALARS).0);
    assert!(before < gap.first && gap.first < between, "from the start of the outer span");
    assert!(late < gap.last && gap.last < after, "to its end");
}
