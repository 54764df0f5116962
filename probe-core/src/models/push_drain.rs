//! A producer and the drain on a ring that drops the newest: what is taken is whole and in order, and
//! what is not was counted.

use super::{Memory, Still, check, value};

/// The checker holds every plain read of a slot against every store to it: the drain may look at
/// published slots as memory, and the producer may store to those that were given back.
#[test]
fn what_is_stored_is_taken_whole_and_the_rest_is_counted() {
    check(3, |turn| {
        let memory = Memory::<2>::claimed();
        let (producer, drain) = (memory.clone(), memory.clone());
        let (stored, mut taken) = turn.both(
            move || (1..=4).filter(|&value| producer.push::<Still>(value, 1)).collect::<Vec<_>>(),
            move || [drain.take(), drain.take()].concat(),
        );
        taken.extend(memory.take());
        let values: Vec<u32> = taken.iter().filter_map(value).collect();
        assert_eq!(values, stored);
        let (dropped, _) = memory.block.end_recording(tmrun_formats::LaneId(0));
        assert_eq!(stored.len() as u64 + dropped, 4);
    });
}

/// A group is published with one store: it is taken whole or not at all.
#[test]
fn a_group_is_taken_whole() {
    check(3, |turn| {
        let memory = Memory::<4>::claimed();
        let (producer, drain) = (memory.clone(), memory.clone());
        let ((), taken) = turn.both(
            move || (1..=2).for_each(|value| assert!(producer.push::<Still>(value, 2))),
            move || [drain.take(), drain.take()],
        );
        for records in &taken {
            let values: Vec<u32> = records.iter().filter_map(value).collect();
            assert!(values.len() % 2 == 0 && values.chunks(2).all(|pair| pair[0] == pair[1]));
        }
        assert_eq!(taken.concat().len() + memory.take().len(), 4);
    });
}
