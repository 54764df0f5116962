//! Facts of sessions: their texts are names, and their times the application's.

use tmrun_formats::wire::{ClockV1, Frame, Kind, flags};
use tmrun_probe_core::session::{
    DeviceIntervalRecord, DeviceMemoryRecord, GradientState, MemoryCategory, MemoryRecord,
    OpRecord, Range, SessionError, SpanKind, Stats, StatsFault, StatsRecord, TensorRecord,
};

use crate::support::read::{File, Rec};
use crate::{Folder, named, only, text};

const OP: OpRecord<'static> = OpRecord {
    op_name: "matmul",
    inputs: &[],
    output: Some("y"),
    shape: &[4, 8],
    dtype: "bf16",
    device: "cuda:1",
    duration_ns: 700,
    timestamp_ns: 1_000,
    output_dense_bytes: None,
    input_dense_bytes: 640,
};

const MEMORY: MemoryRecord<'static> = MemoryRecord {
    storage_id: "storage-9",
    tensor_id: "y",
    device: "cuda:1",
    bytes: 4096,
    dtype: "q4",
    category: MemoryCategory::Activation,
    timestamp_ns: Some(1_500),
    op_name: Some("matmul"),
    shape: &[2, 3, 4],
};

/// The name of a code that the file defines.
fn device(file: &File, code: u8) -> String {
    let found = file.frames().into_iter().find_map(|frame| match frame {
        Frame::Device(device) if device.code.0 == code => Some(device.name.to_owned()),
        _ => None,
    });
    found.unwrap()
}

fn dims(record: &Rec) -> Vec<u64> {
    (0..usize::from(record.flags & flags::SHAPE_DIMS)).map(|at| record.u64_at(8 * at)).collect()
}

#[test]
fn an_operation_has_its_inputs_and_output_by_name() {
    let folder = Folder::new();
    let inputs: Vec<String> = ["a", "b", "a", "c", "d", "e"].map(str::to_owned).into();
    let file = folder.recorded(|session| {
        let span = session.begin_span("op", SpanKind::Op);
        session.record_op(span.id(), OpRecord { inputs: &inputs, ..OP }).unwrap();
        session.record_memory_alloc(span.id(), MEMORY).unwrap();
    });
    let op = only(&file, Kind::Op);
    assert_eq!((op.span, text(&file, op.u32_at(32)).as_str()), (1, "matmul"));
    assert_eq!(named(&file, &op, flags::OP_OUTPUT_NAMED, 8), "y");
    assert_eq!((op.u64_at(0) - op.ticks, op.payload[36]), (700, 6));
    assert_eq!((op.flags & flags::OP_INPUT_BYTES != 0, op.u64_at(24)), (true, 640));
    assert_eq!(device(&file, op.payload[39]), "cuda:1");
    let lists = file.of(Kind::OpInput as u8);
    let found: Vec<String> = lists
        .iter()
        .flat_map(|list| (0..5).map(move |at| (list, at)))
        .filter(|(list, at)| list.flags & flags::OP_INPUT_NAMED << at != 0)
        .map(|(list, at)| text(&file, list.u64_at(8 * at) as u32))
        .collect();
    assert_eq!(found, inputs);
    let alloc = only(&file, Kind::Alloc);
    assert_eq!(alloc.ticks - op.ticks, 500, "between two times of the application's");
    let shapes: Vec<_> = file.of(Kind::Shape as u8).iter().map(dims).collect();
    assert_eq!(shapes, [vec![4, 8], vec![2, 3, 4]]);
}

#[test]
fn an_operation_without_a_time_ends_now() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let span = session.begin_span("op", SpanKind::Op);
        while span.elapsed_ns() < 50 {}
        session.record_op(span.id(), OpRecord { timestamp_ns: 0, duration_ns: 10, ..OP }).unwrap();
        session
            .record_op(span.id(), OpRecord { timestamp_ns: 0, duration_ns: u64::MAX, ..OP })
            .unwrap();
    });
    let (span, ops) = (only(&file, Kind::Span), file.of(Kind::Op as u8));
    assert!(span.ticks < ops[0].ticks && ops[0].u64_at(0) <= span.u64_at(0));
    assert!(ops[1].ticks <= span.ticks, "not before the session, if longer than it");
    assert_eq!(ops[1].u64_at(0), u64::MAX);
}

