//! In which step work on a device was launched: in one alone, the one that its lane was in at that moment, or
//! where nobody knows that the one that was joined last.

#[path = "support/steps.rs"]
mod steps;
mod support;

use steps::told;
use support::Builder;
use support::naive::chunks;
use support::record::{level, scalar, step};
use tmrun_formats::wire::{
    ClockV1, ContractV1, DeviceInterval, DeviceV1, Frame, Record, RecordHeader,
};
use tmrun_formats::{ClockCode, DeviceCode, LaneId, Level, StreamId, Ticks};

/// Work that a lane launched.
fn launch(lane: u16, at: u64) -> Record {
    let header = RecordHeader::of::<DeviceInterval>(Level::TIMING);
    let interval = DeviceInterval {
        start: 10,
        end: 60,
        stream: StreamId(1),
        seen: Ticks(at + 50),
        span: 0,
        lane: LaneId(lane),
        device: DeviceCode(1),
        clock: ClockCode(1),
    };
    Record::new(RecordHeader { ticks: Ticks(at), ..header }, &interval)
}

fn started() -> Builder {
    let (device, clock) = (DeviceCode(1), ClockCode(1));
    let contract = ContractV1 { device_timing: 2, ..ContractV1::default() };
    Builder::started()
        .meta(&[
            Frame::Contract(contract),
            Frame::Lane(support::lane(1, "worker")),
            Frame::Lane(support::lane(2, "poller")),
            Frame::Device(DeviceV1 { code: device, name: "cuda:0" }),
            Frame::Clock(ClockV1 { code: clock, name: "c", device, backend: "e" }),
        ])
        .records(u16::MAX, &[level(900, 910, 3, 3)])
}

/// How many of them each of these steps has; the slice of a step has the same.
fn launched<const N: usize>(file: &[u8], steps: [u64; N]) -> [usize; N] {
    steps.map(|number| told(file, number).text.matches("device_interval").count())
}

#[test]
fn what_a_lane_without_steps_launches_is_in_the_step_that_was_joined_last() {
    let file = |at: u64| {
        started()
            .records(0, &[step(1_000, 1, false), step(1_900, 1, true)])
            .records(1, &[step(1_200, 1, false), step(2_500, 1, true)])
            .records(0, &[step(2_000, 2, false), step(2_900, 2, true)])
            .records(2, &[launch(3, at)])
            .records(3, &[scalar(1_500, 2, 0.5)])
            .finish()
    };
    let steps = [1_100, 1_950, 2_000, 2_200, 2_500, 2_700, 2_900, 2_950];
    let found = steps.map(|at| launched(&file(at), [1, 2]));
    assert_eq!(found, [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 0]]);
}

#[test]
fn what_was_launched_before_a_lane_left_a_step_is_in_that_one_wherever_it_is_recorded() {
    let marks = [step(1_000, 1, false), step(1_900, 1, true), step(2_000, 2, false)];
    let of = |recorder: u16, lane, at| {
        let file = started().records(0, &marks);
        file.records(recorder, &[launch(lane, at)]).records(0, &[step(2_900, 2, true)]).finish()
    };
    for recorder in [0, 2] {
        assert_eq!(launched(&of(recorder, 0, 1_500), [1, 2]), [1, 0]);
        assert_eq!(launched(&of(recorder, 0, 2_100), [1, 2]), [0, 1]);
    }
}

#[test]
fn what_is_launched_while_marks_of_its_lane_are_lost_is_in_the_step_of_that_moment() {
    let whole = |at: u64| {
        started()
            .records(0, &[step(1_000, 1, false)])
            .records(1, &[step(1_050, 1, false), scalar(1_060, 2, 0.5)])
            .records(0, &[step(1_900, 1, true), step(2_000, 2, false)])
            .records(1, &[step(1_850, 1, true), step(2_050, 2, false)])
            .records(2, &[launch(1, at)])
            .records(1, &[scalar(2_500, 2, 0.5), step(2_800, 2, true)])
            .records(0, &[step(2_900, 2, true)])
            .finish()
    };
    let damaged = |at: u64, lane: u16, nth: usize| {
        let mut file = whole(at);
        let of_lane = chunks(&file).into_iter().filter(|c| c.kind == 1 && c.lane == lane).nth(nth);
        file[of_lane.expect("a chunk").offset + 70] ^= 1;
        file
    };
    assert_eq!(launched(&whole(2_200), [1, 2]), [0, 1]);
    assert_eq!(launched(&damaged(2_200, 1, 1), [1, 2]), [0, 1]);
    assert_eq!(launched(&damaged(1_500, 1, 1), [1, 2]), [1, 0]);
    // Wherever something is lost, none is in two.
    for (lane, nth) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
        for at in (1_000..2_950).step_by(50) {
            let [one, two] = launched(&damaged(at, lane, nth), [1, 2]);
            assert!(one + two <= 1, "chunk {nth} of lane {lane}, at {at}: {one} and {two}");
        }
    }
}

#[test]
fn one_step_has_what_is_launched_where_the_end_of_one_and_the_beginning_of_the_next_are_lost() {
    for at in (1_000..2_900).step_by(100) {
        let mut file = started()
            .records(0, &[step(1_000, 1, false), scalar(1_100, 2, 0.5)])
            .records(0, &[step(1_900, 1, true), step(2_000, 2, false)])
            .records(0, &[scalar(2_500, 2, 0.5), step(2_900, 2, true)])
            .records(2, &[launch(0, at)])
            .finish();
        let lost = chunks(&file).into_iter().filter(|c| c.kind == 1 && c.lane == 0).nth(1);
        file[lost.expect("a chunk").offset + 70] ^= 1;
        let [one, two] = launched(&file, [1, 2]);
        assert_eq!(one + two, 1, "at {at}: {one} and {two}");
    }
}
