//! Which lanes take part in a step, from when and until when: what another lane records of it takes the place
//! of nothing, and what is in another file or in none is missing.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
#[path = "support/steps.rs"]
mod steps;
mod support;

use steps::{Told, lane, of_phase, repeated, told};
use support::Builder;
use support::command::Folder;
use support::naive::chunks;
use support::record::{level, scalar, step};
use tmrun::salvage::salvage;
use tmrun::scan::Recording;
use tmrun_formats::wire::{
    ContractV1, Frame, LaneStartV1, LaneStepV1, PartV1, Record, RecordHeader, Step, StepMark,
    StepState, TerminalV1, flags,
};
use tmrun_formats::{GapClass, LaneId, Phase, Ticks};

/// A run that promised all operations.
fn started() -> Builder {
    let contract = ContractV1 { operations: 2, ..ContractV1::default() };
    let worker = Frame::Lane(support::lane(1, "worker"));
    Builder::started()
        .meta(&[Frame::Contract(contract), worker])
        .records(u16::MAX, &[level(900, 910, 3, 3)])
}

/// Step 1 is open where the file takes up lane 0, at its fourth record.
fn taken_up_in_step() -> Builder {
    let (lane, sequence) = (LaneId(0), 3);
    let micro_batch = None;
    let mark = StepMark { number: 1, phase: Phase::TRAIN, micro_batch, within_step: false };
    let state = StepState { open: Some(mark), sure: true };
    let start = LaneStartV1 { lane, sequence, ..LaneStartV1::default() };
    let contract = ContractV1 { operations: 2, ..ContractV1::default() };
    Builder::new()
        .meta(&[
            Frame::Run(support::run()),
            Frame::Calibration(support::calibration(1_000, 50_000)),
            Frame::Name(support::name(2, "loss")),
            Frame::Contract(contract),
            Frame::LaneStep(LaneStepV1::of(lane, sequence, state)),
            Frame::LaneStart(start),
            Frame::Part(part(None)),
        ])
        .skip(0, 3)
        .records(u16::MAX, &[level(1_000, 1_010, 3, 3)])
}

