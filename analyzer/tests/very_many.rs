//! What there may be very many of takes time in proportion: these would take minutes if each was held against
//! all others.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
#[path = "support/steps.rs"]
mod steps;
mod support;

use support::Builder;
use support::command::Folder;
use support::record::{scalar, span_in, step};
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::Trace;
use tmrun_formats::wire::{Frame, LevelChange, OpenSpanV1, Record, RecordHeader};
use tmrun_formats::{LaneId, Level, NameId, SpanId, Ticks};

#[test]
fn spans_that_never_ended_in_a_step_of_many_chunks() {
    const MANY: u64 = 60_000;
    let end = 2_000 + MANY * 10;
    let mut file = Builder::started().records(0, &[step(1_000, 1, false)]);
    for at in 0..MANY {
        file = if at % 1_000 == 0 { file.index() } else { file };
        file = file.records(0, &[scalar(2_000 + at * 10, 2, 0.5)]);
    }
    file = file.index().records(0, &[step(end, 1, true)]);
    let open = |id| OpenSpanV1 {
        lane: LaneId(0),
        span: SpanId(id),
        parent: SpanId::NONE,
        name: NameId(1),
        start: Ticks(end - 5),
        depth: 0,
    };
    let open: Vec<_> = (10..10 + MANY).map(|id| Frame::OpenSpan(open(id))).collect();
    for frames in open.chunks(500) {
        file = file.meta(frames);
    }
    let file = file.finish();
    let recording = Recording::open(&file, "test").expect("a header");
    let region = Region::of(&recording, Some(1)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let open = derived.document.spans.iter().filter(|span| span.duration_ns.is_none());
    assert_eq!(open.count() as u64, MANY);
}

#[test]
fn foci_of_a_bundle() {
    // As many as a reader keeps.
    const MANY: u32 = 65_000;
    let texts: Vec<String> = (0..MANY).map(|i| format!("encoder.block.{i:06}.*")).collect();
    let names: Vec<_> =
        (10..).zip(&texts).map(|(id, text)| Frame::Name(support::name(id, text))).collect();
    let mut file = Builder::started();
    for frames in names.chunks(500) {
        file = file.meta(frames);
    }
    let focus = |(id, at): (u32, u64)| {
        let at = Ticks(at);
        let change = LevelChange { asked: at, armed: at, new: Level(3), ..LevelChange::default() };
        let header = RecordHeader::of::<LevelChange>(Level::PULSE);
        Record::new(RecordHeader { ticks: at, name: NameId(id), ..header }, &change)
    };
    let mut changes: Vec<_> = (10..10 + MANY).zip(1_000..).map(focus).collect();
    // The first one is set once more: that is what it was.
    changes.push(focus((10, 500_000)));
    for records in changes.chunks(1_000) {
        file = file.records(u16::MAX, records);
    }
    let file = file.records(0, &[step(1_000_000, 1, false), step(2_000_000, 1, true)]).finish();
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    bundles::publish_at(&file, Some(1), &root, &mut |_| Ok(())).expect("published");
    let files = bundles::files(&root);
    let annex = files.iter().find(|(name, _)| name.ends_with("tmrun.json")).expect("an annex").1;
    let annex: serde_json::Value = serde_json::from_slice(annex).expect("JSON");
    assert_eq!(annex["foci"].as_array().map(Vec::len), Some(MANY as usize));
    assert_eq!(annex["foci"][0]["pattern"], texts[1]);
    assert_eq!(annex["foci"][MANY as usize - 1]["pattern"], texts[0]);
}

#[test]
fn spans_within_one_another_that_one_side_of_a_diff_has_alone() {
    const MANY: u64 = 150_000;
    let end = 10_000 + 4 * MANY;
    let parent = |at: u64| if at == 0 { 0 } else { 9 + at as u32 };
    let spans: Vec<_> = (0..MANY)
        .rev()
        .map(|at| span_in(parent(at), (2_000 + at, end - at), 10 + at as u32, 1))
        .collect();
    let mut file = Builder::started().records(0, &[step(1_000, 1, false)]);
    for records in spans.chunks(1_000) {
        file = file.records(0, records);
    }
    let file = file.records(0, &[step(end + 10, 1, true)]).finish();
    let folder = Folder::with(&file);
    let none = Builder::started().records(0, &[step(1_000, 1, false), step(2_000, 1, true)]);
    std::fs::write(folder.path("none.tmrun"), none.finish()).expect("written");
    let arguments = ["diff", "--all", "in.tmrun", "none.tmrun", "--step", "1", "--json"];
    let (code, out, err) = folder.tmrun(&arguments);
    assert_eq!(code, 0, "{err}");
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let rows = found["spans"]["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["only_in"] == "a").count() as u64, MANY);
}
