//! Which step a fact belongs to: the one that it was recorded in, or launched in, and no other one.

mod support;

use candle_graph_v10 as neighbour;
use support::Builder;
use support::record::{level, scalar, step};
use tmrun::scan::Recording;
use tmrun::slice::{Region, slice};
use tmrun::trace::{LeftOut, Told, Trace};
use tmrun_formats::trace::{CoverageLevel, TraceDocument};
use tmrun_formats::wire::{
    ContractV1, DeviceInterval, DeviceMemory, DeviceV1, Frame, Op, Payload, Record, RecordHeader,
    flags,
};
use tmrun_formats::{ClockCode, DeviceCode, LaneId, Level, NameId, StreamId, TensorId, Ticks};

const RECORDER: u16 = u16::MAX;

fn of<P: Payload>(ticks: u64, flags: u16, payload: &P) -> Record {
    let header = RecordHeader::of::<P>(Level::METADATA);
    Record::new(RecordHeader { ticks: Ticks(ticks), name: NameId(1), flags, ..header }, payload)
}

fn op(start: u64, end: u64, output: u64) -> Record {
    of(start, 0, &Op { end: Ticks(end), output: TensorId(output), ..Op::default() })
}

/// Work that a lane launched; it is known by the stream that it ran on.
fn interval(lane: u16, launched: u64, seen: u64, stream: u64) -> Record {
    let (device, clock) = (DeviceCode(1), ClockCode(1));
    of(launched, 0, &DeviceInterval { device, clock, ..work(lane, seen, stream) })
}

fn work(lane: u16, seen: u64, stream: u64) -> DeviceInterval {
    DeviceInterval {
        start: 100,
        end: 150,
        stream: StreamId(stream),
        seen: Ticks(seen),
        lane: LaneId(lane),
        ..DeviceInterval::default()
    }
}

fn promised() -> Builder {
    let contract =
        ContractV1 { operations: 2, physical_memory: 2, device_timing: 2, ..ContractV1::default() };
    Builder::started()
        .meta(&[
            Frame::Contract(contract),
            Frame::Device(DeviceV1 { code: DeviceCode(1), name: "cuda:0" }),
        ])
        .records(RECORDER, &[level(1_000, 1_001, 2, 2)])
}

