//! What `--phase`, `--step` and `--schema` select and refuse.

use serde_json::json;
use tmrun::convert::{ConvertError, Options, Plan, Schema};
use tmrun::scan::Recording;
use tmrun_formats::wire::{Gap, Record, Span, flags};
use tmrun_formats::{GapReason, LaneId, Phase, Planes, Ticks};

use crate::make::{BARE, at, convert, document, file, lanes, lines, mark, of, op, rec, tensor};

fn stepped(number: u64, phase: Phase) -> [Record; 4] {
    let start = number * 1_000;
    [
        mark(start, number, phase, false),
        at(start + 10, BARE, 0, &op(start + 20, 0)),
        at(start + 30, BARE, 0, &Span::default()),
        mark(start + 900, number, phase, true),
    ]
}

/// Training steps 1 and 2, then inference step 3.
fn mixed() -> Vec<u8> {
    file(&[stepped(1, Phase(0)), stepped(2, Phase::TRAIN), stepped(3, Phase::INFER)].concat())
}

fn refusal(file: &[u8], options: Options) -> ConvertError {
    convert(file, options).expect_err("refused")
}

fn step(step: u64) -> Options {
    Options { step: Some(step), ..Options::default() }
}

fn phase(phase: Phase) -> Options {
    Options { phase: Some(phase), ..Options::default() }
}

#[test]
fn a_recording_of_two_phases_needs_one() {
    let error = refusal(&mixed(), Options::default());
    assert!(error.is_usage(), "{error}");
    assert!(error.to_string().contains("train and infer"), "{error}");
    let train = document(&mixed(), phase(Phase::TRAIN));
    assert_eq!(train["run"]["phase"], "train");
    assert_eq!(train["operations"].as_array().map(Vec::len), Some(2));
    assert_eq!(train["not_represented"], json!({"span": 2, "step": 4}));
    let infer = document(&mixed(), phase(Phase::INFER));
    assert_eq!(
        (&infer["run"]["phase"], &infer["operations"][0]["step"]),
        (&json!("infer"), &json!(3))
    );
}

#[test]
fn one_step_has_one_phase() {
    let infer = document(&mixed(), step(3));
    assert_eq!(
        (&infer["run"]["phase"], &infer["operations"][0]["step"]),
        (&json!("infer"), &json!(3))
    );
    assert_eq!(infer["not_represented"], json!({"span": 1, "step": 2}));
}

#[test]
fn observations_outside_any_step_have_the_runs_phase() {
    let outside = [&stepped(1, Phase::INFER)[..], &[rec(BARE, 0, &tensor())]].concat();
    assert!(refusal(&file(&outside), Options::default()).is_usage());
    let train = document(&file(&outside), phase(Phase::TRAIN));
    assert_eq!(
        (train["tensors"].as_array().map(Vec::len), &train["operations"]),
        (Some(1), &json!([]))
    );
}

#[test]
fn an_unknown_step_or_phase_is_an_error_that_says_what_there_is() {
    let error = refusal(&mixed(), step(7));
    assert!(!error.is_usage() && error.to_string().contains("1 to 3"), "{error}");
    let error = refusal(&mixed(), Options { step: Some(3), ..phase(Phase::TRAIN) });
    assert!(error.to_string().contains("1 to 2"), "{error}");
    let error = refusal(&file(&stepped(1, Phase(0))), phase(Phase::INFER));
    assert!(!error.is_usage() && error.to_string().contains("has train"), "{error}");
    assert!(refusal(&file(&[]), step(1)).to_string().contains("none"));
}

#[test]
fn schema_1_of_several_steps_needs_one() {
    let file = file(&[stepped(1, Phase(0)), stepped(2, Phase(0))].concat());
    let v1 = |step| Options { schema: Schema::V1, step, ..Options::default() };
    let error = refusal(&file, v1(None));
    assert!(error.is_usage() && error.to_string().contains("--step"), "{error}");
    assert_eq!(document(&file, v1(Some(2)))["operations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_empty_run_is_a_document_in_either_form() {
    let empty = file(&[rec(BARE, 0, &Span::default())]);
    for options in [Options::default(), lines()] {
        let found = document(&empty, options);
        assert_eq!(found["schema"], "candle-graph/runtime/3");
        assert_eq!(found["not_represented"], json!({"span": 1}));
    }
    assert_eq!(convert(&empty, lines()).ok(), convert(&empty, Options::default()).ok());
}

/// A gap of operations on a lane, in another lane's records.
fn lost(first: u64, last: u64, lane: u16, planes: Planes) -> Record {
    let (first, last, lane, reason) = (Ticks(first), Ticks(last), LaneId(lane), GapReason::OVERRUN);
    rec(0, 0, &Gap { first, last, records: 5, groups: 5, planes, lane, reason })
}

fn losses(file: &[u8], options: Options) -> usize {
    let recording = Recording::open(file, "test").expect("a header");
    let plan = Plan::of(&recording, options).expect("a plan");
    assert_eq!(plan.lost().count(), plan.gaps().count());
    plan.lost().count()
}

#[test]
fn a_gap_counts_for_the_step_that_it_may_have_been_in() {
    let steps: Vec<Record> = (1..=3).flat_map(|n| stepped(n, Phase(0))).collect();
    let with = |gap| lanes(&[(0, &steps[..]), (u16::MAX, &[gap])]);
    let inside = with(lost(2_100, 2_200, 0, Planes::OPERATIONS));
    assert_eq!([1, 2, 3].map(|n| losses(&inside, step(n))), [0, 1, 0]);
    // Between steps 1 and 2: the marks of either may be among what is missing.
    let between = with(lost(1_950, 1_960, 0, Planes::HOST_TIME));
    assert_eq!([1, 2, 3].map(|n| losses(&between, step(n))), [1, 1, 0]);
    let elsewhere = with(lost(2_100, 2_200, 5, Planes::OPERATIONS));
    assert_eq!([1, 2, 3].map(|n| losses(&elsewhere, step(n))), [0, 1, 0]);
    assert_eq!(losses(&inside, Options::default()), 1);
}

#[test]
fn a_gap_of_what_is_not_converted_is_listed_and_loses_nothing() {
    let gap = lost(1, 2, 0, Planes::LOGICAL_MEMORY);
    let file = file(&[rec(BARE, 0, &tensor()), gap]);
    let recording = Recording::open(&file, "test").expect("a header");
    let plan = Plan::of(&recording, Options::default()).expect("a plan");
    assert_eq!((plan.gaps().count(), plan.lost().count()), (1, 0));
    assert_eq!(
        of(&[rec(BARE, 0, &tensor()), gap])["gaps"],
        json!([{"class": "lost", "reason": "overrun", "lane": 0, "first_ns": 1, "last_ns": 2,
                "records": 5, "groups": 5, "planes": ["logical_memory"]}])
    );
}

#[test]
fn a_detached_span_is_one_span_and_its_parts_are_counted_apart() {
    let spans = [flags::SPAN_SEGMENT, flags::SPAN_SEGMENT, flags::SPAN_DETACHED];
    let file = file(&spans.map(|flags| rec(BARE, flags, &Span::default())));
    let found = document(&file, Options::default());
    assert_eq!(found["not_represented"], json!({"span": 1, "segment": 2}));
}
