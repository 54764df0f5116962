//! Spans that had not ended when the recording did: those around a complete step and beside it are none of its
//! evidence, and one that began in it is.

#[path = "support/steps.rs"]
mod steps;
mod support;

use candle_graph_v10 as neighbour;
use steps::told;
use support::Builder;
use support::record::{scalar, scalar_in, step};
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::{LeftOut, Trace};
use tmrun_formats::wire::{Frame, OpenSpanV1};
use tmrun_formats::{LaneId, NameId, SpanId, Ticks};

fn open(lane: u16, id: u64, start: u64) -> Frame<'static> {
    Frame::OpenSpan(OpenSpanV1 {
        lane: LaneId(lane),
        span: SpanId(id),
        parent: SpanId::NONE,
        name: NameId(1),
        start: Ticks(start),
        depth: 0,
    })
}

/// Two steps on lane 0, the first of which lane 1 joined; lane 2 is in none.
fn file(open: &[Frame<'_>]) -> Vec<u8> {
    Builder::started()
        .records(2, &[scalar(900, 2, 0.5)])
        .records(0, &[step(1_000, 1, false), scalar_in(5, 1_200, 2, 0.5), step(1_900, 1, true)])
        .records(1, &[step(1_100, 1, false), scalar(1_150, 2, 0.5), step(1_500, 1, true)])
        .records(0, &[step(2_000, 2, false), step(2_900, 2, true)])
        .records(1, &[scalar(2_500, 2, 0.5)])
        .meta(open)
        .finish()
}

/// The spans of a step that have no end, how many are left out, and the codes of what is wrong.
fn told_of(file: &[u8], number: u64) -> (Vec<String>, u64, Vec<String>) {
    assert_eq!(told(file, number).outcome, "complete");
    let recording = Recording::open(file, "test").expect("a header");
    let region = Region::of(&recording, Some(number)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    let written = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(written.path(), text).expect("it is written");
    let document = neighbour::parse_trace(written.path()).expect("the neighbour reads it");
    let health = neighbour::trace::analyze_health(&document);
    let errors = health.issues.iter();
    let errors = errors.filter(|i| i.severity == neighbour::trace::HealthSeverity::Error);
    let open = derived.document.spans.iter().filter(|span| span.duration_ns.is_none());
    (
        open.map(|span| span.id.clone().into_owned()).collect(),
        derived.told.count(LeftOut::OpenSpan),
        errors.map(|issue| issue.code.clone()).collect(),
    )
}

#[test]
fn a_span_that_began_in_a_complete_step_and_never_ended_stays_and_is_an_error() {
    let file = file(&[open(0, 5, 1_100)]);
    let (open, left_out, errors) = told_of(&file, 1);
    assert_eq!((open.len(), left_out), (1, 0));
    assert!(open[0].ends_with("0.0000000005"), "{open:?}");
    assert_eq!(errors, ["open_span"]);
    // To the other step it is around.
    assert_eq!(told_of(&file, 2), (vec![], 1, vec![]));
}

#[test]
fn a_span_that_a_lane_that_joined_left_open_is_one_that_began_in_the_step() {
    let (open, left_out, _) = told_of(&file(&[open(1, 5, 1_200)]), 1);
    assert_eq!((open.len(), left_out), (1, 0));
}

#[test]
fn spans_around_a_complete_step_and_beside_it_are_left_out() {
    // An epoch; a lane in no step; a lane that had left it.
    let file = file(&[open(0, 5, 950), open(2, 6, 1_200), open(1, 7, 1_600)]);
    assert_eq!(told_of(&file, 1), (vec![], 3, vec![]));
}

#[test]
fn a_span_that_may_end_in_another_file_is_no_error() {
    // The recording does not say how the run ended.
    let file = Builder::started()
        .records(0, &[step(1_000, 1, false), scalar(1_200, 2, 0.5), step(1_900, 1, true)])
        .meta(&[open(0, 5, 1_100)])
        .index()
        .trailer();
    assert_eq!(told_of(&file, 1), (vec![], 1, vec![]));
}

#[test]
fn an_outer_span_that_ends_behind_the_step_changes_nothing_of_one_that_began_in_it() {
    let of = |behind: &[tmrun_formats::wire::Record]| {
        let file = Builder::started()
            .records(0, &[step(500, 1, false), step(900, 1, true)])
            .records(0, &[step(1_000, 2, false), scalar_in(5, 1_200, 2, 0.5), step(1_900, 2, true)])
            .records(0, behind);
        told_of(&file.meta(&[open(0, 5, 1_100)]).finish(), 2)
    };
    let plain = of(&[scalar(4_000, 2, 0.5)]);
    assert_eq!((plain.0.len(), plain.1, &plain.2[..]), (1, 0, &["open_span".to_owned()][..]));
    let of_epoch = of(&[support::record::span(950, 5_000, 1, 1)]);
    assert_eq!((of_epoch.1, of_epoch.2), (0, plain.2));
}
