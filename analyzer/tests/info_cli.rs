//! What `tmrun info` works out: the cost of recording, and how large the rings should have been.

mod support;

use serde_json::Value;
use support::command::Folder;
use support::record::{gap, scalar, span, step, tensor};
use support::{Builder, damaged_second_step, run};
use tmrun_formats::wire::{Frame, RecorderCostV1, RunV1, TotalsV1};
use tmrun_formats::{GapReason, LaneId};

/// Two steps of a millisecond each on a clock of a tick a nanosecond, at 20 ns a record and 50 ns a
/// span, in rings of 1,024 records.
fn timed(high_water: u64, cost: RecorderCostV1, ring_slots: u64) -> Vec<u8> {
    let totals =
        |lane, records| TotalsV1 { lane: LaneId(lane), records, high_water, ..TotalsV1::default() };
    Builder::new()
        .meta(&[Frame::Run(RunV1 { ring_slots, ..run() })])
        .records(
            0,
            &[
                step(1_000_000, 1, false),
                span(1_100_000, 1_200_000, 1, 1),
                tensor(1_300_000, 2),
                step(1_999_000, 1, true),
                step(2_000_000, 2, false),
                span(2_100_000, 2_200_000, 2, 1),
                scalar(2_300_000, 2, 0.5),
                step(3_000_000, 2, true),
            ],
        )
        .meta(&[Frame::Totals(totals(0, 8)), Frame::RecorderCost(cost)])
        .unfinished()
}

const COST: RecorderCostV1 = RecorderCostV1 { record: 20_000, span: 50_000, unnamed: 0 };

fn info(file: &[u8]) -> (String, Value) {
    let folder = Folder::with(file);
    let (_, page, _) = folder.tmrun(&["info", "in.tmrun"]);
    let (_, json, _) = folder.tmrun(&["info", "--json", "in.tmrun"]);
    (page, serde_json::from_str(&json).expect("JSON"))
}

#[test]
fn the_cost_of_a_step_is_shown_by_level_and_as_a_share_of_it() {
    let (page, json) = info(&timed(100, COST, 1_024));
    // Six records at 20 ns and two spans at 50: 110 ns a step of 1 ms.
    assert!(page.contains("110 ns a step, 0.011% of it"), "{page}");
    assert!(page.contains("a step: 50.0 ns at level 0, 50.0 ns at level 1"), "{page}");
    let cost = &json["recorder_cost"];
    assert_eq!(cost["estimated_ns_per_step"], 110.0);
    let levels = [50.0, 50.0, 10.0, 0.0].map(Value::from);
    assert_eq!(cost["estimated_ns_per_step_by_level"].as_array(), Some(&levels.to_vec()));
    assert_eq!(cost["estimated_share_of_step"], 0.00011);
}

#[test]
fn the_headroom_of_the_fullest_ring_is_shown() {
    let (page, json) = info(&timed(256, COST, 1_024));
    assert!(page.contains("1,024 records a ring, at most 256 waited (lane 0): 75% free"), "{page}");
    assert!(page.contains("256 (25%)"), "{page}");
    let rings = &json["rings"];
    assert_eq!((&rings["slots"], &rings["headroom"]), (&1_024.into(), &0.75.into()));
    assert_eq!((&rings["worst_burst"], &rings["slots_needed"]), (&Value::Null, &Value::Null));
}

#[test]
fn after_drops_the_smallest_ring_that_would_have_held_them_is_shown() {
    let drops = |at: u64, records| gap(at, at + 10, records, 0, GapReason::OVERRUN);
    let file = Builder::new()
        .meta(&[Frame::Run(RunV1 { ring_slots: 1_024, ..run() })])
        .records(0, &[drops(1_000_000, 900), drops(1_000_100, 400), drops(9_000_000, 1_000)])
        .unfinished();
    let (page, json) = info(&file);
    let line = "a ring of about 4,096 would have held the worst burst, 1,300 records (lane 0)";
    assert!(page.contains(line), "{page}");
    let rings = &json["rings"];
    assert_eq!((&rings["worst_burst"], &rings["slots_needed"]), (&1_300.into(), &4_096.into()));
}

#[test]
fn numbers_that_cannot_be_true_give_no_share_and_no_ring() {
    let absurd = RecorderCostV1 { record: u64::MAX, span: u64::MAX, unnamed: 0 };
    let (page, json) = info(&timed(u64::MAX, absurd, 1_024));
    assert!(!page.contains('%'), "{page}");
    assert_eq!(json["recorder_cost"]["estimated_share_of_step"], Value::Null);
    assert_eq!(json["rings"]["high_water"], Value::Null);
    let (_, json) = info(&timed(5, COST, u64::MAX));
    assert_eq!(json["rings"], Value::Null);
    let all = gap(1_000, 2_000, u64::MAX, 0, GapReason::OVERRUN);
    let (page, json) = info(&Builder::started().records(0, &[all]).unfinished());
    assert!(page.contains("no ring would have held the worst burst"), "{page}");
    assert_eq!(json["rings"]["slots_needed"], Value::Null);
}

#[test]
fn a_step_that_may_have_been_lost_is_3_and_one_that_is_not_there_1() {
    let (whole, damaged) = damaged_second_step();
    let folder = Folder::with(&whole);
    let (code, _, err) = folder.tmrun(&["convert", "--step", "7", "in.tmrun"]);
    assert_eq!(code, 1, "{err}");
    let folder = Folder::with(&damaged);
    let (code, out, err) = folder.tmrun(&["convert", "--step", "2", "in.tmrun"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("step 2 is not in what is left of it, and may be in what was lost"),
        "{err}"
    );
    assert!(out.contains("\"corrupt\""), "{out}");
}

#[test]
fn findings_are_listed_up_to_a_bound_and_the_rest_is_counted() {
    let mut builder = Builder::new();
    for i in 0..10_005_u64 {
        // Each leaves a hole.
        builder = builder.skip(0, 1).records(0, &[scalar(1_000 + i, 2, 1.0)]);
        if i % 1_000 == 999 {
            builder = builder.index();
        }
    }
    let folder = Folder::with(&builder.unfinished());
    let (code, json, _) = folder.tmrun(&["verify", "--json", "in.tmrun"]);
    assert_eq!(code, 1);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(10_000));
    assert_eq!(json["more_findings"], 5);
    let (_, page, _) = folder.tmrun(&["verify", "in.tmrun"]);
    assert!(page.contains("… and 5 more") && page.contains("10,005 findings"), "…");
}
