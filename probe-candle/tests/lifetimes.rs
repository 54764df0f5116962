//! Lifetimes of storages: which ids are one storage, and what is recorded of its beginning and end.

mod support;

use candle_core::{DType, Device, Result, Tensor, Var};
use support::{PROBE, recorded, recording};
use tmrun_formats::wire::{Alloc, Free, Op, Record, Tensor as TensorRecord};
use tmrun_probe_candle::{
    CandleRecorder, LifetimesInUse, Tracked, hold_lifetimes, same_storage, storage_id, tensor_id,
};
use tmrun_probe_core::{Category, Level, NameId, StorageId};

const NODE: NameId = NameId(7);
const ADDRESS: u64 = (1 << 48) - 1;

fn zeros() -> Result<Tensor> {
    Tensor::zeros((16, 16), DType::F32, &Device::Cpu)
}

fn epoch(StorageId(id): StorageId) -> u64 {
    id >> 48
}

fn allocs(records: &[Record]) -> Vec<Alloc> {
    records.iter().filter_map(Record::payload).collect()
}

fn frees(records: &[Record]) -> Vec<Free> {
    records.iter().filter_map(Record::payload).collect()
}

#[test]
fn tensors_seen_between_an_allocation_and_its_free_have_its_epoch() -> Result<()> {
    let x = zeros()?;
    let view = x.t()?;
    let records = recorded(|to| {
        to.candle_tensor(NODE, &x, Category::OTHER);
        assert!(to.candle_alloc(NODE, NameId::NONE, &x, Category::OTHER));
        to.candle_tensor(NODE, &x, Category::OTHER);
        to.candle_tensor(NODE, &view, Category::OTHER);
        to.candle_op(NODE, NODE, to.now()..to.now(), &view, &[&x]);
        assert!(to.candle_free(NODE, NameId::NONE, &x, Category::OTHER));
        to.candle_tensor(NODE, &x, Category::OTHER);
    });
    let [alloc] = allocs(&records)[..] else { panic!("{records:?}") };
    let [free] = frees(&records)[..] else { panic!("{records:?}") };
    assert_ne!(epoch(alloc.storage), 0);
    assert_eq!((free.storage, free.bytes, free.tensor), (alloc.storage, alloc.bytes, alloc.tensor));
    let seen: Vec<_> =
        records.iter().filter_map(|it| Some(it.payload::<TensorRecord>()?.storage)).collect();
    let bare = StorageId(alloc.storage.0 & ADDRESS);
    assert_eq!(seen[1..], [alloc.storage, alloc.storage, bare]);
    assert_ne!(seen[0], alloc.storage);
    let output = records.iter().find_map(|it| Some(it.payload::<Op>()?.storage));
    assert_eq!(output, Some(alloc.storage), "an output that is a view");
    Ok(())
}

/// A freed address comes back at once, as a rule: then the two that had it have not one id.
#[test]
fn an_address_that_comes_again_is_another_storage() -> Result<()> {
    let mut came_again = false;
    for _ in 0..100 {
        let records = recording(|| {
            for _ in 0..2 {
                let tensor = Tracked::new(&PROBE, NODE, zeros()?, Category::OTHER);
                assert!(tensor.is_recorded());
            }
            Ok::<_, candle_core::Error>(())
        });
        records.1?;
        let [one, other] = allocs(&records.0)[..] else { panic!("two of them") };
        assert_ne!(one.storage, other.storage);
        came_again |= one.storage.0 & ADDRESS == other.storage.0 & ADDRESS;
        let ended: Vec<_> = frees(&records.0).iter().map(|free| free.storage).collect();
        assert_eq!(ended, [one.storage, other.storage]);
    }
    assert!(came_again, "not once in a hundred times");
    Ok(())
}

/// Of a storage whose free nobody recorded nothing is known when its address is another tensor's.
#[test]
fn an_allocation_whose_free_was_not_seen_does_not_lend_its_epoch() -> Result<()> {
    for _ in 0..100 {
        let first = zeros()?;
        let second = recorded(|to| {
            assert!(to.candle_alloc(NODE, NameId::NONE, &first, Category::OTHER));
            drop(first);
            let second = zeros().expect("zeros");
            assert!(to.candle_alloc(NODE, NameId::NONE, &second, Category::OTHER));
        });
        let [one, other] = allocs(&second)[..] else { panic!("two of them") };
        assert_ne!(one.storage, other.storage);
    }
    Ok(())
}

