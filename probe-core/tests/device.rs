//! What a timer of devices records.

mod support;

use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::Kind;
use tmrun_probe_core::{
    DeviceGap, DeviceIntervalFact, DevicePlace, GapReason, LaneId, Level, Planes, Probe, StreamId,
    Ticks, span,
};

#[test]
fn an_interval_says_who_launched_it_and_a_reading_what_both_clocks_showed() {
    static PROBE: Probe<Counting, 2, 64> = Probe::new();
    let probe = PROBE.view();
    let device = probe.device_at(DevicePlace::Cuda(0));
    let clock = probe.device_clock("events", device, "test");
    let drain = start(probe, Memory::default(), Level::TIMING);
    let (app, own) = (probe.claim("app").expect("a lane"), probe.claim("device").expect("a lane"));
    let name = probe.name("forward");
    let launch = {
        let _span = span!(app, "submit");
        assert!(!app.recorder().open_span().is_none());
        app.recorder().launch()
    };
    assert_eq!((launch.lane, launch.span), (LaneId(0), 1));
    let fact = DeviceIntervalFact {
        device,
        clock,
        stream: StreamId(7),
        start_ns: 100,
        end_ns: 250,
        launch,
        seen: Ticks(launch.ticks.0 + 9),
    };
    own.recorder().device_interval(name, &fact);
    own.recorder().clock_sync(clock, 5_000, Ticks(20), Ticks(30));
    drop((app, own));
    let (_, file) = finish(drain);
    let of = |kind: Kind| file.records.iter().find(|record| record.kind == kind as u8);
    let interval = of(Kind::DeviceInterval).expect("it is there");
    assert_eq!((interval.lane, interval.ticks, interval.name), (1, launch.ticks.0, name.0));
    assert_eq!([0, 8, 16, 24].map(|at| interval.u64_at(at)), [100, 250, 7, launch.ticks.0 + 9]);
    assert_eq!((interval.u32_at(32), interval.u16_at(36)), (1, 0));
    assert_eq!((interval.payload[38], interval.payload[39]), (device.0, clock.0));
    let sync = of(Kind::ClockSync).expect("it is there");
    assert_eq!([0, 8, 16].map(|at| sync.u64_at(at)), [5_000, 20, 30]);
    assert_eq!((sync.payload[24], sync.span), (clock.0, 0));
}

#[test]
fn a_gap_says_which_lane_lacks_what_and_why() {
    static PROBE: Probe<Counting, 2, 64> = Probe::new();
    let probe = PROBE.view();
    let drain = start(probe, Memory::default(), Level::TIMING);
    let own = probe.claim("device").expect("a lane");
    let why = probe.name("the driver said no");
    let gap = DeviceGap {
        reason: GapReason::DRIVER_ERROR,
        lane: LaneId(1),
        first: Ticks(40),
        last: Ticks(60),
        records: 3,
        planes: Planes::DEVICE_TIMING,
        why,
    };
    own.recorder().device_gap(&gap);
    drop(own);
    let (_, file) = finish(drain);
    let told = file.records.iter().find(|record| record.gap().is_some()).expect("it is there");
    let read = told.gap().expect("a gap");
    assert_eq!((told.name, read.on, read.lane, read.reason), (why.0, 0, 1, 36));
    assert_eq!((read.first, read.last, read.records, read.groups), (40, 60, 3, 3));
}

#[test]
fn whoever_asks_for_room_drops_nothing() {
    static PROBE: Probe<Counting, 1, 32> = Probe::new();
    let probe = PROBE.view();
    let mut drain = start(probe, Memory::default(), Level::TIMING);
    let own = probe.claim("device").expect("a lane");
    let mut stored = 0;
    while own.recorder().has_room(1) {
        own.recorder().clock_sync(Default::default(), stored, Ticks(0), Ticks(1));
        stored += 1;
    }
    assert_eq!(stored, 32);
    poll(&mut drain);
    assert!(own.recorder().has_room(32) && !own.recorder().has_room(33));
    drop(own);
    let (summary, _) = finish(drain);
    assert_eq!(summary.dropped, 0);
}
