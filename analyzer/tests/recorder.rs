//! What the real recorder writes, read back.

use tmrun::scan::{Recording, Status};
use tmrun_formats::wire::{FileHeader, Kind, Step};
use tmrun_formats::{GapReason, LaneId, Phase, RunId};
use tmrun_probe_core::{Drain, Level, ProfileRun, Sink, probe, scalar, span};

probe!(static ROOMY: lanes = 4, slots = 1 << 12);
probe!(static TIGHT: lanes = 4, slots = 32);
probe!(static AGAIN: lanes = 4, slots = 64);
probe!(static NESTED: lanes = 4, slots = 64);
probe!(static ORDERS: lanes = 1, slots = 1 << 10);

#[test]
fn a_recorded_run_verifies_and_says_what_it_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
    let recording = ROOMY.record(&path, run).expect("it starts");
    for update in 1..=3 {
        let _step = ROOMY.step(update);
        let _forward = span!(ROOMY, "forward");
        scalar!(ROOMY, "loss", 1.0 / update as f64);
    }
    recording.finish().expect("it ends");

    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    assert_eq!(recording.verify(), []);
    assert_eq!(recording.status(), Status::Finished);
    assert_eq!(recording.lost().count(), 0, "{:?}", recording.gaps());
    let counts = [Kind::Span, Kind::Step, Kind::Scalar].map(|kind| recording.counts().of(kind));
    assert_eq!(counts, [3, 6, 3]);
    assert_eq!(recording.levels().last(), Some(Level::TIMING));
    assert_eq!(recording.meta().run.map(|run| run.entrypoint), Some("example"));
    assert!(recording.meta().terminal.is_some_and(|terminal| terminal.complete));
    assert!(recording.calibrations().used >= 2);
    let lane = recording.lanes().get(LaneId(0)).expect("a lane");
    assert_eq!(lane.steps.counts.steps, 3);
    assert_eq!(lane.totals.map(|totals| totals.records), Some(lane.next));
    let names: Vec<_> = recording.names().iter().map(|name| name.text).collect();
    assert!(names.contains(&"forward") && names.contains(&"loss"), "{names:?}");
}

#[test]
fn what_did_not_fit_the_ring_is_a_gap_of_exactly_that_many_records() {
    const ATTEMPTS: u64 = 200_000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
    let recording = TIGHT.record(&path, run).expect("it starts");
    for i in 0..ATTEMPTS {
        scalar!(TIGHT, "loss", i as f64);
    }
    recording.finish().expect("it ends");

    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    assert_eq!(recording.verify(), []);
    let lost = recording.lost().inspect(|gap| assert_eq!(gap.reason, GapReason::OVERRUN));
    let lost: u64 = lost.map(|gap| gap.records).sum();
    assert_eq!(recording.counts().of(Kind::Scalar) + lost, ATTEMPTS);
    let totals = recording.lanes().get(LaneId(0)).and_then(|lane| lane.totals);
    assert_eq!(totals.map(|totals| totals.dropped_records), Some(lost));
}

#[test]
fn a_second_recording_of_the_same_probe_goes_on_where_the_lane_was_and_has_no_hole() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first_positions = Vec::new();
    for number in 0..2 {
        let path = folder.path().join(format!("run-{number}.tmrun"));
        let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
        let recording = AGAIN.record(&path, run).expect("it starts");
        for i in 0..10 {
            scalar!(AGAIN, "loss", f64::from(i));
        }
        recording.finish().expect("it ends");
        let file = std::fs::read(&path).expect("the file");
        let recording = Recording::open(&file, "run").expect("a header");
        assert_eq!(recording.verify(), []);
        assert_eq!(recording.lost().count(), 0, "{:?}", recording.gaps());
        assert_eq!(recording.counts().of(Kind::Scalar), 10);
        let of_lane = |lane| recording.record_chunks().find(|chunk| chunk.lane() == lane);
        first_positions.extend(of_lane(LaneId(0)).map(|chunk| chunk.first_sequence()));
    }
    assert_eq!(first_positions, [0, 10]);
}

