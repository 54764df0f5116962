//! Storages and tensors whose identity is lost, or is that of another: nothing of them is invented, and
//! no claim is made that rests on them.

mod support;

use candle_graph_v10 as neighbour;
use support::Builder;
use support::record::step;
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::{LeftOut, Told, Trace};
use tmrun_formats::trace::{MemoryAction, TraceDocument};
use tmrun_formats::wire::{Alloc, ContractV1, Frame, Free, Record, RecordHeader, Tensor};
use tmrun_formats::{DType, Level, StorageId, TensorId, Ticks};

/// Memory and tensors, all of them.
const ALL: ContractV1 = ContractV1 {
    measurement_scope: 0,
    operations: 0,
    activations: 0,
    tensors: 2,
    gradients: 0,
    logical_memory: 2,
    physical_memory: 0,
    device_timing: 0,
};

fn alloc(ticks: u64, storage: u64, tensor: u64, bytes: u64) -> Record {
    let (storage, tensor) = (StorageId(storage), TensorId(tensor));
    let header = RecordHeader { ticks: Ticks(ticks), ..RecordHeader::of::<Alloc>(Level::METADATA) };
    Record::new(header, &Alloc { storage, tensor, bytes, ..Alloc::default() })
}

fn free(ticks: u64, storage: u64, tensor: u64, bytes: u64) -> Record {
    let (storage, tensor) = (StorageId(storage), TensorId(tensor));
    let header = RecordHeader { ticks: Ticks(ticks), ..RecordHeader::of::<Free>(Level::METADATA) };
    Record::new(header, &Free { storage, tensor, bytes, ..Free::default() })
}

fn tensor(ticks: u64, id: u64) -> Record {
    let payload = Tensor { tensor: TensorId(id), dtype: DType::F32, ..Tensor::default() };
    let header =
        RecordHeader { ticks: Ticks(ticks), ..RecordHeader::of::<Tensor>(Level::METADATA) };
    Record::new(header, &payload)
}

/// The second step of a run of these records, which must be valid to the neighbour; and what was told.
fn traced(records: &[Record], look: impl FnOnce(&TraceDocument<'_>, &Told)) {
    let file = Builder::started()
        .meta(&[Frame::Contract(ALL)])
        .records(u16::MAX, &[support::record::level(1, 2, 3, 3)])
        .records(0, records)
        .finish();
    let recording = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&recording, Some(2)).expect("the step");
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let path = tempfile::NamedTempFile::new().expect("a file");
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    std::fs::write(path.path(), text).expect("it is written");
    let health = neighbour::trace::analyze_health(&neighbour::parse_trace(path.path()).unwrap());
    assert!(health.structurally_valid, "{:?}", health.issues);
    look(&derived.document, &derived.told);
}

fn refuted(told: &Told) -> Vec<(&str, &str)> {
    told.refuted.iter().map(|refuted| (refuted.plane, &*refuted.because)).collect()
}

#[test]
fn a_free_of_another_size_ends_no_storage_and_takes_the_claim_back() {
    // Between the steps storage 9 was freed, and made anew with another size, while nobody looked.
    let records = [
        step(100, 1, false),
        alloc(110, 9, 1, 64),
        step(190, 1, true),
        step(200, 2, false),
        free(210, 9, 2, 32),
        alloc(220, 9, 3, 64),
        free(230, 9, 3, 64),
        step(290, 2, true),
    ];
    traced(&records, |document, told| {
        let memory: Vec<_> =
            document.memory.iter().map(|it| (it.action, it.bytes, &*it.storage_id)).collect();
        // The first has no end in sight; the last has a name of its own, and its own end.
        assert_eq!(memory.len(), 3, "{memory:?}");
        assert_eq!((memory[0].0, memory[0].1), (MemoryAction::Alloc, 64));
        assert_eq!((memory[1].0, memory[2].0), (MemoryAction::Alloc, MemoryAction::Free));
        assert_eq!(memory[1].2, memory[2].2);
        assert_ne!(memory[0].2, memory[1].2);
        assert_eq!(told.count(LeftOut::Free), 1);
        let because = "1 free is of storage of unknown origin";
        assert_eq!(refuted(told), [("logical_memory", because)]);
    });
}

#[test]
fn storage_without_an_identity_is_not_one_storage_and_no_claim_survives_it() {
    let records = [
        step(200, 2, false),
        alloc(210, 0, 1, 64),
        alloc(220, 0, 2, 32),
        free(230, 0, 1, 64),
        step(290, 2, true),
    ];
    traced(&records, |document, told| {
        assert_eq!(document.memory, []);
        assert_eq!(told.count(LeftOut::Storage), 3);
        let because = "3 allocations and frees are of storage without an identity";
        assert_eq!(refuted(told), [("logical_memory", because)]);
    });
}

#[test]
fn tensors_without_an_identity_are_there_and_are_not_all_tensors() {
    let records =
        [step(200, 2, false), tensor(210, 7), tensor(220, 0), tensor(230, 0), step(290, 2, true)];
    traced(&records, |document, told| {
        assert_eq!(document.tensors.len(), 3);
        assert_eq!(told.unidentified_tensors, 2);
        assert_eq!(refuted(told), [("tensors", "2 tensors have no identity")]);
    });
}
