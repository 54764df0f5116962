//! One of everything: each frame, and each kind of record in a group that makes sense.

use tmrun_formats::wire::{flags::*, *};
use tmrun_formats::*;

use super::{File, numbered};

/// Every frame of version 1, each field unlike its neighbours.
pub fn frames() -> Vec<Frame<'static>> {
    vec![
        Frame::Run(RunV1 {
            run: RunId(*b"sixteen bytes id"),
            run_id: "run-7",
            correlation_id: Some("sweep-3"),
            entrypoint: "trainer::update",
            device: "cuda:0",
            phase: Phase::TRAIN,
            capture_step: 12,
            warmup_steps: 10,
            device_synchronized: false,
            measured_region_synchronized: true,
            candle_version: Some("0.11.1"),
            profile: "release",
            analysis_id: None,
            build_id: Some("9f2c"),
            host: Some("node-1"),
            pid: Some(4_242),
            rank: Some(1),
            world_size: Some(8),
            rings: Some("/run/user/1000/tmrun/4242.rings"),
            clock: "tsc",
            clock_invariant: true,
            ring_slots: 16_384,
        }),
        Frame::Tag(TagV1 { key: "owner", value: "größe ✓" }),
        Frame::CargoFeature(ItemV1 { text: "cuda" }),
        Frame::Cfg(ItemV1 { text: "target_os=\"linux\"" }),
        Frame::Contract(ContractV1 {
            measurement_scope: 1,
            operations: 2,
            activations: 1,
            tensors: 2,
            gradients: 2,
            logical_memory: 1,
            physical_memory: 0,
            device_timing: 2,
        }),
        Frame::Label(LabelV1 { text: "optimizer.step", list: 1 }),
        Frame::GradientEntry(GradientEntryV1 { root: "model", key: "fc.weight", family: "dense" }),
        Frame::GradientFamily(GradientFamilyV1 {
            family: "dense",
            expectation: 0,
            min_present: 300,
        }),
        Frame::ComparisonIdentity(ComparisonIdentityV1 {
            implementation_id: Some("fused"),
            workload_id: "w",
            model_id: "m",
            config_id: "c",
            data_id: "d",
            seed_policy: "fixed",
            physical_batch: 32,
            accumulation_steps: 4,
            precision: "bf16",
            device_state: "warm",
            pair_id: None,
        }),
        Frame::Lane(LaneV1 {
            lane: LaneId(3),
            claim: 2,
            sequence: 1 << 40,
            name: "loader-3",
            thread: 77,
        }),
        Frame::Name(NameV1 {
            id: NameId(5),
            text: "encoder.layers.3.attn",
            node_type: Some("attention"),
            static_id: Some("fn:7"),
            source: Some("src/model.rs:40"),
        }),
        Frame::Site(SiteV1 {
            name: NameId(5),
            kind: Kind::Span as u8,
            level: Level::TIMING,
            file: "src/train.rs",
            line: 118,
        }),
        Frame::DType(DTypeV1 { code: DType(128), name: "nf4", bits: 4 }),
        Frame::Device(DeviceV1 { code: DeviceCode(1), name: "cuda:0" }),
        Frame::Clock(ClockV1 {
            code: ClockCode(2),
            name: "cuda-event",
            device: DeviceCode(1),
            backend: "cuda",
        }),
        Frame::Calibration(CalibrationV1 {
            ticks: Ticks(123_456_789),
            ns: HostNs(41_152_263),
            uncertainty: 18,
            set_aside: true,
        }),
        Frame::Control(ControlV1 { configuration: 9, level: Level::NUMERICS, body: b"\x00\xFF" }),
        Frame::OpenSpan(OpenSpanV1 {
            lane: LaneId(3),
            span: SpanId((1 << 32) + 8),
            parent: SpanId(7),
            name: NameId(5),
            start: Ticks(1_000),
            depth: 2,
        }),
        Frame::Terminal(TerminalV1 {
            complete: false,
            reason: Some("loss is not finite"),
            ticks: Ticks(9_999_999),
        }),
        Frame::Totals(TotalsV1 {
            lane: LaneId(3),
            records: (1 << 33) + 1,
            spans: (1 << 32) + 9,
            dropped_records: 40,
            dropped_groups: 20,
            truncated: 1,
            out_of_order: 2,
            high_water: 8_191,
        }),
        Frame::RecorderCost(RecorderCostV1 { record: 21_500, span: 44_250, unnamed: 3 }),
        Frame::Hole(HoleV1 {
            lane: LaneId(3),
            sequence: (1 << 33) + 1,
            records: 12,
            reason: GapReason::LAPPED,
        }),
        Frame::RecordingFile(ItemV1 { text: "run.tmrun" }),
        Frame::Part(PartV1 {
            number: 3,
            previous: Some("run.0002.tmrun"),
            next: Some("run.0004.tmrun"),
            no_lane_records: 9,
            no_lane_groups: 8,
        }),
        Frame::Removed(RemovedV1 {
            first: 1,
            last: 6,
            files: 5,
            records: 70_000,
            from: Ticks(900),
            to: Ticks(1_000),
        }),
        Frame::LaneStep(LaneStepV1 {
            lane: LaneId(3),
            sequence: (1 << 40) + 21,
            number: 12,
            phase: Phase::TRAIN,
            micro_batch: Some(1),
            within_step: true,
            sure: false,
        }),
        Frame::LaneStart(LaneStartV1 {
            lane: LaneId(3),
            sequence: (1 << 40) + 21,
            dropped_records: 30,
            dropped_groups: 15,
        }),
    ]
}

