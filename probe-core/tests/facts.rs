//! Every kind of record, from the call to the file.

mod support;

use proptest::prelude::*;
use support::read::{CONTINUES, File, Rec, SCALAR};
use support::{Counting, Memory, finish, start};
use tmrun_formats::wire::{
    Alloc, DeviceMemory, Edge, Free, Gradient, Kind, Op, OpInput, Payload, Shape, Tensor, flags,
};
use tmrun_formats::{
    Category, DType, DeviceCode, EdgeKind, GradientState, LaneId, Level, NameId, SpanId, StorageId,
    TensorId, Ticks,
};
use tmrun_probe_core::{
    DeviceMemoryFact, MemoryFact, OpFact, Probe, Range, Recorder, Stats, TensorFact,
};

/// What `record` records, without the level's own record.
fn recorded(record: impl FnOnce(Recorder<'_, Counting>)) -> (File, Vec<Rec>) {
    let probe = Box::new(Probe::<Counting, 1, 64, 16>::new());
    let lane = probe.view().claim("facts").unwrap();
    let drain = start(probe.view(), Memory::default(), Level::NUMERICS);
    record(lane.recorder());
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);
    let records = file.stored(0);
    (file, records)
}

fn payload<P: Payload>(record: &Rec) -> P {
    assert_eq!(record.kind, P::KIND as u8);
    let words: Vec<u64> = (0..5).map(|i| record.u64_at(i * 8)).collect();
    P::from_words(&words.try_into().unwrap())
}

/// The dimensions in the Shape records of a group.
fn dims(group: &[Rec]) -> Vec<u64> {
    let shapes = group.iter().filter(|record| record.kind == Kind::Shape as u8);
    shapes
        .flat_map(|record| {
            let shape: Shape = payload(record);
            shape.used(record.flags).to_vec()
        })
        .collect()
}

fn truncated(file: &File) -> u64 {
    file.totals(0).unwrap().truncated
}