#[test]
fn a_step_that_another_interrupts_goes_on_behind_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
    let recording = NESTED.record(&path, run).expect("it starts");
    {
        let _update = NESTED.step_as(5, Phase::TRAIN);
        scalar!(NESTED, "loss", 0.5);
        {
            let _evaluation = NESTED.step_as(1, Phase::INFER);
            scalar!(NESTED, "loss", 0.4);
        }
        scalar!(NESTED, "loss", 0.3);
    }
    scalar!(NESTED, "loss", 0.2);
    recording.finish().expect("it ends");

    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    let steps = steps_of_scalars(&recording);
    let (update, evaluation) = (Some((5, Phase::TRAIN)), Some((1, Phase::INFER)));
    assert_eq!(steps, [update, evaluation, update, None]);
    let lane = recording.lanes().get(LaneId(0)).expect("a lane");
    assert_eq!((lane.steps.counts.train, lane.steps.counts.infer), (1, 1));
}

/// The step that each scalar belongs to, as a reader of the marks finds it.
fn steps_of_scalars(recording: &Recording<'_>) -> Vec<Option<(u64, Phase)>> {
    let mut steps = Vec::new();
    for chunk in recording.record_chunks() {
        let mut state = chunk.step();
        for record in chunk.records() {
            match record.payload::<Step>() {
                Some(step) => state = state.after(&record.header(), &step),
                None if record.kind() == Some(Kind::Scalar) => {
                    steps.push(state.open.map(|open| (open.number, open.phase)));
                }
                None => {}
            }
        }
    }
    steps
}

#[test]
fn steps_that_end_in_any_order_leave_the_innermost_open_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let run = ProfileRun::training("example", 1, "cpu").level(Level::TIMING);
    let recording = ORDERS.record(&path, run).expect("it starts");
    let mut expected = Vec::new();
    // Every order in which three steps can end, and two of the same number.
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for numbers in [[1, 2, 3], [7, 7, 8]] {
            let mut open: Vec<_> = numbers.map(|number| Some(ORDERS.step(number))).into();
            for ended in order {
                open[ended] = None;
                let innermost = (0..3).rev().find(|&at| open[at].is_some());
                expected.push(innermost.map(|at| (numbers[at], Phase::default())));
                scalar!(ORDERS, "loss", 0.5);
                let here = ORDERS.at(Level::PULSE, |recorder| recorder.open_step());
                assert_eq!(here, Some(innermost.map_or(0, |at| numbers[at])), "{order:?}");
            }
        }
    }
    recording.finish().expect("it ends");
    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    assert_eq!(steps_of_scalars(&recording), expected);
}

#[test]
fn what_unnamed_owners_of_a_lane_lost_is_counted_too() {
    type Newest = tmrun_probe_core::Overwrite<tmrun_probe_core::AutoClock>;
    probe!(static BRIEF: lanes = 1, slots = 32; clock = Newest);
    for round in 0..2 {
        let header = FileHeader { run: RunId([1; 16]), created_ns: 1, ticks_per_second: 1_000 };
        let sink = Memory::default();
        let Ok(drain) = Drain::start(*BRIEF, sink, &header, &[], Level::TIMING) else {
            panic!("nothing else records this probe")
        };
        // More owners than a lane remembers, between two looks of the drain, and many records.
        for owner in 0..40 {
            let lane = BRIEF.claim("brief").expect("a free lane");
            for i in 0..10 {
                scalar!(lane, "value", f64::from(owner * 10 + i));
            }
        }
        let (_, sink) = drain.finish(&[]);
        let bytes = sink.expect("memory").0;
        let recording = Recording::open(&bytes, "brief").expect("a header");
        assert_eq!(recording.verify(), []);
        let lapped = recording.lost().filter(|gap| gap.reason == GapReason::LAPPED);
        let lapped: u64 = lapped.map(|gap| gap.records).sum();
        assert_eq!(recording.counts().of(Kind::Scalar) + lapped, 400, "round {round}");
    }
}

/// A sink into memory.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Sink for Memory {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        pieces.iter().for_each(|piece| self.0.extend_from_slice(piece));
        Ok(())
    }

    fn cut(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}