#[test]
fn the_same_tensor_goes_on_with_its_epoch_in_the_next_recording() -> Result<()> {
    let weight = Var::zeros(4, DType::F32, &Device::Cpu)?;
    let alloc = || {
        let records = recorded(|to| {
            assert!(to.candle_alloc(NODE, NameId::NONE, &weight, Category::PARAMETER));
        });
        allocs(&records)[0].storage
    };
    let first = alloc();
    weight.set(&weight.affine(1., 1.)?)?;
    assert_eq!((alloc(), storage_id(&weight)), (first, first));
    Ok(())
}

#[test]
fn two_tensors_at_hand_need_no_epoch_to_be_told_one_storage() -> Result<()> {
    let x = zeros()?;
    let (view, other) = (x.narrow(0, 1, 2)?, zeros()?);
    assert!(same_storage(&x, &view) && !same_storage(&x, &other));
    Ok(())
}

/// The wrapper is gone, and so says its record; what else holds the storage is not seen.
#[test]
fn a_clone_that_lives_on_is_not_seen() -> Result<()> {
    let (records, clone) = recording(|| {
        let tracked = Tracked::new(&PROBE, NODE, zeros()?, Category::OTHER);
        Ok::<_, candle_core::Error>((*tracked).clone())
    });
    assert_eq!((allocs(&records).len(), frees(&records).len()), (1, 1));
    assert_eq!(epoch(storage_id(&clone?)), 0, "its lifetime is over in what is recorded");
    Ok(())
}

#[test]
fn what_is_retained_has_no_free() -> Result<()> {
    let (records, kept) = recording(|| {
        Ok::<_, candle_core::Error>(Tracked::new(&PROBE, NODE, zeros()?, Category::OTHER).retain())
    });
    assert_eq!((allocs(&records).len(), frees(&records).len()), (1, 0));
    assert_eq!(storage_id(&kept?), allocs(&records)[0].storage);
    Ok(())
}

/// As a guard that was armed when it opened always writes, and one that was not never does.
#[test]
fn a_free_is_recorded_where_its_allocation_is_whatever_the_level_is_then() -> Result<()> {
    let (records, outcome) = recording(|| {
        let early = Tracked::new(&PROBE, NODE, zeros()?, Category::OTHER);
        PROBE.set_level(Level::TIMING);
        let late = Tracked::new(&PROBE, NODE, zeros()?, Category::OTHER);
        assert!(early.is_recorded() && !late.is_recorded());
        drop(early);
        PROBE.set_level(Level::METADATA);
        drop(late);
        Ok::<_, candle_core::Error>(())
    });
    outcome?;
    let ([alloc], [free]) = (&allocs(&records)[..], &frees(&records)[..]) else {
        panic!("{records:?}")
    };
    assert_eq!(alloc.storage, free.storage);
    Ok(())
}

#[test]
fn all_parameters_are_one_call_and_a_shared_storage_is_one_allocation() -> Result<()> {
    let [head, stem] = [(); 2].map(|()| Var::zeros((2, 8), DType::F64, &Device::Cpu));
    let (head, stem) = (head?, stem?);
    let variables = [("stem.weight", &stem), ("tied.weight", &head), ("head.weight", &head)];
    let mut counts = None;
    let records = recorded(|to| {
        counts = Some(to.candle_parameters(PROBE.name("init"), variables));
    });
    let counts = counts.unwrap();
    assert_eq!((counts.recorded, counts.shared, counts.left_out, counts.bytes), (2, 1, 0, 256));
    let heads = records.iter().filter(|it| it.payload::<Alloc>().is_some());
    let names: Vec<_> = heads.map(|it| it.header().name).collect();
    assert_eq!(names, ["head.weight", "stem.weight"].map(|name| PROBE.name(name)));
    let tensors: Vec<_> = allocs(&records).iter().map(|alloc| alloc.tensor).collect();
    assert_eq!(tensors, [tensor_id(&head), tensor_id(&stem)]);
    Ok(())
}

#[test]
fn room_is_made_before_the_first_allocation_or_not_at_all() -> Result<()> {
    let records = recorded(|to| {
        let tensor = zeros().expect("zeros");
        to.candle_alloc(NODE, NameId::NONE, &tensor, Category::OTHER);
        to.candle_free(NODE, NameId::NONE, &tensor, Category::OTHER);
    });
    assert_eq!(allocs(&records).len(), 1);
    assert_eq!(hold_lifetimes(100), Err(LifetimesInUse));
    Ok(())
}
