//! How sessions end.

use tmrun_formats::wire::{Frame, Kind};
use tmrun_probe_core::session::{SessionError, SpanKind, TraceSession};

use crate::support::read::File;
use crate::{Folder, only, read, run};

fn ending(file: &File) -> (bool, Option<String>) {
    let terminal = file.frames().into_iter().find_map(|frame| match frame {
        Frame::Terminal(terminal) => Some(terminal),
        _ => None,
    });
    let terminal = terminal.unwrap();
    (terminal.complete, terminal.reason.map(str::to_owned))
}

#[test]
fn a_session_that_failed_says_why_and_keeps_what_it_recorded() {
    let folder = Folder::new();
    let session = TraceSession::open(folder.path("run.tmrun"), run()).unwrap();
    drop(session.begin_measurement("update"));
    let file = read(&session.finish_failed("the loss is NaN").unwrap());
    assert_eq!(ending(&file), (false, Some("the loss is NaN".to_owned())));
    assert_eq!(file.name(&only(&file, Kind::Span)), "update");
}

#[test]
fn a_failure_needs_a_reason_and_a_dropped_session_has_one() {
    let folder = Folder::new();
    let path = folder.path("run.tmrun");
    let session = TraceSession::open(&path, run()).unwrap();
    let refused = session.finish_failed(" ").unwrap_err();
    assert!(matches!(refused, SessionError::Blank { .. }), "{refused}");
    let (complete, reason) = ending(&read(&path));
    assert!(!complete && reason.unwrap().contains("dropped"));
}

#[test]
fn a_span_that_never_ended_fails_the_session() {
    let folder = Folder::new();
    let path = folder.path("run.tmrun");
    let session = TraceSession::open(&path, run()).unwrap();
    std::mem::forget(session.begin_span("forgotten", SpanKind::Function));
    let refused = session.finish().unwrap_err();
    assert!(matches!(refused, SessionError::SpansOpen { open: 1 }), "{refused}");
    let file = read(&path);
    assert!(!ending(&file).0);
    assert!(file.frames().iter().any(|frame| matches!(frame, Frame::OpenSpan(_))));
}

#[test]
fn guards_that_are_dropped_out_of_order_end_their_own_spans() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let outer = session.begin_span("outer", SpanKind::Function);
        let inner = session.begin_span("inner", SpanKind::Function);
        drop(outer);
        drop(inner);
    });
    let names: Vec<_> = file.of(1).iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["outer", "inner"]);
    assert_eq!(file.totals(0).unwrap().out_of_order, 1);
}

#[test]
fn what_was_flushed_is_in_the_file_while_the_session_goes_on() {
    let folder = Folder::new();
    let path = folder.path("run.tmrun");
    let session = TraceSession::open(&path, run()).unwrap();
    drop(session.begin_measurement("update"));
    session.flush().unwrap();
    let file = File::prefix(&std::fs::read(&path).unwrap());
    assert_eq!(file.name(&only(&file, Kind::Span)), "update");
    session.finish().unwrap();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_session_may_keep_its_rings_in_a_file_until_it_ends() {
    let folder = Folder::new();
    let rings = folder.path("rings");
    let open = |name: &str| {
        let run = run().rings_in(&rings);
        TraceSession::builder().slots(64).names(64).open(folder.path(name), run).unwrap()
    };
    let files = || std::fs::read_dir(&rings).unwrap().count();
    for name in ["one", "two"] {
        let (session, other) = (open(name), open(&format!("{name} beside")));
        assert_eq!(files(), 2);
        let span = session.begin_measurement(name);
        session.record_scalar(span.id(), "loss", 1.0).unwrap();
        drop(span);
        let file = read(&session.finish().unwrap());
        assert_eq!(file.name(&only(&file, Kind::Span)), name);
        other.finish().unwrap();
        assert_eq!(files(), 0);
    }
}
