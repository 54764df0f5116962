//! Steps: of the record's own lane, at its position.

use serde_json::{Value, json};
use tmrun::convert::Options;
use tmrun_formats::wire::{Gap, Record, Step, flags};
use tmrun_formats::{GapReason, LaneId, Phase, Planes};

use crate::make::{BARE, document, file, gradient, in_step, lanes, mark, of, op, rec};

fn one_op() -> Record {
    rec(BARE, 0, &op(2_100, 0))
}

fn steps(found: &Value) -> Vec<Option<u64>> {
    let operations = found["operations"].as_array().expect("operations");
    operations.iter().map(|op| op.get("step").map(|step| step.as_u64().expect("u64"))).collect()
}

#[test]
fn a_record_outside_any_step_has_no_step() {
    let records = [&[one_op()], &in_step(3, &[one_op()])[..], &[one_op()]].concat();
    assert_eq!(steps(&of(&records)), [None, Some(3), None]);
}

#[test]
fn steps_are_of_the_records_own_lane_and_never_by_time() {
    let main = in_step(1, &[one_op()]);
    // The same ticks on another lane, which never entered the step.
    assert_eq!(
        steps(&document(&lanes(&[(0, &main), (1, &[one_op()])]), Options::default())),
        [Some(1), None]
    );
}

#[test]
fn wherever_chunks_end_the_steps_are_the_same() {
    let records: Vec<Record> =
        (1..=3).flat_map(|n| in_step(n, &[one_op(), one_op()])).chain([one_op()]).collect();
    let whole = steps(&of(&records));
    assert_eq!(whole, [1, 1, 2, 2, 3, 3].map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    for at in 1..records.len() {
        let (first, second) = records.split_at(at);
        assert_eq!(
            steps(&document(&lanes(&[(0, first), (0, second)]), Options::default())),
            whole,
            "{at}"
        );
    }
}

#[test]
fn a_micro_batch_belongs_to_its_step() {
    let micro = |end: bool| {
        let flags = flags::STEP_MICRO_BATCH | if end { flags::STEP_END } else { 0 };
        rec(0, flags, &Step { number: 5, micro_batch: 1, phase: Phase(0) })
    };
    let found = of(&in_step(5, &[one_op(), micro(false), one_op(), micro(true), one_op()]));
    assert_eq!(steps(&found), [Some(5); 3]);
}

#[test]
fn behind_lost_step_marks_the_step_is_in_doubt_and_counted() {
    let gap = |planes, lane| {
        let gap = Gap { records: 3, groups: 3, planes, lane: LaneId(lane), ..Gap::default() };
        rec(0, 0, &Gap { reason: GapReason::OVERRUN, ..gap })
    };
    let doubtful = |gap| {
        let found = of(&in_step(1, &[one_op(), gap, one_op()]));
        assert_eq!(steps(&found), [Some(1), Some(1)]);
        found["notes"].clone()
    };
    assert_eq!(doubtful(gap(Planes::HOST_TIME, 0)), json!({"doubtful_step": 1}));
    assert_eq!(doubtful(gap(Planes::TENSORS, 0)), Value::Null, "no step mark was among them");
    assert_eq!(doubtful(gap(Planes::HOST_TIME, 1)), Value::Null, "another lane lost them");
}

#[test]
fn a_smaller_last_batch_is_recorded_as_it_was() {
    use crate::make::{FULL, tensor};
    use tmrun_formats::wire::Tensor;
    let last = Tensor { dims: [1, 3, 0, 0, 0], ..tensor() };
    let records = [in_step(1, &[rec(FULL, 0, &tensor())]), in_step(2, &[rec(FULL, 0, &last)])];
    let found = of(&records.concat());
    assert_eq!(found["tensors"][0]["shape"], json!([2, 3]));
    assert_eq!(found["tensors"][1]["shape"], json!([1, 3]));
}

#[test]
fn a_step_that_does_not_say_its_phase_has_the_runs() {
    let records = [
        mark(1, 1, Phase(0), false),
        gradient(BARE, tmrun_formats::GradientState::MISSING, None),
        mark(2, 1, Phase::TRAIN, true),
    ];
    let found = document(&file(&records), Options::default());
    assert_eq!(found["run"]["phase"], "train");
}
