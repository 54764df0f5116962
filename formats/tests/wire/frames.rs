//! Metadata frames.

use proptest::prelude::*;
use tmrun_formats::wire::*;
use tmrun_formats::*;

use crate::wire_support::payload_of;

/// What frames are made of.
#[derive(Debug, Clone)]
struct Soup {
    strings: [String; 10],
    numbers: [u64; 10],
    flags: [bool; 12],
    bytes: Vec<u8>,
}

fn soup() -> impl Strategy<Value = Soup> {
    let strings = prop::array::uniform10(any::<String>());
    let numbers = prop::array::uniform10(prop_oneof![any::<u64>(), 0..300_u64, Just(u64::MAX)]);
    (strings, numbers, prop::array::uniform12(any::<bool>()), any::<Vec<u8>>())
        .prop_map(|(strings, numbers, flags, bytes)| Soup { strings, numbers, flags, bytes })
}

/// One frame of every kind, all fields from the soup.
fn frames(soup: &Soup) -> Vec<Frame<'_>> {
    let s = |i: usize| soup.strings[i].as_str();
    let os = |i: usize| soup.flags[i].then(|| s(i));
    let n = |i: usize| soup.numbers[i];
    let on = |i: usize| soup.flags[i].then(|| n(i) as u32);
    let f = |i: usize| soup.flags[i];
    let lane = LaneId(n(9) as u16);
    vec![
        Frame::Run(RunV1 {
            run: RunId(core::array::from_fn(|i| n(i % 10) as u8)),
            run_id: s(0),
            correlation_id: os(1),
            entrypoint: s(2),
            device: s(3),
            phase: Phase(n(0) as u8),
            capture_step: n(1),
            warmup_steps: n(2),
            device_synchronized: f(0),
            measured_region_synchronized: f(1),
            candle_version: os(4),
            profile: s(5),
            analysis_id: os(6),
            build_id: os(7),
            host: os(8),
            pid: on(3),
            rank: on(4),
            world_size: on(5),
            rings: os(9),
            clock: s(1),
            clock_invariant: f(10),
            ring_slots: n(6),
        }),
        Frame::Tag(TagV1 { key: s(0), value: s(1) }),
        Frame::CargoFeature(ItemV1 { text: s(2) }),
        Frame::Cfg(ItemV1 { text: s(3) }),
        Frame::Contract(ContractV1 {
            measurement_scope: n(0) as u8,
            operations: n(1) as u8,
            activations: n(2) as u8,
            tensors: n(3) as u8,
            gradients: n(4) as u8,
            logical_memory: n(5) as u8,
            physical_memory: n(6) as u8,
            device_timing: n(7) as u8,
        }),
        Frame::Label(LabelV1 { text: s(4), list: n(0) as u8 }),
        Frame::GradientEntry(GradientEntryV1 { root: s(5), key: s(6), family: s(7) }),
        Frame::GradientFamily(GradientFamilyV1 {
            family: s(8),
            expectation: n(1) as u8,
            min_present: n(2),
        }),
        Frame::ComparisonIdentity(ComparisonIdentityV1 {
            implementation_id: os(0),
            workload_id: s(1),
            model_id: s(2),
            config_id: s(3),
            data_id: s(4),
            seed_policy: s(5),
            physical_batch: n(0),
            accumulation_steps: n(1),
            precision: s(6),
            device_state: s(7),
            pair_id: os(8),
        }),
        Frame::Lane(LaneV1 { lane, claim: n(0), sequence: n(1), name: s(0), thread: n(2) }),
        Frame::Name(NameV1 {
            id: NameId(n(0) as u32),
            text: s(0),
            node_type: os(1),
            static_id: os(2),
            source: os(3),
        }),
        Frame::Site(SiteV1 {
            name: NameId(n(1) as u32),
            kind: n(2) as u8,
            level: Level(n(3) as u8),
            file: s(9),
            line: n(4) as u32,
        }),
        Frame::DType(DTypeV1 { code: DType(n(0) as u8), name: s(1), bits: n(1) as u16 }),
        Frame::Device(DeviceV1 { code: DeviceCode(n(2) as u8), name: s(2) }),
        Frame::Clock(ClockV1 {
            code: ClockCode(n(3) as u8),
            name: s(3),
            device: DeviceCode(n(4) as u8),
            backend: s(4),
        }),
        Frame::Calibration(CalibrationV1 {
            ticks: Ticks(n(5)),
            ns: HostNs(n(6)),
            uncertainty: n(7),
            set_aside: f(11),
        }),
        Frame::Control(ControlV1 {
            configuration: n(8),
            level: Level(n(9) as u8),
            body: &soup.bytes,
        }),
        Frame::OpenSpan(OpenSpanV1 {
            lane,
            span: SpanId(n(0)),
            parent: SpanId(n(1)),
            name: NameId(n(2) as u32),
            start: Ticks(n(3)),
            depth: n(4) as u16,
        }),
        Frame::Terminal(TerminalV1 { complete: f(0), reason: os(5), ticks: Ticks(n(5)) }),
        Frame::Totals(TotalsV1 {
            lane,
            records: n(0),
            spans: n(1),
            dropped_records: n(2),
            dropped_groups: n(3),
            truncated: n(4),
            out_of_order: n(5),
            high_water: n(6),
        }),
        Frame::RecorderCost(RecorderCostV1 { record: n(7), span: n(8), unnamed: n(9) }),
        Frame::Hole(HoleV1 { lane, sequence: n(0), records: n(1), reason: GapReason(n(2) as u8) }),
        Frame::RecordingFile(ItemV1 { text: s(3) }),
        Frame::Part(PartV1 {
            number: n(3),
            previous: os(6),
            next: os(7),
            no_lane_records: n(4),
            no_lane_groups: n(5),
        }),
        Frame::LaneStart(LaneStartV1 {
            lane: LaneId(n(2) as u16),
            sequence: n(3),
            dropped_records: n(4),
            dropped_groups: n(5),
        }),
        Frame::Removed(RemovedV1 {
            first: n(4),
            last: n(5),
            files: n(6),
            records: n(7),
            from: Ticks(n(8)),
            to: Ticks(n(9)),
        }),
        Frame::LaneStep(LaneStepV1 {
            lane,
            sequence: n(0),
            number: n(1),
            phase: Phase(n(2) as u8),
            micro_batch: f(3).then_some(n(3) as u32),
            within_step: f(4),
            sure: f(5),
        }),
    ]
}