fn part(next: Option<&'static str>) -> PartV1<'static> {
    let previous = next.is_none().then_some("run.tmrun");
    PartV1 { number: 2, previous, next, no_lane_records: 0, no_lane_groups: 0 }
}

/// The file ends, and the recording goes on in another one.
fn goes_on(file: Builder) -> Vec<u8> {
    file.meta(&[Frame::Part(part(Some("run.0003.tmrun")))]).index().trailer()
}

/// The file ends with a failed run.
fn failed(file: Builder, reason: &str) -> Vec<u8> {
    let reason = Some(reason);
    let terminal = TerminalV1 { complete: false, reason, ticks: Ticks(4_000) };
    file.meta(&[Frame::Terminal(terminal)]).index().trailer()
}

#[test]
fn a_step_that_a_lane_is_in_from_an_earlier_file_on_does_not_begin_where_another_joins_it() {
    let joined = || {
        taken_up_in_step()
            .records(2, &[scalar(1_500, 2, 0.5)])
            .records(1, &[step(2_000, 1, false), scalar(2_100, 2, 0.5), step(2_500, 1, true)])
            .records(2, &[scalar(3_000, 2, 0.5)])
    };
    // The lane has nothing in this file.
    let through = told(&goes_on(joined()), 1);
    assert_eq!((lane(&through), through.region.begun, through.region.ended), (0, false, false));
    let why = "step 1 began before what is left of the recording, and goes on in another file";
    assert_eq!(through.outcome, why);
    assert_eq!(through.region.extent, (Ticks(1_000), Ticks(3_000)));
    assert_eq!(through.missing(), [("left-out", Some(0)), ("left-out", Some(0))]);
    assert_eq!(through.refuted, ["operations"]);
    // It ends the step in this file, behind the other one.
    let ended = told(&joined().records(0, &[step(2_900, 1, true)]).finish(), 1);
    assert_eq!((lane(&ended), ended.region.begun, ended.region.ended), (0, false, true));
    assert_eq!(ended.outcome, "step 1 began before what is left of the recording");
    assert_eq!((ended.region.first, ended.region.last), (Ticks(1_000), Ticks(2_900)));
    assert_eq!(ended.missing(), [("left-out", Some(0))], "what the earlier file has");
    // Its first chunk is damaged, and what that had is lost.
    let file = joined().records(0, &[scalar(2_200, 2, 0.5)]).records(0, &[step(2_900, 1, true)]);
    let mut file = file.finish();
    let chunk = chunks(&file).into_iter().find(|chunk| chunk.kind == 1 && chunk.lane == 0);
    file[chunk.expect("a chunk").offset + 64] ^= 1;
    let damaged = told(&file, 1);
    assert_eq!((lane(&damaged), damaged.region.begun), (0, false));
    assert_ne!(damaged.outcome, "complete");
}

#[test]
fn a_step_may_have_begun_on_another_lane_long_before_the_one_that_is_left_of_it() {
    let of_lane_0 = |behind: &[_]| {
        let mut file = started()
            .records(0, &[step(1_000, 1, false), step(1_900, 1, true)])
            .records(0, &[step(2_000, 2, false), scalar(2_010, 2, 0.5)])
            .records(0, behind)
            .records(1, &[step(2_100, 2, false), step(2_500, 2, true)])
            .records(0, &[scalar(2_600, 2, 0.5)])
            .finish();
        let lost = chunks(&file).into_iter().filter(|chunk| chunk.lane == 0 && chunk.kind == 1);
        let lost = lost.map(|chunk| chunk.offset + 64).nth(1).expect("the second chunk");
        file[lost] ^= 1;
        told(&file, 2)
    };
    let lost = of_lane_0(&[scalar(2_050, 2, 0.5)]);
    assert_eq!(lost.outcome, "the beginning of step 2 is lost");
    assert_eq!((lost.region.begun, lost.region.first), (false, Ticks(2_000)));
    assert!(lost.gaps.iter().any(|gap| gap.class == GapClass::Lost), "{:?}", lost.gaps);
    // It was in another step by then.
    let other = of_lane_0(&[step(2_050, 7, false)]);
    assert_eq!(other.outcome, "complete");
}

#[test]
fn bytes_of_no_lane_may_have_been_of_a_lane_that_is_not_seen_behind_them() {
    let of_worker = |behind: Option<u64>| {
        let file = started()
            .records(1, &[step(950, 1, false), step(1_000, 1, true)])
            .meta(&[Frame::Name(support::name(3, "lost"))]);
        let file = match behind {
            Some(at) => file.records(1, &[scalar(at, 2, 0.5)]),
            None => file,
        };
        let mut file = file.records(0, &[step(2_000, 2, false), step(2_900, 2, true)]).unfinished();
        // The second chunk of metadata behind the beginning, as a whole.
        let lost = chunks(&file).into_iter().filter(|chunk| chunk.kind == 2).nth(2);
        file[lost.expect("a chunk").offset + 1] ^= 1;
        told(&file, 2)
    };
    assert_eq!(of_worker(None).outcome, "the beginning of step 2 is lost");
    // Positions tell that nothing of it is lost before its last record.
    assert_eq!(of_worker(Some(1_500)).outcome, "complete");
}

/// A whole step on lane 0, which lane 1 joined and did not leave.
fn joined() -> Builder {
    started()
        .records(0, &[step(1_000, 1, false), scalar(1_100, 2, 0.5)])
        .records(1, &[step(1_200, 1, false), scalar(1_300, 2, 0.5)])
        .records(0, &[step(1_900, 1, true), scalar(2_000, 2, 0.5)])
}

/// Its wall time is known, and something that this reason is of is missing of it.
fn lacks(told: &Told, reason: &'static str) {
    assert_eq!(told.outcome, "complete", "its wall time is known");
    assert_eq!(told.missing(), [(reason, Some(1))]);
    assert_eq!((told.gaps[0].first, told.gaps[0].last), (Ticks(1_300), Ticks(1_900)));
    assert_eq!(told.gaps[0].records, 0, "nobody knows how many");
    assert_eq!(told.refuted, ["operations"]);
}

#[test]
fn what_a_lane_that_did_not_leave_the_step_recorded_behind_the_file_is_missing() {
    lacks(&told(&goes_on(joined()), 1), "left-out");
    lacks(&told(&joined().finish(), 1), "after-finish");
    lacks(&told(&failed(joined(), "out of memory"), 1), "after-finish");
    let unfinished = joined().unfinished();
    lacks(&told(&unfinished, 1), "torn");
    let mut salvaged = Vec::new();
    let recording = Recording::open(&unfinished, "test").expect("a header");
    salvage(&recording, &mut salvaged, &|_| ()).expect("memory");
    lacks(&told(&salvaged, 1), "torn");
}

#[test]
fn a_lane_that_joined_once_more_has_not_left_the_step() {
    let again = [step(1_400, 1, true), step(1_500, 1, false), scalar(1_950, 2, 0.5)];
    let told = told(&joined().records(1, &again).finish(), 1);
    assert_eq!(told.missing(), [("after-finish", Some(1))]);
    assert_eq!((told.gaps[0].first, told.region.extent.1), (Ticks(1_950), Ticks(1_950)));
    assert_eq!(told.refuted, ["operations"]);
}

#[test]
fn what_goes_on_behind_a_step_is_none_of_it_whatever_its_number() {
    // A step that an earlier recording never closed is open around it.
    let resumed = step(2_600, 1, false);
    let header = RecordHeader { flags: flags::STEP_RESUMED, ..resumed.header() };
    let resumed = Record::new(header, &resumed.payload::<Step>().expect("a step mark"));
    let marks = [step(2_500, 1, true), resumed, scalar(2_700, 2, 0.5)];
    let told = told(&joined().records(1, &marks).finish(), 1);
    assert_eq!((told.missing(), told.refuted), (vec![], vec![]));
    assert_eq!(told.region.extent.1, Ticks(2_500));
}

#[test]
fn nothing_is_missing_of_a_lane_that_left_the_step_or_whose_last_record_is_there() {
    let left = |marks: &[_]| told(&joined().records(1, marks).finish(), 1);
    assert_eq!(left(&[step(2_500, 1, true)]).missing(), []);
    let next = left(&[step(2_500, 2, false)]);
    assert_eq!((next.missing(), next.refuted), (vec![], vec![]));
    let gone = "salvaged: process 7 ended without finishing the recording";
    let gone = told(&failed(joined(), gone), 1);
    assert_eq!((gone.missing(), gone.refuted), (vec![], vec![]));
    // What is lost there is a gap of its own, and no other is made of it.
    let mut file = joined().records(1, &[scalar(1_800, 2, 0.5)]).finish();
    let lost = chunks(&file).into_iter().rfind(|chunk| chunk.kind == 1 && chunk.lane == 1);
    file[lost.expect("a chunk").offset + 64] ^= 1;
    let lost = told(&file, 1);
    assert_eq!(lost.missing(), [("corrupt", Some(1))]);
    assert_eq!(lost.refuted, ["operations"]);
}

#[test]
fn a_step_that_is_open_where_the_file_ends_lacks_what_comes_behind_it() {
    let open = || started().records(0, &[step(1_000, 1, false), scalar(1_100, 2, 0.5)]);
    let beside = || open().records(1, &[scalar(2_000, 2, 0.5)]);
    for (file, reason) in [
        (goes_on(beside()), "left-out"),
        (beside().finish(), "after-finish"),
        (beside().unfinished(), "torn"),
    ] {
        let told = told(&file, 1);
        assert_ne!(told.outcome, "complete");
        assert_eq!((told.missing(), told.refuted), (vec![(reason, Some(0))], vec!["operations"]));
    }
    // A run that failed within it says that it ended there.
    let failed = told(&failed(beside(), "out of memory"), 1);
    assert_eq!(failed.outcome, "step 1 did not end: out of memory");
    assert_eq!((failed.missing(), failed.refuted), (vec![], vec![]));
}

#[test]
fn a_lane_that_begins_a_step_when_it_has_ended_began_another_one() {
    let train = [step(1_000, 1, false), step(1_900, 1, true)];
    let of_worker = |marks: &[_]| started().records(0, &train).records(1, marks).finish();
    assert_eq!(repeated(&of_worker(&[step(1_950, 1, false), step(2_500, 1, true)]), 1), 2);
    // It joined before, and began another one behind.
    let twice = [1_200, 1_300, 1_950, 2_500].into_iter().zip([false, true, false, true]);
    let twice: Vec<_> = twice.map(|(at, end)| step(at, 1, end)).collect();
    assert_eq!(repeated(&of_worker(&twice), 1), 2);
    // What joins a step may leave it when it has ended, and may join it twice.
    assert_eq!(
        told(&of_worker(&[step(1_200, 1, false), step(2_500, 1, true)]), 1).refuted.len(),
        0
    );
    let twice = [1_200, 1_300, 1_800, 2_500].into_iter().zip([false, true, false, true]);
    let twice: Vec<_> = twice.map(|(at, end)| step(at, 1, end)).collect();
    assert_eq!(told(&of_worker(&twice), 1).outcome, "complete");
}

#[test]
fn a_lane_that_is_in_another_phase_began_another_step() {
    let at = |at, end, phase| of_phase(&step(at, 1, end), phase);
    let of = |main: Phase, other: Phase| {
        started()
            .records(0, &[at(1_000, false, main), at(1_900, true, main)])
            .records(1, &[at(1_200, false, other), at(1_800, true, other)])
            .finish()
    };
    // The run trains.
    let unsaid = Phase::default();
    assert_eq!(repeated(&of(Phase::TRAIN, Phase::INFER), 1), 2);
    assert_eq!(repeated(&of(unsaid, Phase::INFER), 1), 2);
    for (main, other) in [(unsaid, Phase::TRAIN), (Phase::INFER, unsaid), (unsaid, unsaid)] {
        assert_eq!(told(&of(main, other), 1).outcome, "complete", "{main:?} {other:?}");
    }
}

#[test]
fn another_step_is_asked_for_where_a_number_is_there_twice() {
    let twice = [step(1_000, 1, false), step(1_900, 1, true), step(2_000, 1, false)];
    let folder = Folder::with(&started().records(0, &twice).finish());
    for command in [
        &["bundle", "in.tmrun", "--step", "1", "-o", "out"][..],
        &["summary", "in.tmrun", "--step", "1"],
        &["query", "in.tmrun", "--kind", "slowest-host", "--step", "1"],
    ] {
        let (code, out, err) = folder.tmrun(command);
        assert_eq!((code, out.as_str()), (2, ""), "{command:?}: {err}");
        assert!(err.contains("step 1 is there 2 times"), "{err}");
    }
}

#[test]
fn what_is_published_and_lacks_more_than_what_is_planned_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let publish = |file: &[u8]| {
        let published = bundles::publish_at(file, Some(1), &root, &mut |_| Ok(()));
        published.expect("published, or there").differing
    };
    assert_eq!(publish(&joined().unfinished()), []);
    assert_eq!(publish(&joined().unfinished()), []);
    let differing = publish(&joined().records(1, &[step(2_500, 1, true)]).finish());
    let [differing] = &differing[..] else { panic!("{differing:?}") };
    assert_eq!(differing.field, "refuted");
    assert_eq!((&*differing.published, &*differing.planned), (r#"["operations"]"#, "[]"));
}
