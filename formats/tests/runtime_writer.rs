//! The streaming writer: what it refuses, what it leaves in the sink, what others make of it.

mod runtime_support;

use candle_graph_v03::runtime as theirs;
use runtime_support::{assert_same_content, run, their_verdict};
use std::io::{self, Write};
use tmrun_formats::runtime::{
    DocumentEncoder, EdgeTiming, GradientFact, GradientState, OperationObservation, OperationRef,
    Refusal, RunMetadata, RuntimeGap, RuntimeTraceWriter, SCHEMA_V1, SCHEMA_V3, SCHEMAS, Section,
    TensorObservation, TensorRef, ValueObservation, ValueRef, WriteError, encode, parse_jsonl,
    read,
};

fn value(id: &str, min: f64) -> ValueObservation {
    ValueObservation { event_id: id.into(), min, max: 1.0, abs_max: 1.0, ..Default::default() }
}

fn fact(id: &str, state: GradientState, norm: Option<f64>) -> GradientFact {
    let (event_id, root, key) = (id.into(), "vb".into(), "w".into());
    GradientFact { event_id, root, key, state, step: Some(1), norm }
}

/// A sink whose bytes can be looked at between calls, and that can be told to fail.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    room: Option<usize>,
}

impl Write for &mut Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if room == 0 {
            return Err(io::Error::other("disk full"));
        }
        if let Some(left) = &mut self.room {
            *left -= room;
        }
        self.bytes.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_refused_record_leaves_no_byte_behind() {
    let mut sink = Sink::default();
    let mut trace =
        RuntimeTraceWriter::new_with_schema(&mut sink, SCHEMA_V3, run()).expect("schema");
    trace.value(value("v1", 0.0)).expect("valid");
    let refused = [
        trace.value(value("", 0.0)),
        trace.value(value("v1", 0.0)),
        trace.value(value("v2", f64::NAN)),
        trace.value(value("v2", f64::NEG_INFINITY)),
        trace.gradient(fact("g", GradientState::Present, Some(0.0))),
        trace.gradient(fact("g", GradientState::Present, Some(f64::NAN))),
        trace.gradient(fact("g", GradientState::Zero, Some(1.0))),
        trace.gradient(fact("g", GradientState::Missing, Some(0.0))),
        trace.gradient(fact("g", GradientState::NonFinite, Some(1.0))),
    ];
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert!(matches!(
        &refused[2],
        Err(WriteError::Refused(Refusal::NonFinite { field: "min", .. }))
    ));
    trace.value(value("v2", 0.5)).expect("a refused id was not used up");
    trace.finish().expect("sink");
    let document = read(&sink.bytes).expect("valid");
    assert_eq!(document.values, [value("v1", 0.0), value("v2", 0.5)]);
    assert_eq!(sink.bytes.iter().filter(|&&byte| byte == b'\n').count(), 3);
}

#[test]
fn an_unknown_schema_is_refused_before_anything_is_written() {
    let mut sink = Sink::default();
    let refused = RuntimeTraceWriter::new_with_schema(&mut sink, "candle-graph/runtime/4", run());
    assert!(matches!(refused, Err(WriteError::UnsupportedSchema { .. })));
    assert!(sink.bytes.is_empty());
}

#[test]
fn after_a_failed_write_nothing_more_is_taken() {
    let mut sink = Sink { room: Some(10), ..Default::default() };
    let mut trace = RuntimeTraceWriter::new(&mut sink, run()).expect("schema");
    assert!(matches!(trace.value(value("a", 0.0)), Err(WriteError::Io(_))));
    assert!(matches!(trace.value(value("b", 0.0)), Err(WriteError::Broken)));
    assert!(matches!(trace.flush(), Err(WriteError::Broken)));
    assert!(matches!(trace.finish(), Err(WriteError::Broken)));
    assert_eq!(sink.bytes.len(), 10);
}

#[test]
fn a_stream_without_records_finishes_as_a_document_every_reader_takes() {
    for schema in SCHEMAS {
        let trace = RuntimeTraceWriter::new_with_schema(Vec::new(), schema, run()).expect("schema");
        let text = trace.finish().expect("memory");
        let ours = read(&text).expect("readable");
        assert!(ours.is_empty());
        assert_eq!((ours.schema.as_str(), &ours.run), (schema, &run()));
        assert_same_content(&ours, &their_verdict(&text).expect("readable by theirs"), schema);
    }
}

#[test]
fn our_stream_of_every_kind_reads_the_same_in_the_neighbour() {
    let mut trace =
        RuntimeTraceWriter::new_with_schema(Vec::new(), SCHEMA_V3, run()).expect("schema");
    let tensor = TensorObservation {
        event_id: "t".into(),
        shape: vec![2, 3],
        dtype: "F32".into(),
        device: "cpu".into(),
        storage_id: Some("s".into()),
        ..Default::default()
    };
    let operation = OperationObservation {
        event_id: "o".into(),
        op: "matmul".into(),
        inputs: vec!["t".into(), "u".into()],
        duration_ns: Some(u64::MAX),
        ..Default::default()
    };
    let edge = EdgeTiming { event_id: "e".into(), duration_ns: 7, ..Default::default() };
    trace.tensor(&tensor).expect("valid");
    trace.operation(operation).expect("valid");
    trace.gradient(fact("g", GradientState::NonFinite, Some(f64::NAN))).expect("valid");
    trace.value(value("v", -0.0)).expect("valid");
    trace.edge_timing(&edge).expect("valid");
    let text = trace.finish().expect("memory");

    let ours = read(&text).expect("ours");
    let theirs = their_verdict(&text).expect("theirs");
    assert_same_content(&ours, &theirs, "stream");
    assert_eq!(ours.tensors, [tensor]);
    assert_eq!(ours.edge_timings, [edge]);
    assert_eq!(theirs.gradients[0].norm, None);
    assert_eq!(theirs.operations[0].duration_ns, Some(u64::MAX));
}

