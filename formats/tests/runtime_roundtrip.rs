//! For hostile strings and extreme numbers: write then read is the identity, in both forms, and the
//! neighbour reads the same thing.

mod runtime_support;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use runtime_support::{assert_same_content, their_verdict};
use tmrun_formats::runtime::{
    EdgeTiming, GradientFact, GradientState, OperationObservation, RunMetadata, RuntimeDocument,
    RuntimeGap, SCHEMAS, TensorObservation, ValueObservation, read,
};

/// Any text, with the characters that break writers made likely.
fn text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\0",
        "\u{1f}",
        "\u{7f}",
        "\"",
        "\\",
        "\\u0000",
        "\n",
        "\r\n",
        "</script>",
        "é",
        "𝄞",
        "\u{202e}",
        " at line 3",
        "",
    ]);
    vec(prop_oneof![any::<String>(), nasty.prop_map(str::to_owned)], 0..4)
        .prop_map(|parts| parts.concat())
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just((1 << 53) + 1), Just(i64::MAX as u64)]
}

/// A finite float, all exponents alike; never -0.0, which is written as 0.0.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(vec![0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e23, -1e-7])
    ]
    .prop_filter("finite", |value| value.is_finite())
    .prop_map(|value| value + 0.0)
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![any::<usize>(), 0..9_usize], 0..7)
}

prop_compose! {
    fn tensor()(
        (static_id, source, storage_id) in (option::of(text()), option::of(text()), option::of(text())),
        (dtype, device) in (text(), text()),
        (step, shape) in (option::of(number()), shape()),
        (contiguous, requires_grad) in any::<(bool, bool)>(),
    ) -> TensorObservation {
        let event_id = String::new();
        TensorObservation { event_id, static_id, source, step, shape, dtype, device, contiguous, requires_grad, storage_id }
    }
}

prop_compose! {
    fn operation()(
        (static_id, source, output) in (option::of(text()), option::of(text()), option::of(text())),
        (op, inputs) in (text(), vec(text(), 0..4)),
        (step, duration_ns) in (option::of(number()), option::of(number())),
    ) -> OperationObservation {
        let event_id = String::new();
        OperationObservation { event_id, op, static_id, source, inputs, output, step, duration_ns }
    }
}

prop_compose! {
    fn gradient()(
        (root, key, step) in (text(), text(), option::of(number())),
        state in prop::sample::select(vec![
            GradientState::Present, GradientState::Missing, GradientState::Zero, GradientState::NonFinite,
        ]),
        norm in option::of(float()),
    ) -> GradientFact {
        let norm = match state {
            GradientState::Present => norm.filter(|&norm| norm != 0.0),
            GradientState::Zero => norm.map(|_| 0.0),
            GradientState::Missing | GradientState::NonFinite => None,
        };
        GradientFact { event_id: String::new(), root, key, state, step, norm }
    }
}

prop_compose! {
    fn value()(
        (static_id, source, step) in (option::of(text()), option::of(text()), option::of(number())),
        (min, max, abs_max) in (float(), float(), float()),
        (nonfinite_count, saturated_count) in (number(), number()),
    ) -> ValueObservation {
        let event_id = String::new();
        ValueObservation { event_id, static_id, source, step, min, max, abs_max, nonfinite_count, saturated_count }
    }
}

prop_compose! {
    fn edge()(
        (from_static_id, to_static_id) in (text(), text()),
        (duration_ns, step) in (number(), option::of(number())),
    ) -> EdgeTiming {
        EdgeTiming { event_id: String::new(), from_static_id, to_static_id, duration_ns, step }
    }
}

prop_compose! {
    fn gap()(
        (class, reason, planes) in (text(), text(), vec(text(), 0..3)),
        (lane, first_ns, last_ns) in (option::of(any::<u32>()), option::of(number()), option::of(number())),
        (records, groups) in (number(), number()),
    ) -> RuntimeGap {
        RuntimeGap { class, reason, lane, first_ns, last_ns, records, groups, planes }
    }
}

prop_compose! {
    fn run()(
        (entrypoint, profile) in (text(), text()),
        (cargo_features, cfg) in (vec(text(), 0..4), vec(text(), 0..4)),
        (analysis_id, build_id, phase) in (option::of(text()), option::of(text()), option::of(text())),
    ) -> RunMetadata {
        RunMetadata { entrypoint, profile, cargo_features, cfg, analysis_id, build_id, phase }
    }
}

prop_compose! {
    fn document()(
        (schema, run, prefix) in (prop::sample::select(SCHEMAS.to_vec()), run(), text()),
        mut tensors in vec(tensor(), 0..4),
        mut operations in vec(operation(), 0..4),
        mut gradients in vec(gradient(), 0..4),
        mut values in vec(value(), 0..4),
        mut edge_timings in vec(edge(), 0..4),
        gaps in vec(gap(), 0..3),
    ) -> RuntimeDocument {
        let ids = tensors.iter_mut().map(|record| &mut record.event_id)
            .chain(operations.iter_mut().map(|record| &mut record.event_id))
            .chain(gradients.iter_mut().map(|record| &mut record.event_id))
            .chain(values.iter_mut().map(|record| &mut record.event_id))
            .chain(edge_timings.iter_mut().map(|record| &mut record.event_id));
        for (number, id) in ids.enumerate() {
            *id = format!("{prefix}{number}");
        }
        let schema = schema.to_owned();
        RuntimeDocument { schema, run, tensors, operations, gradients, values, edge_timings, gaps }
    }
}

fn check(document: RuntimeDocument) {
    let mut expected = document.clone();
    expected.normalize();
    let forms = [document.to_json(), document.to_jsonl()];
    for text in forms.map(|written| written.expect("a valid document is written")) {
        assert_eq!(read(&text).expect("what was written is read"), expected);
        let theirs = their_verdict(&text).expect("the neighbour reads it");
        assert_same_content(&expected, &theirs, "round trip");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn write_then_read_is_the_identity_and_the_neighbour_agrees(document in document()) {
        check(document);
    }

    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_float_in_a_value_is_written_or_refused_as_the_format_has_it(bits in any::<u64>()) {
        let min = f64::from_bits(bits);
        let value = ValueObservation { event_id: "v".into(), min, ..Default::default() };
        let document = RuntimeDocument { schema: SCHEMAS[2].into(), values: vec![value], ..Default::default() };
        prop_assert_eq!(document.to_json().is_ok(), min.is_finite());
    }
}
