//! The traps of the runtime formats, one test each; R5 is with the writer's tests as well.

mod runtime_support;

use runtime_support::{run, their_verdict};
use tmrun_formats::runtime::{
    GradientFact, GradientState, OperationObservation, ReadError, Refusal, RuntimeDocument,
    RuntimeTraceWriter, SCHEMA_V3, TensorObservation, ValueObservation, WriteError, read,
};

fn document() -> RuntimeDocument {
    RuntimeDocument { schema: SCHEMA_V3.into(), run: run(), ..Default::default() }
}

fn gradient(state: GradientState, norm: Option<f64>) -> GradientFact {
    let (event_id, root, key) = ("g".into(), "vb".into(), "w".into());
    GradientFact { event_id, root, key, state, step: Some(1), norm }
}

fn text_of(document: &RuntimeDocument) -> String {
    let json = document.to_json().expect("valid");
    assert!(read(&json).is_ok() && their_verdict(&json).is_ok());
    String::from_utf8(json).expect("text")
}

#[test]
fn r1_a_value_range_is_never_null() {
    let mut document = document();
    let all_nan = ValueObservation { event_id: "v".into(), min: f64::NAN, ..Default::default() };
    document.values.push(all_nan);
    assert!(matches!(document.to_json(), Err(WriteError::Refused(Refusal::NonFinite { .. }))));
    let mixed = ValueObservation {
        event_id: "v".into(),
        min: -2.0,
        max: 1.0,
        abs_max: 2.0,
        nonfinite_count: 3,
        ..Default::default()
    };
    document.values = vec![mixed];
    assert!(!text_of(&document).contains("null"));
}

#[test]
fn r2_a_non_finite_gradient_is_written_without_norm() {
    for norm in [None, Some(f64::NAN), Some(f64::INFINITY)] {
        let gradients = vec![gradient(GradientState::NonFinite, norm)];
        let text = text_of(&RuntimeDocument { gradients, ..document() });
        assert!(text.contains("non_finite") && !text.contains("norm\":"), "{text}");
    }
    let gradients = vec![gradient(GradientState::NonFinite, Some(1.0))];
    assert!(RuntimeDocument { gradients, ..document() }.to_json().is_err());
}

#[test]
fn r3_a_present_gradient_whose_norm_underflows_keeps_its_state_without_norm() {
    let with = |norm| RuntimeDocument {
        gradients: vec![gradient(GradientState::Present, norm)],
        ..document()
    };
    assert!(with(Some(0.0)).to_json().is_err());
    assert!(text_of(&with(None)).contains("present"));
    assert!(text_of(&with(Some(5e-324))).contains("5e-324"));
}

#[test]
fn r4_padded_ids_keep_twelve_operations_in_order_and_plain_ids_do_not() {
    let order = |id: &dyn Fn(u32) -> String| {
        let operation = |number: u32| OperationObservation {
            event_id: id(number),
            op: number.to_string(),
            ..Default::default()
        };
        let operations = (1..=12).map(operation).collect();
        let text = text_of(&RuntimeDocument { operations, ..document() });
        let theirs = their_verdict(text.as_bytes()).expect("theirs");
        let ours = read(text.as_bytes()).expect("ours");
        let ours: Vec<String> = ours.operations.into_iter().map(|operation| operation.op).collect();
        let theirs: Vec<String> =
            theirs.operations.into_iter().map(|operation| operation.op).collect();
        assert_eq!(ours, theirs);
        ours
    };
    let wanted: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
    assert_eq!(order(&|number| format!("op-{number:08}")), wanted);
    assert_ne!(order(&|number| format!("op-{number}")), wanted);
}

#[test]
fn r5_an_empty_trace_is_a_document_in_either_form() {
    let text = document().to_jsonl().expect("valid");
    assert!(text.starts_with(b"{\"schema\":"));
    assert_eq!(read(&text), Ok(document()));
    assert!(their_verdict(&text).is_ok());
}

#[test]
fn r10_unknown_fields_are_skipped_and_unknown_kinds_are_not() {
    let mut text = document().to_json().expect("valid");
    text.truncate(text.len() - 2);
    text.extend_from_slice(
        b",\"gaps\":[{\"class\":\"lost\",\"reason\":\"torn\",\"new\":1}],\"x\":{}}",
    );
    assert_eq!(read(&text).expect("ours").gaps.len(), 1);
    assert!(their_verdict(&text).is_ok());

    let stream = b"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"\",\"profile\":\"\"}\n{\"kind\":\"gap\"}";
    assert!(matches!(read(stream), Err(ReadError::UnknownKind { line: 2, .. })));
    assert!(their_verdict(stream).is_err());
}

#[test]
fn r11_output_is_utf_8_without_byte_order_mark() {
    let mut document = document();
    document.run.entrypoint = "\u{feff}\u{2028}é".into();
    let text = text_of(&document);
    assert!(text.starts_with('{'));
    let json = format!("\u{feff}{text}");
    assert_eq!(read(json.as_bytes()), Err(ReadError::ByteOrderMark));
    assert!(their_verdict(json.as_bytes()).is_err());
}

#[test]
fn r12_a_scalar_has_an_empty_shape_and_both_flags() {
    let tensor = TensorObservation { event_id: "t".into(), ..Default::default() };
    let text = text_of(&RuntimeDocument { tensors: vec![tensor], ..document() });
    assert!(text.contains(r#""shape":[]"#), "{text}");
    assert!(text.contains(r#""contiguous":false,"requires_grad":false"#), "{text}");
}

#[test]
fn r13_all_64_bits_of_an_integer_survive() {
    for number in [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, u64::MAX] {
        let operation = OperationObservation {
            event_id: "o".into(),
            step: Some(number),
            duration_ns: Some(number),
            ..Default::default()
        };
        let text = text_of(&RuntimeDocument { operations: vec![operation], ..document() });
        let theirs = their_verdict(text.as_bytes()).expect("theirs");
        assert_eq!(theirs.operations[0].duration_ns, Some(number));
        assert_eq!(read(text.as_bytes()).expect("ours").operations[0].step, Some(number));
    }
}

#[test]
fn r14_one_id_in_two_collections_is_refused_by_writer_and_readers() {
    let mut trace = RuntimeTraceWriter::new(Vec::new(), run()).expect("schema");
    let value = ValueObservation { event_id: "g".into(), ..Default::default() };
    trace.gradient(gradient(GradientState::Missing, None)).expect("valid");
    assert!(matches!(trace.value(&value), Err(WriteError::DuplicateId { id }) if id == "g"));

    let gradients = vec![gradient(GradientState::Missing, None)];
    let both = RuntimeDocument { gradients, values: vec![value], ..document() };
    assert!(matches!(both.validate(), Err(ReadError::DuplicateId { .. })));
    assert!(matches!(both.to_json(), Err(WriteError::DuplicateId { .. })));
    assert!(matches!(both.to_jsonl(), Err(WriteError::DuplicateId { .. })));
}

#[test]
fn r15_negative_zero_is_written_as_zero() {
    let gradients = vec![gradient(GradientState::Zero, Some(-0.0))];
    let value = ValueObservation { event_id: "v".into(), min: -0.0, ..Default::default() };
    let text = text_of(&RuntimeDocument { gradients, values: vec![value], ..document() });
    assert!(text.contains("\"norm\":0.0") && !text.contains("-0"), "{text}");
}
