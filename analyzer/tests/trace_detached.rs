//! Detached spans in traces: stretches of no lane, whose parts are of the lanes that worked on them.

use std::sync::mpsc;

use candle_graph_v10 as neighbour;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::Trace;
use tmrun_formats::trace::{CaptureContract, Span, TraceDocument};
use tmrun_probe_core::{ProfileRun, detached, probe, span};

/// A step in which a request begins, is worked on by this thread and by another one, and ends; the trace,
/// which must be valid to the neighbour with `request` as a label that is there once.
fn traced(look: impl FnOnce(&TraceDocument<'_>)) {
    probe!(static PROBE: lanes = 2, slots = 256);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let contract = CaptureContract {
        required_semantic_labels: ["request".to_owned()].into(),
        ..CaptureContract::default()
    };
    let run = ProfileRun::training("serve", 1, "cpu").capture_contract(contract);
    let recording = PROBE.record(&path, run).expect("it starts");
    {
        let _step = PROBE.step(1);
        let _forward = span!(PROBE, "forward");
        let request = detached!(PROBE, "request");
        {
            let _here = request.enter();
            let _encode = span!(PROBE, "encode");
        }
        let (worked, wait) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                {
                    let _there = request.enter();
                    let _decode = span!(PROBE, "decode");
                }
                worked.send(()).expect("it waits");
            });
            wait.recv().expect("it works");
        });
        drop(request);
    }
    recording.finish().expect("it ends");
    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&recording, Some(1)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    assert!(derived.told.moved_spans.is_empty(), "{:?}", derived.told.moved_spans);
    let text = folder.path().join("trace.jsonl");
    std::fs::write(&text, derived.document.write(Vec::new()).expect("a trace")).expect("written");
    let health = neighbour::trace::analyze_health(&neighbour::parse_trace(&text).expect("a trace"));
    assert!(health.structurally_valid, "{:?}", health.issues);
    look(&derived.document);
}

#[test]
fn a_detached_span_is_one_span_beside_the_lanes_and_its_parts_are_where_the_lanes_had_them() {
    traced(|document| {
        let by_id = |id: &str| document.spans.iter().find(|span| span.id == id);
        let above = |span: &Span<'_>| {
            let parent = span.parent.as_deref().and_then(by_id).expect("a parent");
            parent.name.clone().into_owned()
        };
        let named = |name: &str| -> Vec<&Span<'_>> {
            document.spans.iter().filter(|span| span.name == name).collect()
        };
        let [request] = named("request")[..] else { panic!("{:?}", document.spans) };
        assert_eq!(request.parent.as_deref(), Some("root"), "no lane's time has it");
        let mut parts: Vec<_> = named("request (segment)").into_iter().map(above).collect();
        parts.sort_unstable();
        assert_eq!(parts, ["forward", "serve"], "this thread's in the step, the other's beside it");
        let [encode] = named("encode")[..] else { panic!("{:?}", document.spans) };
        let [decode] = named("decode")[..] else { panic!("{:?}", document.spans) };
        assert_eq!([above(encode), above(decode)], ["request (segment)"; 2]);
        let [forward] = named("forward")[..] else { panic!("{:?}", document.spans) };
        assert_eq!(above(forward), "step");
    });
}
