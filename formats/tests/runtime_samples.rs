//! Every sample file gets the same verdict from this reader and from the real neighbour.

mod runtime_support;

use runtime_support::{assert_same_content, samples, their_verdict};
use tmrun_formats::runtime::{JsonFault, Place, ReadError, Refusal, read};

#[test]
fn what_the_neighbour_accepts_is_accepted_with_the_same_content() {
    for folder in ["valid", "audit", "."] {
        for (name, bytes) in samples(folder) {
            let theirs = their_verdict(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            let ours = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_same_content(&ours, &theirs, &name);
        }
    }
}

#[test]
fn what_the_neighbour_rejects_is_rejected() {
    for (name, bytes) in samples("invalid") {
        assert!(their_verdict(&bytes).is_err(), "{name}: the neighbour accepts it");
        let error = read(&bytes).expect_err(&name);
        assert!(!error.to_string().is_empty(), "{name}");
    }
}

fn rejection(name: &str) -> ReadError {
    let (_, bytes) = samples("invalid")
        .into_iter()
        .find(|(found, _)| found == name)
        .unwrap_or_else(|| panic!("no sample {name}"));
    read(&bytes).expect_err(name)
}

#[test]
fn a_rejection_says_what_is_wrong_and_where() {
    assert_eq!(rejection("meta-only-oneline.jsonl"), ReadError::LoneMeta);
    assert_eq!(rejection("no-run.json"), ReadError::DocumentWithout { key: "run" });
    assert_eq!(rejection("no-schema.json"), ReadError::DocumentWithout { key: "schema" });
    assert_eq!(rejection("two-metas.jsonl"), ReadError::SecondMeta { line: 2, first: 1 });
    assert!(matches!(
        rejection("dup-id.jsonl"),
        ReadError::DuplicateId { place: Place::Line(_), first: Place::Line(_), .. }
    ));
    assert!(matches!(
        rejection("schema-4.json"),
        ReadError::UnsupportedSchema { place: Place::Schema, found } if found.ends_with("/4")
    ));
    assert!(matches!(rejection("kind-camel.jsonl"), ReadError::UnknownKind { .. }));
    assert!(matches!(
        rejection("truncated-last-line.jsonl"),
        ReadError::Json { fault: JsonFault::Truncated, .. }
    ));
    assert!(matches!(
        rejection("grad-present-zero-norm.json"),
        ReadError::Refused { refusal: Refusal::Contradiction { norm: 0.0, .. }, .. }
    ));
}

#[test]
fn a_fault_in_a_document_is_placed_in_the_file_as_it_is() {
    let text = "\n\n {\"schema\":\"candle-graph/runtime/1\",\n  \"run\": 5}";
    let Err(ReadError::Json { place: Place::Text { line, column, offset }, fault, detail }) =
        read(text.as_bytes())
    else {
        panic!("expected a JSON fault");
    };
    assert_eq!(fault, JsonFault::WrongShape);
    assert_eq!((line, text.as_bytes().get(offset)), (4, Some(&b'5')), "column {column}: {detail}");
}

#[test]
fn a_broken_pretty_document_is_not_reported_as_a_broken_stream() {
    let text = "{\n \"schema\": \"candle-graph/runtime/1\",\n \"run\": {\n";
    assert!(matches!(
        read(text.as_bytes()),
        Err(ReadError::Json {
            fault: JsonFault::Truncated,
            place: Place::Text { line: 3, .. },
            ..
        })
    ));
}

#[test]
fn inputs_that_are_no_trace_are_named() {
    assert_eq!(read(b" \n\t"), Err(ReadError::Empty));
    assert_eq!(read(b"\xEF\xBB\xBF{}"), Err(ReadError::ByteOrderMark));
    assert_eq!(read(b"{\"a\":\"\xFF\"}"), Err(ReadError::NotUtf8 { offset: 6 }));
    assert_eq!(read(b"[1]"), Err(ReadError::NotAnObject { line: 1, found: "an array" }));
    assert_eq!(read(b"{\"kind\":1}\n{}"), Err(ReadError::NoKind { line: 1 }));
    let tensor_only = br#"{"kind":"tensor","event_id":"a","shape":[],"dtype":"F32","device":"cpu","contiguous":true,"requires_grad":false}"#;
    assert_eq!(read(tensor_only), Err(ReadError::NoMeta));
}

#[test]
fn deep_nesting_in_a_field_nobody_reads_is_an_error_and_no_stack_overflow() {
    let deep = "[".repeat(100_000);
    let line = format!("{{\"kind\":\"meta\",\"x\":{deep}\n{{}}");
    let document = format!("{{\"schema\":\"candle-graph/runtime/1\",\n\"x\":{deep}");
    for text in [line, document] {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Json { .. })));
    }
}

/// The two places where this reader is stricter on purpose: what the neighbour then takes is not what
/// the file's author can have meant.
#[test]
fn a_key_given_twice_and_a_record_that_is_an_array_are_refused_here_alone() {
    let twice = "{\"schema\":\"candle-graph/runtime/1\",\n\"run\":{\"entrypoint\":\"a\",\"entrypoint\":\"b\",\"profile\":\"\"}}";
    assert!(their_verdict(twice.as_bytes()).is_ok());
    let Err(ReadError::Json { fault: JsonFault::WrongShape, detail, .. }) = read(twice.as_bytes())
    else {
        panic!("expected a refusal");
    };
    assert!(detail.contains("duplicate field"), "{detail}");
    let one_line = twice.replace('\n', "");
    assert!(their_verdict(one_line.as_bytes()).is_err(), "the neighbour does so in one line too");

    let meta = r#"{"kind":"meta","schema":"candle-graph/runtime/1","entrypoint":"","profile":""}"#;
    let array = format!("{meta}\n[\"gradient\",\"g\",\"r\",\"k\",\"missing\",null,null]\n");
    assert!(their_verdict(array.as_bytes()).is_ok());
    let refused = ReadError::NotAnObject { line: 2, found: "an array" };
    assert_eq!(read(array.as_bytes()), Err(refused));
}
