//! What is said of devices: each clock by itself, stamps that say nothing left out and counted, and
//! nothing related to the host without a reading of both.

mod support;

use serde_json::Value;
use support::command::Folder;
use support::record::{span, step};
use support::{Builder, lane, name};
use tmrun::devices::Devices;
use tmrun::scan::Recording;
use tmrun::slice::{Region, slice};
use tmrun::trace::{Derived, LeftOut, Trace};
use tmrun_formats::wire::{
    ClockSync, ClockV1, DeviceInterval, DeviceV1, Frame, Gap, Record, RecordHeader,
};
use tmrun_formats::{
    ClockCode, DeviceCode, GapReason, LaneId, Level, NameId, Planes, StreamId, Ticks,
};

const LAUNCHER: u16 = 0;
const OWN: u16 = 1;

/// An interval that was launched from `span` of the launcher's lane at `ticks`.
fn interval(ticks: u64, seen: u64, launcher: u32, is: DeviceInterval) -> Record {
    let (seen, lane) = (Ticks(seen), LaneId(LAUNCHER));
    let header = RecordHeader::of::<DeviceInterval>(Level::TIMING);
    let payload = DeviceInterval { seen, lane, span: launcher, ..is };
    Record::new(RecordHeader { ticks: Ticks(ticks), name: NameId(1), ..header }, &payload)
}

fn stamps(start: u64, end: u64) -> DeviceInterval {
    let (device, clock, stream) = (DeviceCode(1), ClockCode(1), StreamId(7));
    DeviceInterval { start, end, device, clock, stream, ..DeviceInterval::default() }
}

fn sync(device_ns: u64, before: u64, after: u64) -> Record {
    let (before, after, clock) = (Ticks(before), Ticks(after), ClockCode(1));
    let header = RecordHeader::of::<ClockSync>(Level::PULSE);
    let payload = ClockSync { device_ns, before, after, clock };
    Record::new(RecordHeader { ticks: before, ..header }, &payload)
}

fn missing(reason: GapReason, why: u32) -> Record {
    let header = RecordHeader::of::<Gap>(Level::PULSE);
    let (planes, lane) = (Planes::DEVICE_TIMING, LaneId::RECORDER);
    let payload = Gap { planes, lane, reason, ..Gap::default() };
    Record::new(RecordHeader { name: NameId(why), ..header }, &payload)
}

/// Two devices, two steps, and what the device's lane says of them.
fn file(of_devices: &[Record]) -> Vec<u8> {
    let clock = |code, device| {
        let (code, device) = (ClockCode(code), DeviceCode(device));
        Frame::Clock(ClockV1 { code, name: "cuda-event", device, backend: "events" })
    };
    Builder::started()
        .meta(&[
            Frame::Name(name(3, "no CUDA driver")),
            Frame::Lane(lane(OWN, "device time")),
            Frame::Device(DeviceV1 { code: DeviceCode(1), name: "cuda:0" }),
            Frame::Device(DeviceV1 { code: DeviceCode(2), name: "cuda:1" }),
            clock(1, 1),
            clock(2, 2),
        ])
        .records(
            LAUNCHER,
            &[
                step(1_000_000, 1, false),
                span(1_100_000, 1_200_000, 1, 1),
                step(1_900_000, 1, true),
                step(2_000_000, 2, false),
                span(2_100_000, 2_200_000, 2, 1),
                step(2_900_000, 2, true),
            ],
        )
        .records(OWN, of_devices)
        .finish()
}

