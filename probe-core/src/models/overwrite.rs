//! A producer and the drain on a ring that keeps the newest: a record that is stored over while it is
//! copied is never taken for a whole one.

use tmrun_formats::wire::Record;

use super::{Memory, Still, check, value};
use crate::clock::Overwrite;
use crate::drain::take::{Copied, copy_whole};

/// Takes what is whole, as the drain does. Returns the values, and how many positions were lost.
fn take<const SLOTS: usize>(memory: &Memory<SLOTS>) -> (Vec<u32>, u64) {
    let (block, tail) = (&memory.block, memory.block.taken());
    let head = block.observe_head();
    let mut copied = [Record::default(); 8];
    let Copied { lapped, first, records } =
        copy_whole(block, &memory.slots, tail..head, &mut copied);
    assert_eq!(first, lapped, "nothing is torn that was not stored over");
    for (position, record) in (first..).zip(records) {
        assert_eq!(u64::from(record.header().seq), position, "a record is at its position");
        assert_eq!(value(record).map(u64::from), Some(position), "and all of it is its own");
    }
    block.take_until(first + records.len() as u64);
    (records.iter().filter_map(value).collect(), first - tail)
}

#[test]
fn a_record_that_is_stored_over_while_it_is_copied_is_lost_and_never_torn() {
    check(3, |turn| {
        let memory = Memory::<2>::claimed();
        let (producer, drain) = (memory.clone(), memory.clone());
        let ((), (mut values, mut lost)) = turn.both(
            move || (0..3).for_each(|value| assert!(producer.push::<Overwrite<Still>>(value, 1))),
            move || take(&drain),
        );
        let (rest, more) = take(&memory);
        values.extend(rest);
        lost += more;
        assert!(values.is_sorted_by(|a, b| a < b), "in order, and none twice");
        assert_eq!(values.len() as u64 + lost, 3);
        assert!(values.ends_with(&[2]), "the newest is there");
    });
}
