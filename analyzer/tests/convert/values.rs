//! Value ranges: over finite elements, and never a number that was not there.

use serde_json::{Value, json};
use tmrun_formats::wire::{Range, Record, Scalar, Stats, flags};

use crate::make::{BARE, FULL, more, of, range, rec, tensor};

fn value(records: &[Record]) -> (Value, Value) {
    let found = of(records);
    let mut value = found["values"][0].clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("event_id");
    }
    (value, found["notes"].clone())
}

fn numbers(min: f64, max: f64, abs_max: f64, nonfinite: u64, saturated: u64) -> Value {
    json!({"source": "encoder.fc", "min": min, "max": max, "abs_max": abs_max,
           "nonfinite_count": nonfinite, "saturated_count": saturated})
}

#[test]
fn a_range_alone_is_an_observation_of_its_node() {
    let alone = Range { saturated: 4, ..range(-8.0, 2.5) };
    assert_eq!(value(&[rec(BARE, 0, &alone)]), (numbers(-8.0, 2.5, 8.0, 0, 4), Value::Null));
    let (full, _) = value(&[rec(FULL, 0, &alone)]);
    assert_eq!((&full["static_id"], &full["source"]), (&json!("fn:7"), &json!("encoder.attn")));
}

#[test]
fn a_range_behind_statistics_counts_what_is_not_finite() {
    let stats = Stats { count: 12, nan: u32::MAX, inf: 5, ..Stats::default() };
    let mixed = Range { non_finite: 7, ..range(-1.0, 0.5) };
    let context = rec(BARE, flags::TENSOR_CONTEXT, &tensor());
    let group = [context, more(0, &stats), more(0, &mixed)];
    let nonfinite = u64::from(u32::MAX) + 5;
    assert_eq!(value(&group), (numbers(-1.0, 0.5, 1.0, nonfinite, 0), Value::Null));
    let found = of(&group);
    assert_eq!(found["tensors"], json!([]), "context describes, and observes nothing");
    assert_eq!(found["not_represented"], json!({}));
    let found = of(&[rec(BARE, 0, &tensor()), group[1], group[2]]);
    assert_eq!(found["tensors"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["values"].as_array().map(Vec::len), Some(1));
}

#[test]
fn without_a_finite_element_the_range_is_zeros_and_the_count_says_so() {
    for bound in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
        let all = Range { non_finite: 6, ..range(bound, bound) };
        assert_eq!(value(&[rec(BARE, 0, &all)]), (numbers(0.0, 0.0, 0.0, 6, 0), Value::Null));
    }
    let folded = Range { non_finite: 6, ..range(f64::INFINITY, f64::NEG_INFINITY) };
    assert_eq!(value(&[rec(BARE, 0, &folded)]), (numbers(0.0, 0.0, 0.0, 6, 0), Value::Null));
}

#[test]
fn a_bound_that_is_not_finite_counts_one_element_when_none_is_counted() {
    let found = value(&[rec(BARE, 0, &range(0.5, f64::NAN))]);
    assert_eq!(found, (numbers(0.0, 0.0, 0.0, 1, 0), json!({"range_bounds": 1})));
}

#[test]
fn a_tensor_without_elements_has_no_range() {
    let empty = range(f64::INFINITY, f64::NEG_INFINITY);
    let found = of(&[rec(BARE, 0, &empty)]);
    assert_eq!(
        (&found["values"], &found["not_represented"]),
        (&json!([]), &json!({"empty_range": 1}))
    );
    let group = [
        rec(BARE, flags::TENSOR_CONTEXT, &tensor()),
        more(0, &Stats::default()),
        more(0, &range(0.0, 0.0)),
    ];
    assert_eq!(of(&group)["not_represented"], json!({"empty_range": 1}));
}

#[test]
fn a_scalar_is_a_range_of_one_number() {
    let scalar = |value| [rec(BARE, 0, &Scalar { value })];
    assert_eq!(value(&scalar(-2.5)), (numbers(-2.5, -2.5, 2.5, 0, 0), Value::Null));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(value(&scalar(bad)), (numbers(0.0, 0.0, 0.0, 1, 0), Value::Null), "{bad}");
    }
    assert_eq!(value(&scalar(f64::MAX)).0["max"].as_f64(), Some(f64::MAX));
}
