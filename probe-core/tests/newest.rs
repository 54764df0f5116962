//! Rings that keep the newest: what is written over before it is taken is a hole of the file, exactly,
//! and groups are there whole or not at all.

mod support;

use proptest::prelude::*;
use support::read::{File, LEVEL, OVERRUN, RECORDER};
use support::{Counting, Memory, finish, start};
use tmrun_formats::{LaneId, Level, NameId, TensorId};
use tmrun_probe_core::{Flush, Lane, OpFact, Overwrite, Probe, ProbeRef, Sink};

type Newest = Overwrite<Counting>;

const TURN: u64 = 1 << 32;

/// One group of `size` records, numbered.
fn push(lane: &Lane<'_, Newest>, size: usize, number: u64) {
    let inputs = [TensorId(number); 75];
    let fact =
        OpFact { output: TensorId(number), inputs: &inputs[..(size - 1) * 5], ..OpFact::default() };
    lane.recorder().op(NameId::NONE, &fact);
}

/// Number and size of every group, in order; each must be whole.
fn groups(file: &File) -> Vec<(u64, usize)> {
    let stored = file.stored(0);
    let groups = stored.chunk_by(|_, next| next.continues()).map(|group| {
        let number = group[0].u64_at(8);
        assert!(!group[0].continues(), "a group has its head");
        assert!(group[1..].iter().all(|input| input.u64_at(0) == number), "and nobody else's end");
        (number, group.len())
    });
    groups.collect()
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The lane's owner records a group of so many records.
    Push(usize),
    /// The drain takes everything.
    Poll,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![9 => (1_usize..=16).prop_map(Event::Push), 1 => Just(Event::Poll)];
    prop::collection::vec(event, 0..200)
}

/// Runs the events, and holds the file against what a ring of that size keeps: of what was not taken,
/// the groups that lie whole in its last `slots` positions.
fn run(probe: ProbeRef<'_, Newest>, events: &[Event]) {
    let slots = probe.ring_slots();
    let lane = probe.claim("producer").unwrap();
    let mut drain = start(probe, Memory::default(), Level::TIMING);
    let (mut waiting, mut kept, mut lost, mut number) = (Vec::new(), Vec::new(), 0, 0);
    for event in events.iter().chain([&Event::Poll]) {
        match *event {
            Event::Push(size) => {
                number += 1;
                push(&lane, size, number);
                waiting.push((number, size));
            }
            Event::Poll => {
                drain.poll(Flush::All).unwrap();
                let mut back = 0;
                let whole = waiting.iter().rev().take_while(|(_, size)| {
                    back += size;
                    back <= slots
                });
                let whole = whole.count();
                let (over, stay) = waiting.split_at(waiting.len() - whole);
                lost += over.iter().map(|(_, size)| *size as u64).sum::<u64>();
                kept.extend_from_slice(stay);
                waiting.clear();
            }
        }
    }
    let (summary, file) = finish(drain);
    assert_eq!(groups(&file), kept);
    assert_eq!((file.lapped(0), summary.dropped), (lost, lost));
    assert_eq!(file.dropped(0, OVERRUN), 0, "nothing is dropped");
    let most = file.totals(0).map_or(0, |totals| totals.high_water);
    assert!(most <= slots as u64, "no more waits than there is room for");
    assert_eq!(probe.after_finish(), 0);
}

fn position() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(TURN - 3), TURN - 200..TURN + 50]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_smallest_ring_keeps_the_whole_groups_of_its_last_positions(
        events in events(),
        position in position(),
    ) {
        let probe = Box::new(Probe::<Newest, 1, 32, 16>::new());
        probe.view().preset_counters(LaneId(0), position, position);
        run(probe.view(), &events);
    }

    #[test]
    fn a_ring_longer_than_what_is_copied_at_once_keeps_them_too(
        events in events(),
        position in position(),
    ) {
        let probe = Box::new(Probe::<Newest, 1, 512, 16>::new());
        probe.view().preset_counters(LaneId(0), position, position);
        run(probe.view(), &events);
    }
}

