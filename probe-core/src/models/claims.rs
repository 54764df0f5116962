//! A lane that threads claim one after the other, and the drain that asks who had it.

use loom::sync::Arc;

use super::{Memory, Still, check};

/// Claims the lane if it is free, records once, and gives it back.
fn claim_once<const SLOTS: usize>(memory: &Arc<Memory<SLOTS>>, owner: u32) -> bool {
    let claimed = memory.claim(owner);
    if claimed {
        assert!(memory.push::<Still>(owner, 1), "the ring has room for all");
        memory.block.release();
    }
    claimed
}

/// The numbers of the claims that the drain has not seen yet, each of them whole.
fn new_claims<const SLOTS: usize>(memory: &Memory<SLOTS>) -> Vec<u64> {
    let whole = memory.block.new_claims().inspect(|claim| {
        assert_eq!(u64::from(claim.name.0), claim.thread, "name and thread of one claimer");
        assert_eq!(claim.sequence, claim.number, "and its place, as each records once");
    });
    whole.map(|claim| claim.number).collect()
}

#[test]
fn a_lane_has_one_owner_at_a_time_who_goes_on_where_the_last_one_was() {
    check(3, |turn| {
        let memory = Memory::<4>::new();
        let (one, another) = (memory.clone(), memory.clone());
        let claimed = turn.both(move || claim_once(&one, 1), move || claim_once(&another, 2));
        let claimed = u64::from(claimed.0) + u64::from(claimed.1);
        assert_ne!(claimed, 0);
        assert_eq!(memory.take().len() as u64, claimed, "a record each, none stored over");
        assert_eq!(new_claims(&memory).last(), Some(&(claimed - 1)), "and the last is known");
    });
}

/// Places for two claims are there: the third is written over the first, while the drain may be
/// reading it.
#[test]
fn a_claim_is_seen_whole_or_not_at_all_and_once() {
    check(3, |turn| {
        let memory = Memory::<4>::new();
        let (claimer, drain) = (memory.clone(), memory.clone());
        let ((), mut seen) = turn.both(
            move || (1..=3).for_each(|owner| assert!(claim_once(&claimer, owner))),
            move || new_claims(&drain),
        );
        seen.extend(new_claims(&memory));
        assert!(seen.is_sorted_by(|a, b| a < b), "in order, and none twice");
        assert_eq!(seen.last(), Some(&2), "the last is remembered");
    });
}
