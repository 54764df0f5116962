//! What the writer takes, both readers accept, byte for byte as the neighbour would have written it;
//! what it refuses leaves no byte behind.

mod trace_support;

use candle_graph_v10::trace::TraceEvent;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::borrow::Cow;
use tmrun_formats::trace::*;
use trace_support::{Neighbour, run, samples};

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    let nasty =
        vec!["\u{feff}", "\0", "\u{1f}", "\"", "\\", "\n", "\r\n", "</script>", "é", "𝄞", ""];
    let nasty = prop::sample::select(nasty).prop_map(str::to_owned);
    vec(prop_oneof![any::<String>(), nasty], 0..3).prop_map(|parts| Cow::Owned(parts.concat()))
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just((1 << 53) + 1), 0..100_u64]
}

fn float() -> impl Strategy<Value = f64> {
    let edges = vec![0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e23, 1.0, -1e-7];
    prop_oneof![any::<u64>().prop_map(f64::from_bits), prop::sample::select(edges)]
        .prop_filter("finite", |value| value.is_finite())
}

fn one<T: Copy + std::fmt::Debug + 'static>(of: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(of)
}

fn shape() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![number(), 0..9_u64], 0..5)
}

prop_compose! {
    fn op()(
        (span_id, op_name, dtype, device) in (text(), text(), text(), text()),
        (inputs, output, shape) in (vec(text(), 0..3), option::of(text()), shape()),
        (duration_ns, timestamp_ns) in (number(), number()),
        (output_dense_bytes, input_dense_bytes) in (option::of(number()), number()),
    ) -> Op<'static> {
        Op { span_id, op_name, inputs, output, shape, dtype, device, duration_ns, timestamp_ns, output_dense_bytes, input_dense_bytes }
    }
}

prop_compose! {
    fn tensor()(
        (span_id, tensor_id, dtype, device) in (text(), text(), text(), text()),
        (label, shape, requires_grad) in (option::of(text()), shape(), any::<bool>()),
        (dense_bytes, category) in (option::of(number()), one(MemoryCategory::ALL)),
    ) -> Tensor<'static> {
        Tensor { span_id, tensor_id, label, shape, dtype, device, requires_grad, dense_bytes, category }
    }
}

prop_compose! {
    fn stats()(
        (span_id, label, dtype) in (text(), text(), text()),
        (shape, non_finite) in (vec(1..9_u64, 0..4), 0..2_u64),
        (rms, abs_max, mean) in (float(), float(), float()),
    ) -> TensorStats<'static> {
        let elements = shape.iter().product();
        let (label, rms, abs_max) = (label + "x", rms.abs(), abs_max.abs());
        TensorStats { span_id, label, shape, dtype, elements, non_finite, rms, abs_max, mean }
    }
}

prop_compose! {
    fn memory()(
        (storage_id, tensor_id, span_id) in (text(), text(), text()),
        (op_name, device, dtype) in (option::of(text()), text(), text()),
        (timestamp_ns, bytes, shape) in (number(), number(), shape()),
        (action, category) in (one(MemoryAction::ALL), one(MemoryCategory::ALL)),
    ) -> Memory<'static> {
        Memory { timestamp_ns, storage_id, tensor_id, span_id, op_name, device, bytes, action, shape, dtype, category }
    }
}

prop_compose! {
    fn device_memory()(
        (timestamp_ns, device) in (number(), text()),
        (used_bytes, free_bytes) in (option::of(number()), option::of(number())),
        (reserved_bytes, capacity_bytes) in (option::of(number()), option::of(number())),
    ) -> DeviceMemory<'static> {
        DeviceMemory { timestamp_ns, device, used_bytes, free_bytes, reserved_bytes, capacity_bytes }
    }
}

prop_compose! {
    fn device_interval()(
        (span_id, device, stream_id) in (text(), text(), text()),
        (clock_id, backend) in (text(), text()),
        (start_ns, duration_ns) in (number(), number()),
    ) -> DeviceInterval<'static> {
        DeviceInterval { span_id, device, stream_id, clock_id, backend, start_ns, duration_ns }
    }
}

fn gradient() -> impl Strategy<Value = Gradient<'static>> {
    const STATES: &[GradientState] = &[
        GradientState::Present,
        GradientState::Missing,
        GradientState::Zero,
        GradientState::NonFinite,
    ];
    (text(), text(), text(), one(STATES), option::of(float())).prop_map(
        |(event_id, root, key, state, norm)| Gradient { event_id, root, key, state, norm },
    )
}