proptest! {
    #[test]
    fn an_operation_keeps_its_inputs_and_its_shape_or_says_that_it_does_not(
        inputs in 0_usize..=70,
        shape in prop::option::of(prop::collection::vec(any::<u32>(), 0..=20)),
        bytes in prop::option::of(any::<u64>()),
    ) {
        let ids: Vec<_> = (0..inputs).map(|i| TensorId(100 + i as u64)).collect();
        let shape: Option<Vec<usize>> = shape.map(|s| s.iter().map(|&d| d as usize).collect());
        let fact = OpFact {
            op: NameId(3),
            start: Ticks(70),
            end: Ticks(90),
            output: TensorId(5),
            storage: StorageId(6),
            shape: shape.as_deref(),
            dtype: DType(7),
            device: DeviceCode(8),
            category: Category(9),
            inputs: &ids,
            input_bytes: bytes,
        };
        let (file, group) = recorded(|recorder| recorder.op(NameId(2), &fact));
        let head = &group[0];
        let op: Op = payload(head);
        let wanted = shape.as_ref().map_or(0, |s| s.len().div_ceil(5).max(1));
        let kept = inputs.min((15 - wanted) * 5);
        prop_assert_eq!((head.ticks, head.name, head.level), (70, 2, 1));
        prop_assert_eq!(op, Op {
            end: Ticks(90),
            output: TensorId(5),
            storage: StorageId(6),
            input_bytes: bytes.unwrap_or(0),
            op: NameId(3),
            inputs: kept as u8,
            category: Category(9),
            dtype: DType(7),
            device: DeviceCode(8),
        });
        prop_assert_eq!(head.flags & flags::OP_INPUT_BYTES != 0, bytes.is_some());
        let cut = kept < inputs;
        prop_assert_eq!(head.flags & flags::TRUNCATED != 0, cut);
        prop_assert_eq!(truncated(&file), u64::from(cut));
        let expected: Vec<u64> = shape.unwrap_or_default().iter().map(|&d| d as u64).collect();
        prop_assert_eq!(dims(&group), expected);
        let stored: Vec<_> = group
            .iter()
            .filter(|record| record.kind == Kind::OpInput as u8)
            .flat_map(|record| payload::<OpInput>(record).tensors)
            .collect();
        prop_assert_eq!(&stored[..kept], &ids[..kept]);
        prop_assert!(stored[kept..].iter().all(|id| *id == TensorId(0)));
        prop_assert_eq!(group.len(), 1 + wanted + kept.div_ceil(5));
        prop_assert!(group[1..].iter().all(|record| record.flags & CONTINUES != 0));
        prop_assert!(group.iter().all(|record| record.ticks == 70 && record.name == 2));
    }

    #[test]
    fn a_tensor_keeps_every_dimension_of_any_rank_and_size(
        shape in prop::collection::vec(
            prop_oneof![0_u64..5000, Just((1 << 32) - 1), Just(1 << 32), any::<u64>()], 0..=20),
        contiguous in prop::option::of(any::<bool>()),
        requires_grad in any::<bool>(),
        statistics in prop::option::of((any::<bool>(), any::<bool>())),
    ) {
        let sizes: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
        let fact = TensorFact {
            tensor: TensorId(11),
            storage: StorageId(12),
            shape: &sizes,
            dtype: DType(13),
            device: DeviceCode(14),
            category: Category(15),
            contiguous,
            requires_grad,
        };
        let stats = Stats { count: 9, nan: 1, inf: 2, rms: 0.5, abs_max: f64::MAX, mean: -0.0 };
        let range = Range { min: -1.0, max: f64::MIN_POSITIVE, zeros: 3, saturated: 4,
            positive_inf: 5, non_finite: 6 };
        let (file, group) = recorded(|recorder| match statistics {
            None => recorder.tensor(NameId(2), &fact),
            Some((observed, with_range)) => {
                recorder.stats(NameId(2), &fact, observed, &stats, with_range.then_some(&range));
            }
        });
        let head = &group[0];
        let tensor: Tensor = payload(head);
        prop_assert_eq!((tensor.tensor, tensor.storage), (TensorId(11), StorageId(12)));
        prop_assert_eq!((tensor.dtype, tensor.device), (DType(13), DeviceCode(14)));
        prop_assert_eq!((tensor.category, usize::from(tensor.rank)), (Category(15), shape.len()));
        let fits = shape.len() <= 5 && shape.iter().all(|&dim| dim < 1 << 32);
        let inline: Vec<u64> = tensor.dims.iter().map(|&dim| u64::from(dim)).collect();
        if fits {
            prop_assert_eq!(&inline[..shape.len()], &shape[..]);
            prop_assert!(dims(&group).is_empty());
        } else {
            prop_assert_eq!(dims(&group), shape);
            prop_assert!(inline.iter().all(|&dim| dim == 0));
        }
        let flag = |flag: u16| head.flags & flag != 0;
        prop_assert_eq!(flag(flags::TENSOR_LAYOUT), contiguous.is_some());
        prop_assert_eq!(flag(flags::TENSOR_CONTIGUOUS), contiguous == Some(true));
        prop_assert_eq!(flag(flags::TENSOR_REQUIRES_GRAD), requires_grad);
        let context = statistics.is_some_and(|(observed, _)| !observed);
        prop_assert_eq!(flag(flags::TENSOR_CONTEXT), context);
        prop_assert!(!flag(flags::TRUNCATED));
        prop_assert_eq!(truncated(&file), 0);
        let level = if statistics.is_some() { 3 } else { 2 };
        prop_assert!(group.iter().all(|record| record.level == level));
        if let Some((_, with_range)) = statistics {
            let at = group.len() - 1 - usize::from(with_range);
            prop_assert_eq!(payload::<Stats>(&group[at]), stats);
            if with_range {
                prop_assert_eq!(payload::<Range>(&group[at + 1]), range);
            }
        }
    }

    #[test]
    fn a_scalar_keeps_every_bit(bits in any::<u64>()) {
        let (_, records) = recorded(|recorder| recorder.scalar(NameId(4), f64::from_bits(bits)));
        prop_assert_eq!(records.len(), 1);
        prop_assert_eq!((records[0].kind, records[0].name, records[0].level), (SCALAR, 4, 0));
        prop_assert_eq!(records[0].u64_at(0), bits);
    }

    #[test]
    fn a_sample_of_device_memory_says_which_numbers_it_has(
        used in prop::option::of(any::<u64>()),
        free in prop::option::of(any::<u64>()),
        reserved in prop::option::of(any::<u64>()),
        capacity in prop::option::of(any::<u64>()),
    ) {
        let device = DeviceCode(3);
        let fact = DeviceMemoryFact { device, used, free, reserved, capacity };
        let (_, records) = recorded(|recorder| recorder.device_memory(&fact));
        let all = [used, free, reserved, capacity];
        let memory: DeviceMemory = payload(&records[0]);
        let found = [memory.used, memory.free, memory.reserved, memory.capacity];
        prop_assert_eq!(found, all.map(Option::unwrap_or_default));
        prop_assert_eq!(memory.device, device);
        let present: u16 = (0..).zip(all).map(|(bit, v)| u16::from(v.is_some()) << bit).sum();
        prop_assert_eq!(records[0].flags, present);
    }
}

