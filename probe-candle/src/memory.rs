//! Storages that come and go: the logical plane.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use candle_core::{Tensor, Var};
use tmrun_probe_core::{Category, Clock, MemoryFact, NameId, Recorder, StorageId};

use crate::identity::{address, device_code, dtype_code, storage_bytes, tensor_id};
use crate::lifetimes;

/// What became of many allocations that were recorded in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryCounts {
    /// Storages that are recorded.
    pub recorded: usize,
    /// Their bytes: of whole storages, whatever part of them shows.
    pub bytes: u64,
    /// Tensors whose storage another of them has already.
    pub shared: usize,
    /// Storages that are not recorded: they are on an accelerator, whose allocator does not tell, or
    /// are not wanted.
    pub left_out: usize,
}

/// A storage whose allocation is recorded, and its bytes. (It is in a trait that is sealed, and not to be
/// had outside.)
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub(crate) storage: StorageId,
    pub(crate) bytes: u64,
}

/// Begins the lifetime of the storage behind a tensor. `None` where its bytes are not known.
pub(crate) fn hold(tensor: &Tensor) -> Option<Held> {
    let bytes = storage_bytes(tensor)?;
    Some(Held { storage: lifetimes::begin(address(tensor), tensor_id(tensor)), bytes })
}

/// The fact that a storage came or goes.
pub(crate) fn fact<'t, C: Clock>(
    to: &Recorder<'_, C>,
    op: NameId,
    (storage, bytes): (StorageId, u64),
    tensor: &'t Tensor,
    category: Category,
) -> MemoryFact<'t> {
    MemoryFact {
        storage,
        tensor: tensor_id(tensor),
        bytes,
        op,
        shape: Some(tensor.dims()),
        dtype: dtype_code(tensor.dtype()),
        device: device_code(&to.probe(), tensor),
        category,
    }
}

/// Records the allocation of the storage behind a tensor, if it is wanted and its bytes are known.
pub(crate) fn alloc<C: Clock>(
    to: &Recorder<'_, C>,
    (node, op): (NameId, NameId),
    tensor: &Tensor,
    category: Category,
) -> Option<Held> {
    if !to.wants(node) {
        return None;
    }
    let held = hold(tensor)?;
    to.alloc(node, &fact(to, op, (held.storage, held.bytes), tensor, category));
    Some(held)
}

/// Records a free, and ends the lifetime: in this order, so that what comes to be at the address is
/// recorded later.
pub(crate) fn free<C: Clock>(to: &Recorder<'_, C>, node: NameId, fact: &MemoryFact<'_>) {
    to.free(node, fact);
    lifetimes::end(fact.storage);
}

/// Runs `record` on one tensor of each storage, by name. It gives the bytes that it recorded.
pub(crate) fn each_storage<N: AsRef<str>, V: Borrow<Var>, E>(
    tensors: impl IntoIterator<Item = (N, V)>,
    mut record: impl FnMut(&str, &Tensor) -> Result<Option<u64>, E>,
) -> Result<MemoryCounts, E> {
    let mut tensors: Vec<_> = tensors.into_iter().collect();
    tensors.sort_by(|(one, _), (other, _)| one.as_ref().cmp(other.as_ref()));
    // All of them are held here, so one address is one storage.
    let mut seen = BTreeSet::new();
    let mut counts = MemoryCounts::default();
    for (name, tensor) in &tensors {
        let tensor = tensor.borrow().as_tensor();
        if !seen.insert(address(tensor)) {
            counts.shared += 1;
            continue;
        }
        match record(name.as_ref(), tensor)? {
            Some(bytes) => {
                counts.recorded += 1;
                counts.bytes = counts.bytes.saturating_add(bytes);
            }
            None => counts.left_out += 1,
        }
    }
    Ok(counts)
}
