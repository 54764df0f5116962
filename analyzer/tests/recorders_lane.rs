//! Damage of the recorder's own lane: a slice says of which lane it is, as the recording does.

#[path = "support/steps.rs"]
mod steps;
mod support;

use steps::told;
use support::Builder;
use support::naive::chunks;
use support::record::{level, scalar, step};
use tmrun_formats::wire::{ContractV1, Frame};

/// Step 2 on lane 0; lane 1 is in a later step alone.
fn file() -> Vec<u8> {
    let contract = ContractV1 { operations: 2, ..ContractV1::default() };
    let worker = Frame::Lane(support::lane(1, "worker"));
    Builder::started()
        .meta(&[Frame::Contract(contract), worker])
        .records(u16::MAX, &[level(900, 910, 3, 3)])
        .records(0, &[step(940, 1, false), step(990, 1, true), step(1_000, 2, false)])
        .records(0, &[scalar(1_100, 2, 0.5), step(1_900, 2, true)])
        .records(0, &[step(2_000, 3, false), step(2_900, 3, true)])
        .records(1, &[step(2_100, 3, false), step(2_800, 3, true)])
        .records(u16::MAX, &[level(3_000, 3_010, 3, 2)])
        .finish()
}

#[test]
fn what_the_recorders_lane_lacks_is_no_mark_of_a_step_in_a_slice_either() {
    for nth in 0..2 {
        let mut file = file();
        let lost = chunks(&file).into_iter().filter(|c| c.kind == 1 && c.lane == u16::MAX).nth(nth);
        file[lost.expect("a chunk").offset + 70] ^= 1;
        for number in [2, 3] {
            // The slice tells the same.
            assert_eq!(told(&file, number).outcome, "complete", "chunk {nth}, step {number}");
        }
    }
}

#[test]
fn what_nobody_counted_of_the_recorders_lane_is_of_no_lane_in_both() {
    // A chunk of it that stands where it has been already.
    let mut file = file();
    let all = chunks(&file);
    let of_recorder = |c: &&support::naive::NaiveChunk| c.kind == 1 && c.lane == u16::MAX;
    let last = all.iter().rfind(of_recorder).expect("a chunk").offset;
    file[last + 24..last + 32].fill(0);
    support::patch::header_crc(&mut file, last);
    for number in [2, 3] {
        told(&file, number);
    }
}
