//! Spans of sessions, and what is recorded of them.

use std::time::{Duration, Instant};

use tmrun_formats::wire::{Kind, flags};
use tmrun_probe_core::Level;
use tmrun_probe_core::session::{ExecutionStep, SessionError, SpanKind, TraceSession};

use crate::support::read::SPAN;
use crate::{Folder, only, read, run};

#[test]
fn spans_nest_as_they_are_opened_and_say_what_they_are() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let measured = session.begin_measurement("update");
        let forward = session.begin_step_span("fwd", ExecutionStep::Forward, SpanKind::Module);
        let op = session.begin_span("matmul", SpanKind::Op);
        assert_eq!([&measured, &forward, &op].map(|span| span.id().raw()), [1, 2, 3]);
    });
    let spans = file.of(SPAN);
    let told: Vec<_> = spans
        .iter()
        .map(|span| {
            let measured = span.flags & flags::SPAN_MEASURED != 0;
            let (step, kind) = (span.payload[26], span.payload[27]);
            (file.name(span), span.span_id(), span.u64_at(8), measured, step, kind)
        })
        .collect();
    let expected = [
        ("matmul".to_owned(), 3, 2, false, 0, 2),
        ("fwd".to_owned(), 2, 1, false, 1, 3),
        ("update".to_owned(), 1, 0, true, 0, 1),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_record_keeps_the_span_that_it_names_also_when_that_has_ended() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let ended = session.begin_span("ended", SpanKind::Function).id();
        let _measured = session.begin_measurement("update");
        let _inner = session.begin_span("inner", SpanKind::Function);
        session.record_scalar(ended, "loss", 1.0).unwrap();
    });
    let scalar = only(&file, Kind::Scalar);
    let ended = file.of(SPAN).into_iter().find(|span| file.name(span) == "ended").unwrap();
    assert_eq!((scalar.span, u64::from(scalar.span)), (ended.span, ended.span_id()));
}

#[test]
fn a_span_of_another_session_is_refused() {
    let folder = Folder::new();
    let other = TraceSession::open(folder.path("other"), run()).unwrap();
    let spans = [1, 2, 3].map(|_| other.begin_span("other's", SpanKind::Function));
    let foreign = spans[0].id().max(spans[2].id());
    folder.recorded(|session| {
        let _own = session.begin_measurement("update");
        let refused = session.record_scalar(foreign, "loss", 1.0).unwrap_err();
        assert!(matches!(refused, SessionError::UnknownSpan { found: 3, last: 1 }), "{refused}");
    });
    drop(spans);
    other.finish().unwrap();
}

#[test]
fn completed_work_hangs_on_no_span_and_keeps_its_times() {
    let folder = Folder::new();
    let mut times = (0, 0);
    let file = folder.recorded(|session| {
        let _measured = session.begin_measurement("update");
        let start = session.host_timestamp_ns(Instant::now()).unwrap();
        let took = loop {
            let took = session.elapsed_ns() - start;
            if took > 0 {
                break took;
            }
        };
        session.record_memory_alloc(_measured.id(), memory(start)).unwrap();
        let id = session.record_completed_host_span("load", SpanKind::Op, start, took).unwrap();
        assert_eq!(id.raw(), 2);
        times = (start, took);
    });
    let load = file.of(SPAN).into_iter().find(|span| file.name(span) == "load").unwrap();
    assert_eq!(load.flags, flags::SPAN_COMPLETED);
    assert_eq!((load.u64_at(8), load.payload[27]), (0, 2), "no parent, an operation");
    assert_eq!(load.u64_at(0) - load.ticks, times.1);
    assert_eq!(load.ticks, only(&file, Kind::Alloc).ticks, "one clock");
}

fn memory(at: u64) -> tmrun_probe_core::session::MemoryRecord<'static> {
    use tmrun_probe_core::session::{MemoryCategory, MemoryRecord};
    MemoryRecord {
        storage_id: "s",
        tensor_id: "t",
        device: "cpu",
        bytes: 1,
        dtype: "u8",
        category: MemoryCategory::Other,
        timestamp_ns: Some(at),
        op_name: None,
        shape: &[],
    }
}

#[test]
fn completed_work_lasts_some_time_and_has_ended() {
    let folder = Folder::new();
    folder.recorded(|session| {
        let record = |start, took| {
            session.record_completed_host_span("work", SpanKind::Function, start, took).unwrap_err()
        };
        assert!(matches!(record(0, 0), SessionError::EmptyInterval { .. }));
        assert!(matches!(record(u64::MAX, 1), SessionError::IntervalTooLong { .. }));
        let later = session.elapsed_ns() + 60_000_000_000;
        assert!(matches!(record(later, 1), SessionError::InTheFuture { .. }));
    });
}

#[test]
fn an_instant_is_never_later_in_the_sessions_time_than_now() {
    let before = Instant::now();
    let folder = Folder::new();
    folder.recorded(|session| {
        for _ in 0..10_000 {
            let at = session.host_timestamp_ns(Instant::now()).unwrap();
            assert!(at <= session.elapsed_ns());
        }
        let refused = session.host_timestamp_ns(before - Duration::from_nanos(1)).unwrap_err();
        assert!(matches!(refused, SessionError::BeforeSession), "{refused}");
    });
}

#[test]
fn a_guard_knows_how_long_its_span_has_been_open() {
    let folder = Folder::new();
    let mut told = 0;
    let file = folder.recorded(|session| {
        let span = session.begin_measurement("update");
        told = span.elapsed_ns();
    });
    let span = only(&file, Kind::Span);
    assert!(told <= span.u64_at(0) - span.ticks);
}

#[test]
fn a_level_below_leaves_out_what_it_does_not_ask_for() {
    let folder = Folder::new();
    let session = TraceSession::open(folder.path("run.tmrun"), run().level(Level::PULSE)).unwrap();
    {
        let measured = session.begin_measurement("update");
        let inner = session.begin_span("inner", SpanKind::Function);
        assert_eq!((measured.id().raw(), inner.id().raw()), (1, 0));
        for label in ["loss", ""] {
            assert!(session.wants(label, Level::PULSE) && !session.wants(label, Level::TIMING));
        }
        session.record_scalar(inner.id(), "loss", 1.0).unwrap();
        session.record_memory_alloc(inner.id(), memory(0)).unwrap();
        session.record_completed_host_span("load", SpanKind::Function, 0, 1).unwrap();
    }
    let file = read(&session.finish().unwrap());
    assert_eq!(file.name(&only(&file, Kind::Span)), "update");
    assert_eq!(only(&file, Kind::Scalar).span, 0);
    assert!(file.of(Kind::Alloc as u8).is_empty());
}