#[test]
fn the_neighbours_stream_reads_the_same_in_ours() {
    let run = theirs::RunMetadata {
        entrypoint: "e\u{2028}".into(),
        profile: "p".into(),
        cargo_features: vec!["b".into(), "a".into(), "b".into()],
        cfg: vec![],
        analysis_id: Some("x".into()),
        build_id: None,
        phase: None,
    };
    let mut trace =
        theirs::RuntimeTraceWriter::new_with_schema(Vec::new(), SCHEMA_V3, run).expect("theirs");
    trace
        .gradient(theirs::GradientFact {
            event_id: "g".into(),
            root: "r".into(),
            key: "k".into(),
            state: theirs::GradientState::NonFinite,
            step: Some(3),
            norm: Some(f64::INFINITY),
        })
        .expect("theirs");
    trace
        .value(theirs::ValueObservation {
            event_id: "v".into(),
            static_id: None,
            source: Some("\"\\\n".into()),
            step: None,
            min: -1e-310,
            max: f64::MAX,
            abs_max: f64::MAX,
            nonfinite_count: 1,
            saturated_count: u64::MAX,
        })
        .expect("theirs");
    let text = trace.finish().expect("theirs");
    let ours = read(&text).expect("readable");
    assert_same_content(&ours, &their_verdict(&text).expect("theirs"), "their stream");
    assert_eq!(ours.run.cargo_features, ["a", "b"]);
    assert_eq!(ours.values[0].min.to_bits(), (-1e-310_f64).to_bits());
    assert_eq!(ours.gradients[0].norm, None);
}

#[test]
fn gaps_travel_in_both_forms_and_the_neighbour_skips_them() {
    let gap = RuntimeGap {
        class: "lost".into(),
        reason: "overrun".into(),
        lane: Some(2),
        first_ns: Some(10),
        last_ns: Some(u64::MAX),
        records: 7,
        groups: 3,
        planes: vec!["timing".into(), "tensors".into()],
    };
    let unknown = RuntimeGap { lane: None, first_ns: None, last_ns: None, ..gap.clone() };
    let gaps = vec![gap, unknown];
    let mut trace =
        RuntimeTraceWriter::new_with_gaps(Vec::new(), SCHEMA_V3, run(), gaps.clone()).expect("ok");
    trace.value(value("v", 0.0)).expect("valid");
    let stream = trace.finish().expect("memory");
    let document = read(&stream).expect("readable");
    assert_eq!(document.gaps, gaps);
    let json = document.to_json().expect("valid");
    assert_eq!(read(&json).expect("readable"), document);
    for text in [stream, json] {
        assert_eq!(their_verdict(&text).expect("theirs").values.len(), 1);
    }
    let meta = String::from_utf8(document.to_jsonl().expect("valid")).expect("text");
    assert!(meta.contains(
        r#""gaps":[{"class":"lost","reason":"overrun","lane":2,"first_ns":10,"last_ns":18446744073709551615,"records":7,"groups":3,"planes":["timing","tensors"]},{"#
    ));
}

#[test]
fn the_piecewise_encoder_writes_what_the_whole_document_writes() {
    let inputs = ["a", "b"];
    let operation = |id| OperationRef {
        event_id: id,
        op: "add",
        static_id: None,
        source: None,
        inputs: &inputs,
        output: None,
        step: None,
        duration_ns: Some(1),
    };
    let mut out = Vec::new();
    let mut encoder = DocumentEncoder::begin(&mut out, SCHEMA_V1, &run()).expect("schema");
    encoder.record(&mut out, &operation("o1")).expect("valid");
    let mut spliced = Vec::new();
    encode::element(&mut spliced, &operation("o2")).expect("valid");
    spliced.push(b',');
    encode::element(&mut spliced, &operation("o3")).expect("valid");
    encoder.splice(&mut out, Section::Operations, &spliced).expect("in order");
    let tensor = TensorRef::<u32> {
        event_id: "late",
        static_id: None,
        source: None,
        step: None,
        shape: &[],
        dtype: "F32",
        device: "cpu",
        contiguous: true,
        requires_grad: false,
        storage_id: None,
    };
    assert!(matches!(encoder.record(&mut out, &tensor), Err(WriteError::OutOfOrder { .. })));
    assert!(encoder.record(&mut out, &ValueRef::from(&value("v", f64::NAN))).is_err());
    encoder.finish(&mut out, &[]);
    let document = read(&out).expect("readable");
    assert_eq!(document.operations.len(), 3);
    assert_eq!(their_verdict(&out).expect("theirs").operations.len(), 3);
    assert!(document.tensors.is_empty());
}

#[test]
fn a_document_holds_the_collections_its_label_introduces_even_when_empty() {
    let keys = |schema| {
        let mut out = Vec::new();
        DocumentEncoder::begin(&mut out, schema, &RunMetadata::default())
            .expect("schema")
            .finish(&mut out, &[]);
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        value.as_object().expect("object").len()
    };
    assert_eq!(SCHEMAS.map(keys), [5, 6, 7]);
}

#[test]
fn a_line_names_its_kind_and_ends_with_a_newline() {
    let mut out = Vec::new();
    encode::line(&mut out, &ValueRef::from(&value("v", 0.25))).expect("valid");
    assert_eq!(
        String::from_utf8(out).expect("text"),
        "{\"kind\":\"value\",\"event_id\":\"v\",\"min\":0.25,\"max\":1.0,\"abs_max\":1.0,\
         \"nonfinite_count\":0,\"saturated_count\":0}\n"
    );
    assert!(parse_jsonl("").is_err());
}