fn head<P: Payload>(ticks: u64, name: u32, level: Level, flags: u16) -> RecordHeader {
    let (ticks, name) = (Ticks(ticks), NameId(name));
    RecordHeader { ticks, name, span: 7, flags, ..RecordHeader::of::<P>(level) }
}

/// A continuation of the record with this header.
fn more<P: Payload>(head: RecordHeader, flags: u16, payload: &P) -> Record {
    Record::new(RecordHeader { flags: CONTINUES | flags, ..head }, payload)
}

/// What an ordinary lane records.
fn lane_records() -> Vec<Record> {
    let op = head::<Op>(1_100, 5, Level::TIMING, OP_INPUT_BYTES | OP_OUTPUT_NAMED);
    let big = head::<Tensor>(1_200, 5, Level::METADATA, TENSOR_LAYOUT | TENSOR_CONTIGUOUS);
    let seen = head::<Tensor>(1_210, 6, Level::NUMERICS, TENSOR_CONTEXT | STORAGE_NAMED);
    let alloc = head::<Alloc>(1_300, 5, Level::METADATA, 0);
    let dims = |a, b, c, d, e| Shape { dims: [a, b, c, d, e] };
    let (storage, tensor) = (StorageId(0x0001_7F00_0000_1000), TensorId(0x51));
    let category = Category::ACTIVATION;
    let device = DeviceCode(1);
    vec![
        Record::new(
            head::<Step>(1_000, 0, Level::PULSE, STEP_MICRO_BATCH),
            &Step { number: 12, micro_batch: 1, phase: Phase::TRAIN },
        ),
        Record::new(
            op,
            &Op {
                end: Ticks(1_150),
                output: TensorId(6),
                storage,
                input_bytes: 1 << 20,
                op: NameId(8),
                inputs: 6,
                category,
                dtype: DType::BF16,
                device,
            },
        ),
        more(op, 2, &dims(128, 768, 0, 0, 0)),
        more(op, 1 << 4, &OpInput { tensors: [1, 2, 3, 4, 5].map(TensorId) }),
        more(op, 0, &OpInput { tensors: [6, 0, 0, 0, 0].map(TensorId) }),
        Record::new(
            big,
            &Tensor { tensor, storage, rank: 6, dtype: DType(128), device, category, dims: [0; 5] },
        ),
        more(big, 5, &dims(1, 2, 3, 4, 5)),
        more(big, 1, &dims(6, 0, 0, 0, 0)),
        Record::new(
            seen,
            &Tensor {
                tensor: TensorId(0x52),
                storage: StorageId(9),
                rank: 2,
                dtype: DType::F32,
                device,
                category: Category::PARAMETER,
                dims: [3, 4, 0, 0, 0],
            },
        ),
        more(seen, 0, &Stats { count: 12, nan: 1, inf: 2, rms: 1.5, abs_max: 4.0, mean: -0.25 }),
        more(
            seen,
            0,
            &Range { min: -4.0, max: 3.5, zeros: 2, saturated: 1, positive_inf: 2, non_finite: 3 },
        ),
        Record::new(
            head::<Scalar>(1_250, 9, Level::PULSE, 0),
            &Scalar { value: f64::from_bits(0x7FF8_0000_0000_0BAD) },
        ),
        Record::new(
            head::<Gradient>(1_260, 5, Level::METADATA, GRADIENT_NORM),
            &Gradient { norm: 0.125, root: NameId(10), state: GradientState::PRESENT },
        ),
        Record::new(
            alloc,
            &Alloc {
                storage,
                tensor,
                bytes: 4_096,
                op: NameId(8),
                dtype: DType::F16,
                device,
                category,
            },
        ),
        more(alloc, 1, &dims(2_048, 0, 0, 0, 0)),
        Record::new(
            head::<Free>(1_310, 5, Level::METADATA, TENSOR_NAMED),
            &Free {
                storage,
                tensor: TensorId(6),
                bytes: 4_096,
                op: NameId(11),
                dtype: DType::OTHER,
                device,
                category: Category::OTHER,
            },
        ),
        Record::new(
            head::<DeviceMemory>(1_400, 0, Level::METADATA, MEMORY_USED | MEMORY_CAPACITY),
            &DeviceMemory { used: 3 << 30, free: 0, reserved: 0, capacity: 80 << 30, device },
        ),
        Record::new(
            head::<Edge>(1_500, 0, Level::TIMING, 0),
            &Edge {
                from: (1 << 32) + 7,
                to: 8,
                duration: 250,
                from_lane: LaneId(3),
                to_lane: LaneId(4),
                kind: EdgeKind::CALL,
            },
        ),
        Record::new(
            head::<Control>(1_600, 0, Level::PULSE, 0),
            &Control { configuration: 9, sequence: (1 << 40) + 19 },
        ),
        Record::new(
            head::<Hit>(1_610, 5, Level::PULSE, 0),
            &Hit { value: f64::INFINITY, breakpoint: 4 },
        ),
        Record::new(
            head::<Span>(1_050, 5, Level::TIMING, SPAN_MEASURED | SPAN_OPEN),
            &Span {
                end: Ticks(1_700),
                parent: SpanId(2),
                own_high: 1,
                parent_lane: LaneId(4),
                own_lane: LaneId(3),
                depth: 1,
                step: ExecutionStep::BACKWARD,
                kind: SpanKind::MODULE,
            },
        ),
        Record::new(
            head::<Step>(1_800, 0, Level::PULSE, STEP_END | STEP_MICRO_BATCH),
            &Step { number: 12, micro_batch: 1, phase: Phase::TRAIN },
        ),
    ]
}

