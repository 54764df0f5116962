//! Steps whose numbers repeat are not one invocation, whichever of their marks are lost.

mod support;

use support::Builder;
use support::naive::chunks;
use support::record::{scalar, step};
use tmrun::scan::Recording;
use tmrun::slice::{Region, RegionError, slice};
use tmrun::trace::Trace;
use tmrun_formats::trace::RunOutcome;

/// What a step is when these chunks are lost of those of a lane: refused, complete, or why not.
fn told(records: &[&[tmrun_formats::wire::Record]], lost: &[usize], number: u64) -> String {
    let file = records.iter().fold(Builder::started(), |file, records| file.records(0, records));
    let whole = file.finish();
    let mut file = whole.clone();
    // The first chunk is metadata.
    lost.iter().for_each(|at| file[chunks(&whole)[at + 1].offset + 100] ^= 1);
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!(recording.lost().count(), lost.len());
    let region = match Region::of(&recording, Some(number)) {
        Err(RegionError::Repeated { times, .. }) => return format!("there {times} times"),
        region => region.expect("the step"),
    };
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let mut part = Vec::new();
    slice(&recording, &region, &mut part).expect("memory");
    let part = Recording::open(&part, "slice").expect("a header");
    assert_eq!(Region::of(&part, Some(number)), Ok(region.clone()));
    match derived.document.terminal.outcome {
        RunOutcome::Complete => "complete".to_owned(),
        RunOutcome::Failed => {
            assert!(lost.is_empty() || !derived.told.gaps.is_empty(), "it names the gap");
            derived.document.terminal.reason.expect("a reason").into_owned()
        }
    }
}

#[test]
fn a_number_that_repeats_is_no_invocation_whichever_marks_are_lost() {
    let begin = |at, number| step(at, number, false);
    let end = |at, number| step(at, number, true);
    let records: [&[_]; 8] = [
        &[begin(1_000, 5)],
        &[end(1_900, 5)],
        &[begin(2_000, 6)],
        &[end(2_900, 6)],
        &[begin(3_000, 5)],
        &[end(3_900, 5)],
        &[begin(4_000, 7)],
        &[end(4_900, 7)],
    ];
    assert_eq!(told(&records, &[], 5), "there 2 times");
    for lost in [0, 1, 4, 5] {
        assert_eq!(told(&records, &[lost], 5), "there 2 times", "mark {lost} is lost");
    }
    // The first end and the second beginning: what is left could be one step around another.
    assert_eq!(told(&records, &[1, 4], 5), "the end of step 5 is lost");
    // An end, and a beginning behind it.
    assert_eq!(told(&records, &[0, 5], 5), "there 2 times");
    assert_eq!(told(&records, &[], 6), "complete");
    assert_eq!(told(&records, &[1], 7), "complete");
}

#[test]
fn a_step_around_another_one_is_one_invocation_also_where_something_is_lost_in_it() {
    let records: [&[_]; 6] = [
        &[step(1_000, 5, false), scalar(1_100, 2, 0.5)],
        &[scalar(1_200, 2, 0.5)],
        &[step(1_300, 6, false)],
        &[scalar(1_400, 2, 0.5)],
        &[step(1_500, 5, true), step(1_900, 6, true)],
        &[scalar(2_000, 2, 0.5)],
    ];
    assert_eq!(told(&records, &[], 5), "complete");
    assert_eq!(told(&records, &[1], 5), "complete");
    assert_eq!(told(&records, &[3], 5), "complete");
}