/// A step, which must be valid to the neighbour, and what a slice of it says is the same.
fn traced<R>(file: &[u8], number: u64, look: impl Fn(&TraceDocument<'_>, &Told) -> R) -> R {
    let recording = Recording::open(file, "test").expect("a header");
    let region = Region::of(&recording, Some(number)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    let path = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(path.path(), &text).expect("it is written");
    let health = neighbour::trace::analyze_health(&neighbour::parse_trace(path.path()).unwrap());
    assert!(health.structurally_valid, "{:?}", health.issues);

    let mut part = Vec::new();
    slice(&recording, &region, &mut part).expect("memory");
    let part = Recording::open(&part, "slice").expect("a header");
    assert_eq!(part.verify(), []);
    let of_part = Region::of(&part, Some(number)).expect("the step");
    assert_eq!(of_part, region);
    let of_part = Trace::of(&part, &of_part);
    let of_part = of_part.derive();
    let again = of_part.document.write(Vec::new()).expect("a trace that a reader takes");
    assert_eq!(String::from_utf8(again), String::from_utf8(text), "step {number}");
    assert_eq!(of_part.told.left_out, derived.told.left_out);
    look(&derived.document, &derived.told)
}

#[test]
fn an_operation_is_in_the_step_that_it_was_recorded_in_whatever_its_times_are() {
    // Step 2 hears late of one that ran in step 1, and step 3 of one from between the two before it.
    let file = promised()
        .records(0, &[step(2_000, 1, false), op(2_100, 2_200, 1), step(2_900, 1, true)])
        .records(0, &[step(3_000, 2, false), op(2_300, 2_400, 2), step(3_900, 2, true)])
        .records(0, &[scalar(3_950, 2, 0.5), step(4_000, 3, false), op(3_910, 3_930, 3)])
        .records(0, &[op(4_100, 4_200, 4), step(4_900, 3, true)])
        .finish();
    let ops = |number| {
        traced(&file, number, |document, told| {
            let measured = document.spans.iter().find(|span| span.measured).expect("the step");
            assert_eq!(measured.duration_ns, Some(900), "step {number}");
            let root = document.spans[0].duration_ns.expect("it ended");
            let of_op = |op: &tmrun_formats::trace::Op<'_>| {
                assert!(op.timestamp_ns + op.duration_ns <= root, "the root has it");
                let output = op.output.as_deref().expect("an output").to_owned();
                (output, op.span_id.clone().into_owned(), op.duration_ns)
            };
            let operations = document.run.capture_contract.operations;
            assert_eq!(operations, CoverageLevel::Complete, "step {number}");
            let ops: Vec<_> = document.ops.iter().map(of_op).collect();
            (ops, told.count(LeftOut::OtherStep))
        })
    };
    let at = |tensor: u64, span: &str, ns| (format!("0x{tensor:016x}"), span.to_owned(), ns);
    assert_eq!(ops(1), (vec![at(1, "step", 100)], 1), "the late one is step 2's");
    assert_eq!(ops(2), (vec![at(2, "root", 100)], 0));
    assert_eq!(ops(3), (vec![at(3, "root", 20), at(4, "step", 100)], 0));
}

#[test]
fn work_on_a_device_is_in_the_step_in_which_its_lane_launched_it_and_in_no_other_one() {
    let file = promised()
        .meta(&[Frame::Lane(support::lane(1, "worker"))])
        .records(0, &[step(2_000, 1, false)])
        // The worker is in step 1 for longer than the lane that began it.
        .records(1, &[step(2_100, 1, false), step(3_200, 1, true)])
        .records(0, &[step(2_900, 1, true), step(3_000, 2, false), step(3_900, 2, true)])
        .records(
            RECORDER,
            &[
                interval(0, 2_500, 3_500, 1),
                interval(0, 2_950, 3_500, 2),
                interval(0, 3_000, 3_500, 3),
                interval(1, 3_100, 3_500, 4),
                interval(1, 3_300, 3_500, 5),
                // A lane that nobody knows.
                interval(7, 2_050, 3_500, 6),
            ],
        )
        .finish();
    let streams = |number| {
        traced(&file, number, |document, told| {
            let of_interval = |it: &tmrun_formats::trace::DeviceInterval<'_>| {
                u64::from_str_radix(it.stream_id.trim_start_matches("0x"), 16).expect("a number")
            };
            let streams: Vec<u64> = document.device_intervals.iter().map(of_interval).collect();
            let timing = document.run.capture_contract.device_timing;
            assert_eq!(timing, CoverageLevel::Complete, "step {number}");
            (streams, told.count(LeftOut::OtherStep))
        })
    };
    // The second was launched when its lane was in no step, while the worker was still in the first; so was
    // none in the second that is not there.
    assert_eq!(streams(1), (vec![6, 1, 2, 4], 1));
    assert_eq!(streams(2), (vec![3, 5], 4));
}

#[test]
fn devices_and_clocks_that_found_no_code_are_not_one_device() {
    let sample = |ticks, device| {
        let used = 64;
        of(ticks, flags::MEMORY_USED, &DeviceMemory { used, device, ..DeviceMemory::default() })
    };
    let of_other =
        |device, clock| of(2_500, 0, &DeviceInterval { device, clock, ..work(0, 2_600, 9) });
    let (known, other) = (DeviceCode(1), DeviceCode::OTHER);
    let records = |more: &[Record]| {
        promised()
            .records(0, &[step(2_000, 1, false), sample(2_100, known), step(2_900, 1, true)])
            .records(RECORDER, &[&[interval(0, 2_200, 2_300, 1)], more].concat())
            .finish()
    };
    let said = |file: &[u8]| {
        traced(file, 1, |document, told| {
            let refuted: Vec<_> =
                told.refuted.iter().map(|it| (it.plane, it.because.clone())).collect();
            assert_eq!(document.device_intervals.len(), 1);
            assert_eq!(document.device_memory.len(), 1);
            refuted
        })
    };
    assert_eq!(said(&records(&[])), []);
    let many =
        [sample(2_400, other), of_other(other, ClockCode(1)), of_other(known, ClockCode::OTHER)];
    let reasons = [
        ("physical_memory", "1 sample is of a device that found no code".to_owned()),
        ("device_timing", "2 intervals are of devices or clocks that found no code".to_owned()),
    ];
    assert_eq!(said(&records(&many)), reasons);
}