fn derived<R>(file: &[u8], number: u64, look: impl FnOnce(&Derived<'_>) -> R) -> R {
    let recording = Recording::open(file, "run").expect("a header");
    let region = Region::of(&recording, Some(number)).expect("the step");
    look(&Trace::of(&recording, &region).derive())
}

fn info(file: &[u8]) -> (String, Value) {
    let folder = Folder::with(file);
    let (_, page, _) = folder.tmrun(&["info", "in.tmrun"]);
    let (_, json, _) = folder.tmrun(&["info", "--json", "in.tmrun"]);
    (page, serde_json::from_str(&json).expect("JSON"))
}

#[test]
fn an_interval_is_of_the_step_that_it_was_launched_in_however_late_it_was_seen() {
    let seen_late = [
        interval(1_150_000, 2_500_000, 1, stamps(60_000_000_000, 60_000_400_000)),
        interval(1_950_000, 2_500_000, 0, stamps(60_000_500_000, 60_000_600_000)),
        interval(2_150_000, 2_800_000, 2, stamps(60_001_000_000, 60_001_300_000)),
    ];
    let file = file(&seen_late);
    for (number, lasted, elsewhere) in [(1, 400_000, 0), (2, 300_000, 2)] {
        derived(&file, number, |derived| {
            let intervals = &derived.document.device_intervals;
            let [one] = &intervals[..] else { panic!("step {number}: {intervals:?}") };
            assert_eq!((one.duration_ns, &*one.device), (lasted, "cuda:0"));
            let launched = derived.document.span(&one.span_id).expect("the span that launched it");
            assert_eq!(launched.name, "forward");
            assert_eq!(derived.told.count(LeftOut::OtherStep), elsewhere, "step {number}");
        });
    }
    // A slice says the same.
    let recording = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&recording, Some(2)).expect("the step");
    let mut cut = Vec::new();
    slice(&recording, &region, &mut cut).expect("a slice");
    let again = derived(&cut, 2, |derived| derived.document.device_intervals.len());
    assert_eq!(again, 1);
}

#[test]
fn stamps_that_say_nothing_are_left_out_and_counted() {
    let odd = [
        interval(1_150_000, 1_160_000, 1, stamps(0, 0)),
        interval(1_150_000, 1_160_000, 1, stamps(70, 60)),
        interval(1_150_000, 1_160_000, 1, stamps(70, 60)),
        interval(1_150_000, 1_160_000, 1, stamps(70, u64::MAX)),
        interval(1_150_000, 1_160_000, 1, stamps(60_000_000_000, 60_000_400_000)),
    ];
    let file = file(&odd);
    derived(&file, 1, |derived| {
        assert_eq!(derived.document.device_intervals.len(), 1);
        assert_eq!(derived.told.count(LeftOut::InvalidInterval), 4);
    });
    let (page, json) = info(&file);
    assert!(
        page.contains("stamps that say nothing: 1 unstamped, 2 backwards, 1 sentinel"),
        "{page}"
    );
    let clock = &json["devices"]["clocks"][0];
    assert_eq!((&clock["intervals"], &clock["invalid"]["backwards"]), (&1.into(), &2.into()));
    assert_eq!(clock["first_device_ns"], 60_000_000_000_u64);
}

#[test]
fn without_a_reading_the_clock_is_unmapped_and_the_words_say_what_the_numbers_are() {
    let other = DeviceInterval {
        device: DeviceCode(2),
        clock: ClockCode(2),
        ..stamps(900_000_000_000, 900_000_000_500)
    };
    let (page, json) = info(&file(&[
        interval(1_150_000, 1_160_000, 1, stamps(60_000_000_000, 60_000_400_000)),
        interval(1_150_000, 1_160_000, 1, other),
    ]));
    assert_eq!(page.matches("device clock unmapped").count(), 2, "{page}");
    assert!(page.contains("cuda:0, clock cuda-event (events): 1 interval of 1 stream"), "{page}");
    assert!(page.contains("cuda:1, clock cuda-event (events): 1 interval of 1 stream"), "{page}");
    assert!(page.contains("stream time between two points, not kernel busy time"), "{page}");
    assert!(page.contains("host spans on CUDA are submit time"), "{page}");
    assert_eq!(json["devices"]["clocks"][0]["mapping"], Value::Null);
}