#[test]
fn a_tensor_has_its_label_and_its_identity() {
    let folder = Folder::new();
    let tensor = TensorRecord {
        tensor_id: "t1",
        label: Some("encoder/out"),
        shape: &[1 << 33, 2],
        dtype: "f16",
        device: "cpu",
        requires_grad: true,
        dense_bytes: None,
        category: MemoryCategory::Parameter,
    };
    let file = folder.recorded(|session| {
        let span = session.begin_span("forward", SpanKind::Function);
        session.record_tensor(span.id(), tensor).unwrap();
        session.record_tensor(span.id(), TensorRecord { label: None, ..tensor }).unwrap();
    });
    let tensors = file.of(Kind::Tensor as u8);
    let labels: Vec<_> = tensors.iter().map(|tensor| file.name(tensor)).collect();
    assert_eq!(labels, ["encoder/out", ""]);
    for tensor in &tensors {
        assert_eq!(named(&file, tensor, flags::TENSOR_NAMED, 0), "t1");
        assert_eq!(tensor.flags & flags::TENSOR_REQUIRES_GRAD, flags::TENSOR_REQUIRES_GRAD);
        assert_eq!((tensor.payload[16], tensor.payload[17], tensor.payload[19]), (2, 10, 1));
    }
    assert_eq!(dims(&file.of(Kind::Shape as u8)[0]), [1 << 33, 2]);
}

#[test]
fn a_scalar_may_be_any_number_and_has_a_label() {
    let folder = Folder::new();
    let values = [1.25, -0.0, f64::NAN, f64::NEG_INFINITY];
    let file = folder.recorded(|session| {
        let span = session.begin_measurement("update");
        for value in values {
            session.record_scalar(span.id(), "loss", value).unwrap();
        }
        let refused = session.record_scalar(span.id(), " \t", 1.0).unwrap_err();
        assert!(matches!(refused, SessionError::Blank { .. }), "{refused}");
    });
    let found: Vec<u64> =
        file.of(Kind::Scalar as u8).iter().map(|scalar| scalar.u64_at(0)).collect();
    assert_eq!(found, values.map(f64::to_bits));
}

#[test]
fn statistics_are_a_group_that_observes_no_tensor() {
    let folder = Folder::new();
    let stats = Stats { count: 6, nan: 1, inf: 1, rms: 2.0, abs_max: 3.0, mean: -1.0 };
    let range = Range { min: -3.0, max: 1.0, zeros: 1, non_finite: 2, ..Range::default() };
    let record =
        StatsRecord { label: "block/out", shape: &[2, 3], dtype: "f32", stats, range: Some(range) };
    let file = folder.recorded(|session| {
        let span = session.begin_measurement("update");
        session.record_stats(span.id(), record).unwrap();
        let refused = |stats, shape| match session
            .record_stats(span.id(), StatsRecord { stats, shape, ..record })
        {
            Err(SessionError::Stats { fault }) => fault,
            other => panic!("{other:?}"),
        };
        let elements = |product| StatsFault::Elements { count: 6, product };
        assert_eq!(refused(stats, &[2, 2]), elements(Some(4)));
        assert_eq!(refused(stats, &[usize::MAX, 2, 0]), elements(None));
        let fault = refused(Stats { nan: 6, ..stats }, &[6]);
        assert_eq!(fault, StatsFault::NonFinite { count: 6, non_finite: 7 });
        let fault = refused(Stats { rms: -1.0, ..stats }, &[6]);
        assert_eq!(fault, StatsFault::Value { field: "rms", value: -1.0 });
        let fault = refused(Stats { mean: f64::INFINITY, ..stats }, &[6]);
        assert_eq!(fault, StatsFault::Value { field: "mean", value: f64::INFINITY });
    });
    let head = only(&file, Kind::Tensor);
    assert_eq!((file.name(&head).as_str(), head.level), ("block/out", 3));
    assert_eq!(head.flags, flags::TENSOR_CONTEXT);
    let found = only(&file, Kind::Stats);
    assert!(found.continues() && only(&file, Kind::Range).continues());
    assert_eq!((found.u64_at(0), found.u32_at(8), found.u32_at(12)), (6, 1, 1));
    assert_eq!([16, 24, 32].map(|at| found.f64_at(at)), [2.0, 3.0, -1.0]);
}