fn edge() -> impl Strategy<Value = Edge<'static>> {
    prop_oneof![
        (text(), text(), number()).prop_map(|(from_span, to_span, host_duration_ns)| {
            Edge::Call(CallEdge { from_span, to_span, host_duration_ns })
        }),
        (text(), text())
            .prop_map(|(from_tensor, to_tensor)| Edge::Data(DataEdge { from_tensor, to_tensor })),
    ]
}

fn spans() -> impl Strategy<Value = Vec<Span<'static>>> {
    let span = (
        (text(), option::of(text()), text()),
        (one(SpanKind::ALL), option::of(one(TraceStep::ALL)), any::<bool>()),
        (number(), option::of(number())),
    );
    vec(span, 0..5).prop_map(|spans| {
        let numbered = spans.into_iter().enumerate();
        numbered
            .map(
                |(
                    number,
                    ((id, parent, name), (kind, step, measured), (start_ns, duration_ns)),
                )| {
                    let (id, line) = (format!("{id}{number}").into(), number + 2);
                    Span { id, parent, name, kind, step, measured, start_ns, duration_ns, line }
                },
            )
            .collect()
    })
}

prop_compose! {
    fn document()(
        spans in spans(),
        (ops, tensors) in (vec(op(), 0..3), vec(tensor(), 0..3)),
        (tensor_stats, memory) in (vec(stats(), 0..3), vec(memory(), 0..3)),
        (device_memory, device_intervals) in (vec(device_memory(), 0..3), vec(device_interval(), 0..3)),
        (gradients, edges) in (vec(gradient(), 0..3), vec(edge(), 0..3)),
        reason in option::of(text()),
    ) -> TraceDocument<'static> {
        let outcome = if reason.is_some() { RunOutcome::Failed } else { RunOutcome::Complete };
        let reason = reason.map(|reason| reason + ".");
        let terminal = Terminal { outcome, timestamp_ns: u64::MAX, reason };
        let mut by_id: Vec<usize> = (0..spans.len()).collect();
        by_id.sort_by_key(|&index| &spans[index].id);
        TraceDocument {
            schema: TraceSchema::V10, run: run(), spans, by_id, ops, tensors, tensor_stats, memory,
            device_memory, device_intervals, gradients, edges, terminal,
        }
    }
}

/// What a reader makes of a document: bytes that can be computed are filled in.
fn filled(mut document: TraceDocument<'_>) -> TraceDocument<'_> {
    for op in &mut document.ops {
        op.output_dense_bytes = op.output_dense_bytes.or(dense_bytes(&op.shape, &op.dtype));
    }
    for tensor in &mut document.tensors {
        tensor.dense_bytes = tensor.dense_bytes.or(dense_bytes(&tensor.shape, &tensor.dtype));
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn write_then_read_is_the_identity_and_the_neighbour_agrees(document in document()) {
        let written = document.write(Vec::new()).expect("a valid trace is written");
        let read = TraceDocument::read(&written).expect("what was written is read");
        // Debug tells floats apart that compare equal.
        prop_assert_eq!(format!("{read:?}"), format!("{:?}", filled(document.clone())));
        let mut neighbour = Neighbour::new();
        prop_assert!(neighbour.agrees(&written, "round trip").is_none());
    }

    #[test]
    fn a_line_is_what_the_neighbour_writes(document in document()) {
        let written = document.write(Vec::new()).expect("a valid trace is written");
        for line in written.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let event: TraceEvent = serde_json::from_slice(line).expect("the neighbour reads it");
            // Only these two are escaped by us alone.
            let theirs = serde_json::to_string(&event).expect("and writes it");
            let theirs = theirs.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
            prop_assert_eq!(std::str::from_utf8(line).expect("text"), theirs);
        }
    }
}

#[test]
fn every_key_of_a_run_stands_where_the_neighbour_writes_it() {
    for (name, bytes) in samples() {
        let Ok(document) = TraceDocument::read(&bytes) else { continue };
        let ours = document.write(Vec::new()).expect("what reads can be written");
        let ours = ours.split_inclusive(|&byte| byte == b'\n').next().expect("a first line");
        let event: TraceEvent = serde_json::from_slice(ours).expect("the neighbour reads it");
        let theirs = serde_json::to_string(&event).expect("and writes it") + "\n";
        assert_eq!(std::str::from_utf8(ours).expect("text"), theirs, "{name}");
    }
}

fn start(id: &str, start_ns: u64) -> SpanStart<'_> {
    SpanStart {
        id: id.into(),
        parent_id: None,
        name: "n".into(),
        start_ns,
        kind: SpanKind::Function,
        measured: false,
        step: None,
    }
}

