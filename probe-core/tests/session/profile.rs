//! Sessions of timed operations.

use tmrun_formats::wire::{Frame, Kind, flags};
use tmrun_probe_core::session::{
    ExecutionPhase, ProfileConfig, ProfileSession, SessionError, TimedOperation,
};

use crate::support::read::STEP;
use crate::{Folder, named, read, text};

#[test]
fn operations_and_edges_are_of_the_nodes_of_a_static_analysis_and_in_their_steps() {
    let folder = Folder::new();
    let config = ProfileConfig {
        cargo_features: vec!["cuda".into()],
        build_id: Some("build".into()),
        ..ProfileConfig::infer("model::forward")
    };
    let mut session = ProfileSession::open(folder.path("run.tmrun"), config).unwrap();
    assert_eq!((session.phase(), session.step()), (ExecutionPhase::Infer, 0));
    drop(TimedOperation::begin(&mut session, "op:load", "load", &[]).unwrap());
    for step in [5, 6] {
        session.set_step(step);
        let event = session.begin_operation("op:1", "matmul", &["x".into(), "w".into()]).unwrap();
        let took = session.end_operation(&event, Some("y".into())).unwrap();
        session.record_edge_timing("tensor:x", "op:1", took).unwrap();
        let refused = session.end_operation(&event, None).unwrap_err();
        assert!(matches!(refused, SessionError::UnknownOperation { .. }), "{refused}");
    }
    session.flush().unwrap();
    let file = read(&session.finish().unwrap());
    let ops = file.of(Kind::Op as u8);
    let told: Vec<_> =
        ops.iter().map(|op| (file.name(op), text(&file, op.u32_at(32)), op.payload[36])).collect();
    let matmul = ("op:1".to_owned(), "matmul".to_owned(), 2);
    assert_eq!(told, [("op:load".to_owned(), "load".to_owned(), 0), matmul.clone(), matmul]);
    assert_eq!(named(&file, &ops[1], flags::OP_OUTPUT_NAMED, 8), "y");
    let names = file.names();
    let ids = ["op:1", "tensor:x"].map(|id| names.values().find(|name| name.text == id).unwrap());
    assert_eq!(ids.map(|name| name.static_id), [Some("op:1"), Some("tensor:x")]);
    let marks: Vec<_> = file.of(STEP).iter().map(|mark| (mark.u64_at(0), mark.flags)).collect();
    assert_eq!(marks, [(5, 0), (5, flags::STEP_END), (6, 0), (6, flags::STEP_END)]);
    let edges = file.of(Kind::Edge as u8);
    assert_eq!(edges.len(), 2);
    assert_eq!(edges[0].u64_at(16), ops[1].u64_at(0) - ops[1].ticks);
    let run = file.frames().into_iter().find_map(|frame| match frame {
        Frame::Run(run) => Some((run.entrypoint.to_owned(), run.profile.to_owned(), run.phase.0)),
        _ => None,
    });
    assert_eq!(run, Some(("model::forward".into(), "release".into(), 2)));
    let features =
        file.frames().into_iter().filter(|frame| matches!(frame, Frame::CargoFeature(_)));
    assert_eq!(features.count(), 1);
}

#[test]
fn an_operation_that_never_ended_has_no_record() {
    let folder = Folder::new();
    let config = ProfileConfig::train("model::step");
    let mut session = ProfileSession::open(folder.path("run.tmrun"), config).unwrap();
    session.begin_operation("op:1", "matmul", &[]).unwrap();
    let file = read(&session.finish().unwrap());
    assert!(file.of(Kind::Op as u8).is_empty());
}