#[test]
fn a_storage_comes_and_goes_by_name() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let span = session.begin_span("forward", SpanKind::Function);
        session.record_memory_alloc(span.id(), MEMORY).unwrap();
        let bare = MemoryRecord { timestamp_ns: None, op_name: None, ..MEMORY };
        session.record_memory_free(span.id(), bare).unwrap();
    });
    let (alloc, free) = (only(&file, Kind::Alloc), only(&file, Kind::Free));
    for record in [&alloc, &free] {
        assert_eq!(named(&file, record, flags::STORAGE_NAMED, 0), "storage-9");
        assert_eq!(named(&file, record, flags::TENSOR_NAMED, 8), "y");
        assert_eq!((record.u64_at(16), record.payload[30]), (4096, 2));
    }
    assert_eq!((text(&file, alloc.u32_at(24)), free.u32_at(24)), ("matmul".to_owned(), 0));
    let dtype = file.frames().into_iter().find_map(|frame| match frame {
        Frame::DType(dtype) => Some((dtype.code.0, dtype.name.to_owned())),
        _ => None,
    });
    assert_eq!(dtype, Some((alloc.payload[28], "q4".to_owned())), "a type of the application's");
}

#[test]
fn a_sample_of_memory_holds_what_was_given_and_something() {
    let folder = Folder::new();
    let nothing = DeviceMemoryRecord {
        device: "cuda:0",
        used_bytes: None,
        free_bytes: None,
        reserved_bytes: None,
        capacity_bytes: None,
        timestamp_ns: Some(9),
    };
    let file = folder.recorded(|session| {
        let refused = session.record_device_memory(nothing).unwrap_err();
        assert!(matches!(refused, SessionError::EmptyDeviceMemory), "{refused}");
        let given = DeviceMemoryRecord { used_bytes: Some(0), capacity_bytes: Some(80), ..nothing };
        session.record_device_memory(given).unwrap();
    });
    let sample = only(&file, Kind::DeviceMemory);
    assert_eq!(sample.flags, flags::MEMORY_USED | flags::MEMORY_CAPACITY);
    assert_eq!([0, 8, 16, 24].map(|at| sample.u64_at(at)), [0, 0, 0, 80]);
    assert_eq!(device(&file, sample.payload[32]), "cuda:0");
}

