//! Traces of our sessions where those of `candle-graph`'s do not hold; docs/COMPATIBILITY.md lists them.

use std::error::Error;
use std::path::Path;

use candle_graph_v10 as neighbour;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::Trace;
use tmrun_formats::trace::{Edge, RunOutcome, TraceDocument};
use tmrun_probe_core::session::{ProfileRun, SpanKind, TraceSession};

type Tested = Result<(), Box<dyn Error>>;

fn run() -> ProfileRun {
    ProfileRun::training("trainer::update", 1, "cpu")
}

/// The errors that the neighbour finds in a trace.
fn errors(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let health = neighbour::trace::analyze_health(&neighbour::parse_trace(path)?);
    let issues = health.issues.iter();
    let errors = issues.filter(|issue| issue.severity == neighbour::trace::HealthSeverity::Error);
    Ok(errors.map(|it| format!("{}: {}", it.code, it.message)).collect())
}

/// The trace of a recording, which the neighbour must find no error in.
fn traced<R>(
    file: &[u8],
    look: impl FnOnce(&TraceDocument<'_>, &Recording<'_>) -> R,
) -> Result<R, Box<dyn Error>> {
    let recording = Recording::open(file, "run")?;
    let region = Region::of(&recording, None)?;
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, derived.document.write(Vec::new())?)?;
    assert_eq!(errors(&path)?, Vec::<String>::new());
    Ok(look(&derived.document, &recording))
}

/// What a session of ours left.
fn recorded(program: impl FnOnce(&TraceSession)) -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let session = TraceSession::open(folder.path().join("run.tmrun"), run())?;
    program(&session);
    Ok(std::fs::read(session.finish()?)?)
}

#[test]
fn spans_lie_within_one_another_whatever_the_machine_does_meanwhile() -> Tested {
    for _ in 0..20 {
        let file = recorded(|session| {
            let _measured = session.begin_measurement("update/1");
            for _ in 0..200 {
                let _outer = session.begin_span("outer", SpanKind::Module);
                let _inner = session.begin_span("inner", SpanKind::Op);
            }
        })?;
        assert_eq!(traced(&file, |document, _| document.spans.len())?, 402);
    }
    Ok(())
}

/// One span calls another, and who saw it says how long that took.
macro_rules! call {
    ($session:expr, $kind:expr) => {{
        let session = $session;
        let measured = session.begin_measurement("update/1");
        let started = std::time::Instant::now();
        let inner = session.begin_span("inner", $kind);
        let (from, to) = (measured.id(), inner.id());
        drop(inner);
        let took = started.elapsed().as_nanos() as u64 + 1;
        session.record_call_edge(from, to, took)
    }};
}

#[test]
fn a_call_takes_as_long_as_the_span_that_was_called() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.jsonl");
    let theirs = neighbour::ProfileRun::training("trainer::update", 1, "cpu");
    let theirs = neighbour::TraceSession::open(&path, theirs)?;
    call!(&theirs, neighbour::SpanKind::Op)?;
    theirs.finish()?;
    let found = errors(&path)?;
    assert!(found[0].starts_with("call_edge_duration_mismatch"), "{found:?}");

    let file = recorded(|session| call!(session, SpanKind::Op).expect("recorded"))?;
    traced(&file, |document, _| {
        let inner = document.spans.iter().find(|span| span.name == "inner").expect("the span");
        let [Edge::Call(edge)] = &document.edges[..] else { panic!("{:?}", document.edges) };
        assert_eq!((&edge.to_span, Some(edge.host_duration_ns)), (&inner.id, inner.duration_ns));
    })
}

#[test]
fn guards_that_are_dropped_out_of_order_spoil_no_capture() -> Tested {
    let folder = tempfile::tempdir()?;
    let theirs = neighbour::ProfileRun::training("trainer::update", 1, "cpu");
    let theirs = neighbour::TraceSession::open(folder.path().join("trace.jsonl"), theirs)?;
    let outer = theirs.begin_measurement("outer");
    let inner = theirs.begin_span("inner", neighbour::SpanKind::Function);
    drop(outer);
    drop(inner);
    assert!(theirs.finish().is_err());

    let file = recorded(|session| {
        let outer = session.begin_measurement("outer");
        let inner = session.begin_span("inner", SpanKind::Function);
        drop(outer);
        drop(inner);
    })?;
    traced(&file, |document, recording| {
        let ended = document.spans.iter().filter(|span| span.duration_ns.is_some());
        assert_eq!(ended.count(), 3, "with the root");
        let counted = recording.lanes().iter().filter_map(|(_, lane)| lane.counters());
        assert_eq!(counted.map(|counted| counted.out_of_order).sum::<u64>(), 1);
    })
}

#[test]
fn what_breaks_off_is_a_trace_of_a_capture_that_failed() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.jsonl");
    let theirs = neighbour::ProfileRun::training("trainer::update", 1, "cpu");
    let theirs = neighbour::TraceSession::open(&path, theirs)?;
    drop(theirs.begin_measurement("update/1"));
    std::mem::forget(theirs);
    assert!(neighbour::parse_trace(&path).is_err());

    let session = TraceSession::open(folder.path().join("run.tmrun"), run())?;
    drop(session.begin_measurement("update/1"));
    session.flush()?;
    let file = std::fs::read(session.path())?;
    traced(&file, |document, _| {
        assert_eq!(document.terminal.outcome, RunOutcome::Failed);
        assert!(document.spans.iter().any(|span| span.name == "update/1" && span.measured));
    })?;
    session.finish()?;
    Ok(())
}