proptest! {
    #[test]
    fn every_frame_survives_encoding(soup in soup()) {
        let frames = frames(&soup);
        let payload = payload_of(&frames);
        let mut offset = 1_000;
        let mut read = Vec::new();
        for raw in Frames::new(&payload, offset) {
            let raw = raw.expect("a valid frame");
            prop_assert_eq!(raw.offset, offset);
            offset += 8 + raw.body.len() as u64;
            read.push(raw.decode().expect("a valid body"));
        }
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn a_frame_that_does_not_fit_is_refused_and_one_that_just_fits_is_not(soup in soup()) {
        for frame in frames(&soup) {
            let mut space = vec![0; 1 << 14];
            let used = frame.encode(&mut space).expect("16 KiB are enough");
            prop_assert_eq!(frame.encode(&mut space[..used]), Ok(used));
            let refused = frame.encode(&mut space[..used - 1]).expect_err("a byte is missing");
            prop_assert_eq!((refused.kind, refused.space), (frame.kind().0, used - 1));
        }
    }

    #[test]
    fn a_body_that_is_cut_or_longer_is_malformed(soup in soup(), cut: prop::sample::Index) {
        for frame in frames(&soup) {
            let mut space = vec![0; 1 << 14];
            let used = frame.encode(&mut space).expect("16 KiB are enough");
            let (kind, version) = frame.kind();
            let body = |end: usize| RawFrame { kind, version, body: &space[8..end], offset: 64 };
            prop_assert_eq!(body(used).decode(), Ok(frame));
            for end in [8 + cut.index(used - 8), used + 1] {
                let found = body(end).decode();
                let malformed = matches!(
                    found,
                    Err(FrameError::Decode(DecodeError::Malformed { offset: 64, .. }))
                );
                prop_assert!(malformed, "{} of {used} bytes: {found:?}", end);
            }
        }
    }
}

#[test]
fn padding_that_is_not_zero_is_reported_where_it_is() {
    // The first two bytes would be the kind of one more frame.
    for stray in 2..64 {
        let mut payload = [0; 64];
        payload[stray] = 7;
        let mut frames = Frames::new(&payload, 640);
        let found = frames.next().expect("something is wrong").expect_err("and is reported");
        assert_eq!(found.offset(), 640 + stray as u64);
        assert!(frames.next().is_none(), "nothing is read behind an error");
    }
}

#[test]
fn text_that_is_no_utf_8_is_malformed() {
    let raw = RawFrame { kind: 3, version: 1, body: &[1, 0xFF], offset: 0 };
    assert!(matches!(raw.decode(), Err(FrameError::Decode(DecodeError::Malformed { .. }))));
}