#[test]
fn a_device_interval_is_on_a_clock_that_the_file_defines() {
    let folder = Folder::new();
    let interval = DeviceIntervalRecord {
        device: "cuda:0",
        stream_id: "stream-1",
        clock_id: "events",
        backend: "cudarc",
        start_ns: 40,
        duration_ns: 2,
    };
    let file = folder.recorded(|session| {
        let ended = session.begin_span("launch", SpanKind::Op).id();
        session.record_device_interval(ended, interval).unwrap();
        session
            .record_device_interval(ended, DeviceIntervalRecord { start_ns: 50, ..interval })
            .unwrap();
        let other = DeviceIntervalRecord { device: "cuda:1", ..interval };
        session.record_device_interval(ended, other).unwrap();
        let refused =
            |interval| session.record_device_interval(ended, interval).unwrap_err().to_string();
        assert!(refused(DeviceIntervalRecord { duration_ns: 0, ..interval }).contains("0 ns"));
        let endless = DeviceIntervalRecord { start_ns: u64::MAX, ..interval };
        assert!(refused(endless).contains("64-bit"));
    });
    let intervals = file.of(Kind::DeviceInterval as u8);
    let clocks: Vec<u8> = intervals.iter().map(|interval| interval.payload[39]).collect();
    assert_eq!(clocks, [1, 1, 2]);
    let first = &intervals[0];
    assert_eq!((first.u64_at(0), first.u64_at(8)), (40, 42));
    assert_eq!(named(&file, first, flags::STREAM_NAMED, 16), "stream-1");
    assert_eq!((first.u32_at(32), first.u16_at(36), first.lane), (1, first.lane, 0));
    assert_eq!(first.u64_at(24), first.ticks);
    let mut defined: Vec<ClockV1<'_>> = file
        .frames()
        .into_iter()
        .filter_map(|frame| match frame {
            Frame::Clock(clock) => Some(clock),
            _ => None,
        })
        .collect();
    defined.dedup();
    defined.sort_by_key(|clock| clock.code);
    defined.dedup();
    let told: Vec<_> = defined
        .iter()
        .map(|clock| (clock.code.0, clock.name, device(&file, clock.device.0), clock.backend))
        .collect();
    let expected = [
        (1, "events", "cuda:0".to_owned(), "cudarc"),
        (2, "events", "cuda:1".to_owned(), "cudarc"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn edges_connect_spans_by_id_and_tensors_by_name() {
    let folder = Folder::new();
    let file = folder.recorded(|session| {
        let outer = session.begin_span("outer", SpanKind::Function);
        let inner = session.begin_span("inner", SpanKind::Function);
        session.record_call_edge(outer.id(), inner.id(), 77).unwrap();
        session.record_data_edge("x", "y").unwrap();
        assert!(matches!(session.record_data_edge("", "y"), Err(SessionError::Blank { .. })));
    });
    let edges = file.of(Kind::Edge as u8);
    let [call, data] = &edges[..] else { panic!("{edges:?}") };
    assert_eq!((call.u64_at(0), call.u64_at(8), call.u64_at(16), call.payload[28]), (1, 2, 77, 1));
    assert_eq!(named(&file, data, flags::EDGE_FROM_NAMED, 0), "x");
    assert_eq!(named(&file, data, flags::EDGE_TO_NAMED, 8), "y");
}

#[test]
fn a_gradient_has_the_norm_that_goes_with_its_state() {
    use GradientState::{Missing, NonFinite, Present, Zero};
    let folder = Folder::new();
    let fits = [
        (Present, Some(0.5)),
        (Present, Some(f64::MIN_POSITIVE)),
        (Zero, Some(0.0)),
        (Missing, None),
        (NonFinite, None),
    ];
    let does_not = [
        (Present, None),
        (Present, Some(0.0)),
        (Present, Some(-1.0)),
        (Present, Some(f64::INFINITY)),
        (Present, Some(f64::NAN)),
        (Zero, None),
        (Zero, Some(-0.0)),
        (Zero, Some(1.0)),
        (Missing, Some(0.0)),
        (NonFinite, Some(f64::NAN)),
    ];
    let file = folder.recorded(|session| {
        for (state, norm) in fits {
            session.record_gradient("vb", "w", state, norm).unwrap();
        }
        for (state, norm) in does_not {
            let refused = session.record_gradient("vb", "w", state, norm).unwrap_err();
            assert!(matches!(refused, SessionError::Gradient { .. }), "{state} {norm:?}");
        }
        for (root, key) in [("", "w"), ("vb", " ")] {
            let refused = session.record_gradient(root, key, Missing, None).unwrap_err();
            assert!(matches!(refused, SessionError::Blank { .. }), "{refused}");
        }
    });
    let found: Vec<_> = file
        .of(Kind::Gradient as u8)
        .iter()
        .map(|gradient| {
            assert_eq!(
                (file.name(gradient), text(&file, gradient.u32_at(8))),
                ("w".into(), "vb".into())
            );
            let given = gradient.flags & flags::GRADIENT_NORM != 0;
            (gradient.payload[12], given.then(|| gradient.f64_at(0)))
        })
        .collect();
    let code = |state| match state {
        Present => 1,
        Missing => 2,
        Zero => 3,
        NonFinite => 4,
    };
    assert_eq!(found, fits.map(|(state, norm)| (code(state), norm)));
}