#[test]
fn readings_give_offset_rate_and_bound_and_intervals_are_held_against_them() {
    // The device shows 60 s when the host shows its 1,000,000th nanosecond, and runs 50 ppm fast. (The
    // file's nanoseconds count from its first calibration, at tick 1,000.)
    let device = |ticks: u64| 60_000_000_000 + (ticks - 1_000_000) + (ticks - 1_000_000) / 20_000;
    let records = [
        sync(device(1_000_000), 1_000_000 - 200, 1_000_000 + 200),
        interval(1_150_000, 1_400_000, 1, stamps(device(1_200_000), device(1_300_000))),
        // Before it was launched, and after it was seen.
        interval(1_150_000, 1_400_000, 1, stamps(device(1_100_000), device(1_300_000))),
        interval(1_150_000, 1_400_000, 1, stamps(device(1_200_000), device(1_500_000))),
        // Within the bound.
        interval(1_150_000, 1_400_000, 1, stamps(device(1_150_000) - 100, device(1_400_000) + 100)),
        sync(device(2_900_000), 2_900_000 - 300, 2_900_000 + 300),
    ];
    let file = file(&records);
    let recording = Recording::open(&file, "run").expect("a header");
    let devices = Devices::of(&recording);
    let clock = &devices.clocks[&(DeviceCode(1), ClockCode(1))];
    assert_eq!((clock.intervals, clock.too_early, clock.too_late), (4, 1, 1));
    let fit = clock.fit.expect("readings");
    let rate = fit.rate_ppm().expect("two readings");
    assert!((rate - 50.0).abs() < 1.0, "{rate}");
    assert!(clock.bound_ns > 199.0 && clock.bound_ns < 301.0, "{}", clock.bound_ns);
    let (page, json) = info(&file);
    assert!(page.contains("mapped by 2 readings"), "{page}");
    assert!(page.contains("1 begin before their launch and 1 end after they were seen"), "{page}");
    let mapping = &json["devices"]["clocks"][0]["mapping"];
    assert_eq!(mapping["begin_before_launch"], 1);
    assert_eq!(mapping["residual_ns"], 0.0);
    let offset = mapping["offset_ns"].as_f64().expect("a number");
    assert!((offset - (60_000_000_000.0 - 999_000.0)).abs() < 1.0, "{offset}");
}

#[test]
fn busy_time_is_of_each_device_by_itself_with_its_streams_in_one() {
    let second = DeviceInterval { stream: StreamId(8), ..stamps(60_000_200_000, 60_000_500_000) };
    let other = DeviceInterval {
        device: DeviceCode(2),
        clock: ClockCode(2),
        ..stamps(900_000_000_000, 900_000_050_000)
    };
    let of_step = [
        interval(1_110_000, 1_800_000, 1, stamps(60_000_000_000, 60_000_300_000)),
        interval(1_120_000, 1_800_000, 1, second),
        interval(1_130_000, 1_800_000, 1, other),
    ];
    let folder = Folder::with(&file(&of_step));
    let asked = ["query", "in.tmrun", "--step", "1", "--kind", "slowest-device", "--json"];
    let (_, answer, said) = folder.tmrun(&asked);
    let answer: Value = serde_json::from_str(&answer).expect(&said);
    let rows = answer["result"]["slowest_device_spans"].as_array().expect("the rows");
    let busy: Vec<_> = rows.iter().map(|row| (&row["device"], &row["device_busy_ns"])).collect();
    // Two streams that overlap are busy once; the other device's clock has another epoch.
    let [one, two] = [("cuda:0", 500_000), ("cuda:1", 50_000)]
        .map(|(device, ns)| (Value::from(device), Value::from(ns)));
    assert_eq!(busy, [(&one.0, &one.1), (&two.0, &two.1)]);
}

#[test]
fn what_a_driver_said_is_told_with_its_reason() {
    let (page, json) = info(&file(&[missing(GapReason::DRIVER_UNAVAILABLE, 3)]));
    assert!(page.contains("driver-unavailable: no CUDA driver"), "{page}");
    assert_eq!(json["devices"]["missing"][0]["said"], "no CUDA driver");
    assert_eq!(json["devices"]["clocks"], Value::Array(Vec::new()));
}