#[test]
fn an_exact_fit_loses_nothing_and_one_record_more_its_whole_oldest_group() {
    let last = |extra: usize| {
        let probe = Box::new(Probe::<Newest, 1, 32, 16>::new());
        let lane = probe.view().claim("producer").unwrap();
        let drain = start(probe.view(), Memory::default(), Level::TIMING);
        (1..=2).for_each(|number| push(&lane, 16, number));
        (0..extra).for_each(|_| push(&lane, 1, 3));
        let (_, file) = finish(drain);
        (groups(&file), file.lapped(0))
    };
    assert_eq!(last(0), (vec![(1, 16), (2, 16)], 0));
    assert_eq!(last(1), (vec![(2, 16), (3, 1)], 16));
}

/// A sink whose first writes let the lane's owner record: what it writes over lies before the head
/// that the drain has seen, at it, or behind it.
struct Busy<'p> {
    memory: Memory,
    lane: Lane<'p, Newest>,
    left: u64,
    each: u64,
}

impl Sink for &mut Busy<'_> {
    type Error = support::Broken;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), support::Broken> {
        for _ in 0..self.each.min(self.left) {
            push(&self.lane, (self.left % 16) as usize + 1, self.left);
            self.left -= 1;
        }
        self.memory.write(pieces)
    }

    fn cut(&mut self, len: u64) -> Result<(), support::Broken> {
        self.memory.cut(len)
    }
}

#[test]
fn groups_that_are_written_over_between_two_looks_leave_no_end_behind() {
    for each in 1..40 {
        let probe = Box::new(Probe::<Newest, 1, 64, 512>::new());
        let lane = probe.view().claim("producer").unwrap();
        let attempted: u64 = (1..=300_u64).map(|left| left % 16 + 1).sum();
        let mut busy = Busy { memory: Memory::default(), lane, left: 300, each };
        let mut drain = start(probe.view(), &mut busy, Level::TIMING);
        for look in 0..400 {
            // A new name is written between the look at the head and the copy.
            probe.view().name(&format!("node {look}"));
            drain.poll(Flush::All).unwrap();
        }
        let (summary, ended) = drain.finish(&[support::TERMINAL]);
        ended.unwrap();
        let file = File::finished(&busy.memory.bytes);
        let stored = groups(&file);
        assert!(stored.iter().all(|(number, size)| *number % 16 + 1 == *size as u64), "whole");
        assert!(stored.is_sorted_by(|a, b| a.0 > b.0), "in order, and none twice");
        // What was recorded while the header was written came before the recording.
        let before = probe.view().after_finish();
        let all = file.stored(0).len() as u64 + file.lapped(0) + before;
        assert_eq!((all, busy.left), (attempted, 0), "{each} at once");
        assert_eq!(summary.dropped, file.lapped(0));
    }
}

#[test]
fn the_recorders_own_lane_drops_the_newest_here_too() {
    let probe = Box::new(Probe::<Newest, 1, 32, 16>::new());
    let view = probe.view();
    let drain = start(view, Memory::default(), Level::TIMING);
    for i in 0..200_u8 {
        view.set_level(Level(i % 4));
    }
    let (summary, file) = finish(drain);
    assert_eq!(file.of(LEVEL).len(), 64);
    assert_eq!((file.dropped(RECORDER, OVERRUN), summary.dropped), (137, 137));
    assert!(file.holes.is_empty());
}

#[test]
fn what_waits_when_a_recording_begins_is_counted_and_in_none() {
    let probe = Box::new(Probe::<Newest, 1, 32, 16>::new());
    let view = probe.view();
    let lane = view.claim("producer").unwrap();
    (1..=10).for_each(|number| push(&lane, 16, number));
    assert_eq!(view.after_finish(), 160, "written over or not");
    let drain = start(view, Memory::default(), Level::TIMING);
    push(&lane, 3, 11);
    let (_, file) = finish(drain);
    assert_eq!((groups(&file), file.lapped(0)), (vec![(11, 3)], 0));
    assert_eq!(view.after_finish(), 160);
}