fn end(id: &str, duration_ns: u64) -> SpanEnd<'_> {
    SpanEnd { id: id.into(), duration_ns }
}

const fn complete(timestamp_ns: u64) -> Terminal<'static> {
    Terminal { outcome: RunOutcome::Complete, timestamp_ns, reason: None }
}

#[test]
fn what_a_reader_would_refuse_leaves_no_byte_behind() {
    let mut out = Vec::new();
    let mut trace = TraceWriter::new(&mut out, &run()).expect("memory takes everything");
    trace.span_start(&start("a", 5)).expect("new");
    assert!(matches!(trace.span_start(&start("a", 6)), Err(WriteError::SpanTwice { .. })));
    assert!(matches!(trace.span_end(&end("b", 1)), Err(WriteError::EndWithoutStart { .. })));
    trace.span_end(&end("a", 10)).expect("open");
    assert!(matches!(trace.span_end(&end("a", 10)), Err(WriteError::EndTwice { .. })));
    assert!(matches!(trace.span_start(&start("a", 6)), Err(WriteError::SpanTwice { .. })));
    let mut stats = TensorStats {
        span_id: "a".into(),
        label: "loss".into(),
        shape: vec![2],
        dtype: "f32".into(),
        elements: 1,
        non_finite: 0,
        rms: 1.0,
        abs_max: 1.0,
        mean: 1.0,
    };
    let refused = |result| matches!(result, Err(WriteError::Refused(_)));
    assert!(refused(trace.tensor_stats(&stats)));
    stats.elements = 2;
    stats.mean = f64::NAN;
    assert!(refused(trace.tensor_stats(&stats)));
    let mut gradient = Gradient {
        event_id: "g".into(),
        root: "vb".into(),
        key: "w".into(),
        state: GradientState::NonFinite,
        norm: Some(f64::INFINITY),
    };
    assert!(refused(trace.gradient(&gradient)));
    gradient.norm = None;
    trace.gradient(&gradient).expect("a state alone");
    let early = trace.terminal(&complete(14));
    assert!(matches!(early, Err(WriteError::EndsEarly { timestamp_ns: 14, latest_ns: 15 })));
    let blank = Some("\t".into());
    let failed = Terminal { outcome: RunOutcome::Failed, timestamp_ns: 15, reason: blank.clone() };
    assert!(refused(trace.terminal(&failed)));
    assert!(refused(trace.terminal(&Terminal { reason: blank, ..complete(15) })));
    trace.terminal(&complete(15)).expect("late enough");
    assert!(matches!(trace.span_start(&start("c", 0)), Err(WriteError::AfterTerminal)));
    assert!(matches!(trace.terminal(&complete(15)), Err(WriteError::AfterTerminal)));
    trace.finish().expect("ended");
    assert_eq!(
        out.iter().filter(|&&byte| byte == b'\n').count(),
        5,
        "one line for each call taken"
    );
    let mut neighbour = Neighbour::new();
    assert_eq!(neighbour.agrees(&out, "written"), None);
}

#[test]
fn a_trace_without_its_last_line_is_not_finished() {
    let trace = TraceWriter::new(Vec::new(), &run()).expect("memory takes everything");
    assert!(matches!(trace.finish(), Err(WriteError::NoTerminal)));
}

#[test]
fn statistics_are_refused_where_the_version_has_none() {
    let (v9, run) = (TraceSchema::V9, run());
    let mut trace = TraceWriter::new_with_schema(Vec::new(), v9, &run).expect("memory");
    let stats = TensorStats {
        span_id: "a".into(),
        label: "loss".into(),
        shape: vec![],
        dtype: "f64".into(),
        elements: 1,
        non_finite: 0,
        rms: 1.0,
        abs_max: 1.0,
        mean: 1.0,
    };
    assert!(matches!(trace.tensor_stats(&stats), Err(WriteError::StatsBeforeV10)));
}

/// A sink that takes so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_the_sink_failed_nothing_more_is_written() {
    assert!(matches!(TraceWriter::new(Full(10), &run()), Err(WriteError::Io(_))));
    let mut trace = TraceWriter::new(Full(2_000), &run()).expect("room for the first line");
    let mut written = (0..100).map(|n| trace.span_start(&start(&format!("s{n}"), n)));
    assert!(written.any(|result| matches!(result, Err(WriteError::Io(_)))));
    assert!(written.all(|result| matches!(result, Err(WriteError::Broken))));
    drop(written);
    assert!(matches!(trace.terminal(&complete(1_000)), Err(WriteError::Broken)));
    assert!(matches!(trace.finish(), Err(WriteError::Broken)));
}