#[test]
fn a_shape_longer_than_a_group_is_cut_flagged_and_counted() {
    let long: Vec<usize> = (1..=300).collect();
    let fact = TensorFact { shape: &long, ..TensorFact::default() };
    let (file, group) = recorded(|recorder| {
        recorder.stats(NameId(1), &fact, true, &Stats::default(), Some(&Range::default()));
        let shape = Some(&long[..]);
        recorder.alloc(NameId(1), &MemoryFact { shape, ..MemoryFact::default() });
        recorder.op(NameId(1), &OpFact { shape, inputs: &[TensorId(1)], ..OpFact::default() });
    });
    assert_eq!(group.len(), 48);
    let groups: Vec<_> = group.chunk_by(|_, next| next.continues()).collect();
    let lengths: Vec<_> = groups.iter().map(|group| dims(group).len()).collect();
    assert_eq!(lengths, [65, 75, 75]);
    assert!(groups.iter().all(|group| group[0].flags & flags::TRUNCATED != 0));
    assert!(
        groups.iter().all(|group| dims(group).iter().copied().eq(1..=dims(group).len() as u64))
    );
    assert_eq!(truncated(&file), 3);
    assert_eq!(payload::<Tensor>(&groups[0][0]).rank, 255, "a rank that no byte holds");
}

#[test]
fn gradients_ranges_memory_and_edges_come_back_as_they_went() {
    let dims_of_alloc = [2_usize, 3, 5];
    let fact = MemoryFact {
        storage: StorageId(21),
        tensor: TensorId(22),
        bytes: u64::MAX,
        op: NameId(23),
        shape: Some(&dims_of_alloc),
        dtype: DType(24),
        device: DeviceCode(25),
        category: Category(26),
    };
    let range = Range { min: f64::NEG_INFINITY, max: f64::NAN, ..Range::default() };
    let (_, records) = recorded(|recorder| {
        recorder.gradient(NameId(1), NameId(2), GradientState::PRESENT, Some(0.25));
        recorder.gradient(NameId(1), NameId(3), GradientState::MISSING, None);
        recorder.range(NameId(4), &range);
        recorder.alloc(NameId(5), &fact);
        recorder.free(NameId(6), &MemoryFact { shape: None, ..fact });
        recorder.alloc(NameId(7), &MemoryFact { shape: Some(&[]), ..fact });
        recorder.static_edge(NameId(8), NameId(9), 77);
        recorder.data_edge(TensorId(1 << 60), TensorId(3));
        let here = recorder.lane();
        recorder.call_edge((here, SpanId(1 << 40)), (LaneId(7), SpanId(5)), 33);
    });
    let kinds: Vec<u8> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [10, 10, 8, 11, 6, 12, 11, 6, 15, 15, 15]);
    let gradient: Gradient = payload(&records[0]);
    assert_eq!((gradient.norm, gradient.root), (0.25, NameId(1)));
    assert_eq!((gradient.state, records[0].flags), (GradientState::PRESENT, flags::GRADIENT_NORM));
    assert_eq!((records[0].name, records[1].name, records[1].flags), (2, 3, 0));
    assert_eq!(payload::<Gradient>(&records[1]).state, GradientState::MISSING);
    assert_eq!(records[2].f64_at(0), f64::NEG_INFINITY);
    assert!(records[2].f64_at(8).is_nan());
    let alloc: Alloc = payload(&records[3]);
    assert_eq!((alloc.storage, alloc.tensor, alloc.bytes), (StorageId(21), TensorId(22), u64::MAX));
    assert_eq!((alloc.op, alloc.dtype), (NameId(23), DType(24)));
    assert_eq!((alloc.device, alloc.category), (DeviceCode(25), Category(26)));
    assert_eq!(dims(&records[3..5]), [2, 3, 5]);
    assert_eq!(payload::<Free>(&records[5]).bytes, u64::MAX);
    assert!(dims(&records[6..8]).is_empty(), "a scalar's shape is known and empty");
    let edges = [payload::<Edge>(&records[8]), payload::<Edge>(&records[9])];
    assert_eq!((edges[0].from, edges[0].to, edges[0].duration), (8, 9, 77));
    assert_eq!(edges.map(|edge| edge.kind), [EdgeKind::STATIC, EdgeKind::DATA]);
    assert_eq!(records[8].flags, flags::EDGE_FROM_NAMED | flags::EDGE_TO_NAMED);
    assert_eq!((edges[1].from, edges[1].to, records[9].flags), (1 << 60, 3, 0));
    let call = payload::<Edge>(&records[10]);
    assert_eq!((call.from, call.to, call.duration), (1 << 40, 5, 33));
    assert_eq!((call.from_lane, call.to_lane, call.kind), (LaneId(0), LaneId(7), EdgeKind::CALL));
}
