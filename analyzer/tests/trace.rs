//! Traces of recorded steps, judged by the real `candle-graph`.

#[path = "support/probed.rs"]
mod probed;

use std::collections::BTreeMap;

use candle_graph_v10 as neighbour;
use tmrun::scan::Recording;
use tmrun::slice::{Region, slice};
use tmrun::trace::{LeftOut, Trace};
use tmrun_formats::trace::{RunOutcome, TraceDocument};
use tmrun_formats::wire::Span;

/// What the neighbour's health analysis finds, by severity.
fn judged(text: &[u8]) -> (bool, Vec<String>) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it is written");
    let document = neighbour::parse_trace(file.path()).expect("a trace that the neighbour reads");
    let health = neighbour::trace::analyze_health(&document);
    let issues = health.issues.iter();
    let errors = issues.filter(|issue| issue.severity == neighbour::trace::HealthSeverity::Error);
    let errors: Vec<_> = errors.map(|issue| format!("{}: {}", issue.code, issue.message)).collect();
    assert_eq!(health.structurally_valid, errors.is_empty());
    (health.capture_complete, errors)
}

fn written(document: &TraceDocument<'_>) -> Vec<u8> {
    document.write(Vec::new()).expect("a trace that a reader takes")
}

/// How long the spans of a name are in the recording.
fn recorded_ns(recording: &Recording<'_>, name: &str) -> Vec<u64> {
    let clock = recording.clock();
    let records = recording.record_chunks().flat_map(|chunk| chunk.records());
    let spans = records.filter_map(|record| Some((record.header(), record.payload::<Span>()?)));
    spans
        .filter(|(header, _)| recording.names().text(header.name) == Some(name))
        .map(|(header, span)| clock.ns(span.end) - clock.ns(header.ticks))
        .collect()
}

#[test]
fn every_step_of_a_recorded_run_is_a_valid_trace_to_the_neighbour() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = probed::recorded(&folder.path().join("run.tmrun"));
    let recording = Recording::open(&file, "run").expect("a header");
    for number in 1..=probed::STEPS {
        let region = Region::of(&recording, Some(number)).expect("the step");
        let trace = Trace::of(&recording, &region);
        let derived = trace.derive();
        let document = &derived.document;
        let text = written(document);
        assert_eq!(judged(&text), (true, vec![]), "step {number}");
        assert_eq!(&TraceDocument::read(&text).expect("ours").run, &document.run);

        // What was recorded in the step is in it, and nothing of another step.
        let count = |name: &str| document.spans.iter().filter(|span| span.name == name).count();
        assert_eq!((count("forward"), count("step"), count("epoch")), (1, 1, 0));
        assert_eq!(derived.told.count(LeftOut::OpenSpan), 1, "the epoch is not over");
        assert_eq!(document.ops.len(), 2);
        assert_eq!(document.gradients.len(), 2);
        assert_eq!(document.run.capture_step, number);
        assert!(document.run.run_id.ends_with(&format!("/step-{number}")));
        let labels: Vec<_> = document.tensor_stats.iter().map(|stats| &*stats.label).collect();
        assert_eq!(labels, ["forward.out", "loss"], "and not the other thread's");
        assert!(derived.told.moved_spans.is_empty() && derived.told.moved_facts.is_empty());

        // Storage that was there before is there from the beginning.
        let carried = document.memory.iter().filter(|event| {
            event.op_name.as_deref() == Some("carried-in")
                && (&*event.span_id, event.timestamp_ns) == ("root", 0)
        });
        assert_eq!(carried.count() as u64, derived.told.carried.0);
        assert_eq!(derived.told.carried, (number, 64 + 8 * (number - 1)));
        let parent: BTreeMap<_, _> =
            document.spans.iter().map(|span| (&*span.name, span.parent.as_deref())).collect();
        assert_eq!(parent["beside"], Some("root"));
        assert_eq!(parent["step"], Some("root"));
        assert_eq!(parent["forward"], Some("step"));

        // What ran beside it is there as it ran, from before the step until behind it.
        let time = |name: &str| {
            let span = document.spans.iter().find(|span| span.name == name).expect("the span");
            (span.start_ns, span.start_ns + span.duration_ns.expect("it ended"))
        };
        let (beside, measured, root) = (time("beside"), time("step"), time("example::update"));
        assert!(beside.0 < measured.0 && measured.1 < beside.1, "{beside:?} {measured:?}");
        assert!(root.0 <= beside.0 && beside.1 <= root.1, "{beside:?} in {root:?}");
        assert!(recorded_ns(&recording, "beside").contains(&(beside.1 - beside.0)), "unclipped");
    }
}

#[test]
fn a_slice_gives_the_same_trace_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = probed::recorded(&folder.path().join("run.tmrun"));
    let recording = Recording::open(&file, "run").expect("a header");
    for number in 1..=probed::STEPS {
        let region = Region::of(&recording, Some(number)).expect("the step");
        let mut part = Vec::new();
        slice(&recording, &region, &mut part).expect("memory");
        let part = Recording::open(&part, "slice").expect("a header");
        let of_part = Region::of(&part, Some(number)).expect("the step");
        let (whole, part) = (Trace::of(&recording, &region), Trace::of(&part, &of_part));
        let (whole, part) = (whole.derive(), part.derive());
        let text = |document| String::from_utf8(written(document)).expect("text");
        assert_eq!(text(&whole.document), text(&part.document));
        assert_eq!(whole.told.left_out, part.told.left_out);
        assert_eq!(whole.told.refuted, part.told.refuted);
        assert_eq!(whole.told.gaps, part.told.gaps);
    }
}

#[test]
fn a_step_that_did_not_end_is_a_failed_capture_with_its_open_spans() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = probed::failed(&folder.path().join("run.tmrun"));
    let recording = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&recording, Some(2)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    assert_eq!(derived.document.terminal.outcome, RunOutcome::Failed);
    let text = written(&derived.document);
    assert_eq!(judged(&text), (false, vec![]));
    let open = derived.document.spans.iter().filter(|span| span.duration_ns.is_none());
    let mut open: Vec<_> = open.map(|span| &*span.name).collect();
    open.sort_unstable();
    assert_eq!(open, ["forward", "step"]);
    let reason = derived.document.terminal.reason.as_deref();
    assert!(reason.is_some_and(|why| why.contains("step 2 did not end")), "{reason:?}");
}
