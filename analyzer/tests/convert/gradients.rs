//! Gradients: state and norm never contradict each other, and nothing hides a bad one.

use serde_json::{Value, json};
use tmrun::audit::audit;
use tmrun::convert::Options;
use tmrun_formats::GradientState as Code;

use crate::make::{BARE, FULL, convert, file, gradient, in_step, of, trace};

fn one(state: Code, norm: Option<f64>) -> (Value, u64) {
    let found = of(&[gradient(BARE, state, norm)]);
    let fact = &found["gradients"][0];
    assert_eq!((&fact["root"], &fact["key"]), (&json!("vb"), &json!("encoder.fc")));
    (
        fact.get("norm").cloned().unwrap_or_default(),
        found["notes"]["dropped_norm"].as_u64().unwrap_or(0),
    )
}

#[test]
fn a_present_gradient_keeps_a_norm_that_says_something() {
    assert_eq!(one(Code::PRESENT, Some(0.125)), (json!(0.125), 0));
    assert_eq!(one(Code::PRESENT, None), (Value::Null, 0));
    // A norm that underflowed to zero, or was computed wrong, does not make the gradient another.
    for norm in [0.0, -0.0, f64::NAN, f64::INFINITY] {
        assert_eq!(one(Code::PRESENT, Some(norm)), (Value::Null, 1), "{norm}");
    }
    assert_eq!(one(Code::PRESENT, Some(f64::MIN_POSITIVE / 2.0)).1, 0, "subnormal is not zero");
}

#[test]
fn a_zero_gradient_has_norm_zero_without_a_sign_or_none() {
    assert_eq!(one(Code::ZERO, None), (Value::Null, 0));
    assert_eq!(one(Code::ZERO, Some(1.0)), (Value::Null, 1));
    let text = convert(&file(&[gradient(BARE, Code::ZERO, Some(-0.0))]), Options::default());
    let text = String::from_utf8(text.expect("converted")).expect("text");
    assert!(text.contains("\"norm\":0.0") && !text.contains("-0.0"), "{text}");
}

#[test]
fn missing_and_non_finite_gradients_have_no_norm() {
    assert_eq!(one(Code::MISSING, None), (Value::Null, 0));
    assert_eq!(one(Code::MISSING, Some(0.0)), (Value::Null, 1));
    assert_eq!(one(Code::NON_FINITE, Some(1.0)), (Value::Null, 1));
    assert_eq!(one(Code::NON_FINITE, Some(f64::NAN)), (Value::Null, 0), "the state says the same");
}

#[test]
fn a_state_without_a_word_is_counted() {
    let found = of(&[gradient(BARE, Code(9), Some(1.0))]);
    assert_eq!(
        (&found["gradients"], &found["not_represented"]),
        (&json!([]), &json!({"gradient": 1}))
    );
}

#[test]
fn every_fact_of_a_step_says_so_and_a_series_is_no_conflict() {
    let records: Vec<_> = (1..=3)
        .flat_map(|n| in_step(n, &[gradient(BARE, Code::PRESENT, Some(n as f64))]))
        .collect();
    let trace = trace(&convert(&file(&records), Options::default()).expect("converted"));
    assert_eq!(
        trace.gradients.iter().map(|fact| fact.step).collect::<Vec<_>>(),
        [1, 2, 3].map(Some)
    );
    let report = audit(&trace, None);
    assert!(report.is_clean() && !report.has_findings(), "{report:?}");
}

#[test]
fn an_early_nan_is_found_behind_sound_steps() {
    let state = |n| if n == 3 { Code::NON_FINITE } else { Code::PRESENT };
    let records: Vec<_> =
        (1..=10).flat_map(|n| in_step(n, &[gradient(BARE, state(n), None)])).collect();
    let trace = trace(&convert(&file(&records), Options::default()).expect("converted"));
    assert_eq!(audit(&trace, None).first_non_finite_step, Some(3));
}

#[test]
fn two_unnamed_parameters_are_not_one() {
    let found = of(&[
        gradient(0, Code::NON_FINITE, None),
        gradient(0, Code::PRESENT, None),
        gradient(FULL, Code::PRESENT, None),
    ]);
    let keys: Vec<_> =
        found["gradients"].as_array().expect("gradients").iter().map(|g| &g["key"]).collect();
    assert_eq!(
        keys,
        [
            "unnamed@00000-00000000000000000000",
            "unnamed@00000-00000000000000000001",
            "encoder.attn"
        ]
    );
    assert_eq!(found["notes"], json!({"unnamed": 2}));
}