/// What only the recorder's lane has.
fn recorder_records() -> Vec<Record> {
    let none = |header: RecordHeader| RecordHeader { span: 0, ..header };
    vec![
        Record::new(
            none(head::<LevelChange>(900, 0, Level::PULSE, 0)),
            &LevelChange {
                asked: Ticks(890),
                armed: Ticks(910),
                old: Level::PULSE,
                new: Level::METADATA,
                source: LevelSource::ATTACH,
            },
        ),
        Record::new(
            none(head::<ClockSync>(950, 0, Level::PULSE, 0)),
            &ClockSync {
                device_ns: 5_000_000,
                before: Ticks(945),
                after: Ticks(955),
                clock: ClockCode(2),
            },
        ),
        Record::new(
            none(head::<DeviceInterval>(1_110, 5, Level::TIMING, STREAM_NAMED)),
            &DeviceInterval {
                start: 5_100_000,
                end: 5_250_000,
                stream: StreamId(12),
                seen: Ticks(1_900),
                span: 7,
                lane: LaneId(3),
                device: DeviceCode(1),
                clock: ClockCode(2),
            },
        ),
        Record::new(
            none(head::<Gap>(2_000, 0, Level::PULSE, 0)),
            &Gap {
                first: Ticks(1_705),
                last: Ticks(1_795),
                records: 40,
                groups: 20,
                planes: Planes::HOST_TIME.union(Planes::TENSORS),
                lane: LaneId(3),
                reason: GapReason::OVERRUN,
            },
        ),
    ]
}

/// A file with every frame and every kind of record.
pub fn file() -> Vec<u8> {
    let (mut file, position) = (File::new(), 1 << 40);
    file.meta(&frames());
    let span = SpanId((1 << 32) + 7);
    file.records(LaneId(3), position, span, &numbered(position, lane_records()));
    file.records(LaneId::RECORDER, 0, SpanId::NONE, &numbered(0, recorder_records()));
    file.finish()
}
