//! The end of a recording, and the begin of the next, while a producer drops records: each drop is
//! told of once, by a Gap record of the producer's or by the closing gap.

use tmrun_formats::LaneId;
use tmrun_formats::wire::{Gap, Record};

use super::{Memory, Still, check, value};
use crate::drain::begin;

const LANE: LaneId = LaneId(0);

/// What a recording has.
#[derive(Default)]
struct Recorded {
    stored: u64,
    told: u64,
}

impl Recorded {
    fn take(&mut self, memory: &Memory<2>) {
        let taken = memory.take();
        self.stored += taken.iter().filter_map(value).count() as u64;
        let gaps = taken.iter().filter_map(Record::payload::<Gap>);
        self.told += gaps.map(|gap| gap.records).sum::<u64>();
    }

    /// Its records and its drops, which its gaps tell of exactly.
    fn end(mut self, memory: &Memory<2>) -> u64 {
        self.take(memory);
        let (dropped, closing) = memory.block.end_recording(LANE);
        self.told += closing.map_or(0, |gap| gap.records);
        assert_eq!(self.told, dropped, "every drop is told of, once");
        self.stored + dropped
    }
}

#[test]
fn a_drop_is_told_of_once_whoever_comes_first() {
    check(2, |turn| {
        let memory = Memory::<2>::claimed();
        // The ring is full, and one record is pending in a gap.
        assert_eq!((1..=3).filter(|&value| memory.push::<Still>(value, 1)).count(), 2);
        let (producer, drain) = (memory.clone(), memory.clone());
        let (_, (recorded, second)) = turn.both(
            move || (4..=5).filter(|&value| producer.push::<Still>(value, 1)).count(),
            move || {
                let first = Recorded::default().end(&drain);
                let between = begin::<Still>(LANE, &drain.block, &drain.slots);
                let mut second = Recorded::default();
                second.take(&drain);
                (first + between, second)
            },
        );
        let all = recorded + second.end(&memory) + memory.block.unrecorded();
        assert_eq!(all, 5, "every one is somewhere");
    });
}
