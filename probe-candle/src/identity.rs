//! What identifies a candle tensor, as the codes and numbers that records carry.

use std::hash::{Hash, Hasher};

use candle_core::{CpuStorage, DeviceLocation, Storage, Tensor};
use tmrun_probe_core::{DType, DeviceCode, DevicePlace, ProbeRef, StorageId, TensorId};

use crate::lifetimes;

/// The identity of a tensor: candle's own number, which is never used again within the process.
pub fn tensor_id(tensor: &Tensor) -> TensorId {
    number(tensor.id())
}

pub(crate) fn number(id: candle_core::TensorId) -> TensorId {
    let mut number = Number(0);
    id.hash(&mut number);
    TensorId(number.0)
}

/// A hasher that keeps what it is given: candle's id is one `usize` that only its `Hash` shows.
struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not reached while an id is one `usize`. Should it become something else, ids still differ.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = number as u64;
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The storage behind a tensor: its address in the low 48 bits, and in the high 16 the epoch of its
/// lifetime, where that was recorded ([`candle_alloc`](crate::CandleRecorder::candle_alloc),
/// [`Tracked`](crate::Tracked)). Views share it.
///
/// With an epoch two equal ids are one storage (epochs begin again after 65,535 allocations). Without,
/// they are one address, which the next tensor may have as soon as a storage is dropped: then only
/// [`same_storage`] tells.
///
/// It takes the storage's read lock, and waits while another thread writes it (`Var::set`, an
/// in-place operation).
pub fn storage_id(tensor: &Tensor) -> StorageId {
    lifetimes::in_force(address(tensor))
}

/// Whether two tensors are of one storage. Both are here, so their storages are, and one address is one
/// storage: no lifetime has to be recorded for that.
///
/// It takes the read lock of each storage in turn, as [`storage_id`] does.
pub fn same_storage(one: &Tensor, other: &Tensor) -> bool {
    address(one) == address(other)
}

/// Where candle has the storage: on the host's heap, wherever its elements are. No lock is kept.
pub(crate) fn address(tensor: &Tensor) -> usize {
    let (storage, _) = tensor.storage_and_layout();
    std::ptr::from_ref::<Storage>(&storage).addr()
}

/// The bytes that back a tensor on the processor: those of the whole storage, whatever part of it
/// the tensor shows. `None` on an accelerator, whose allocator does not tell.
///
/// It takes the storage's read lock, as [`storage_id`] does.
pub fn storage_bytes(tensor: &Tensor) -> Option<u64> {
    let (storage, _) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Some(cpu_bytes(storage)),
        Storage::Cuda(_) | Storage::Metal(_) => None,
    }
}

fn cpu_bytes(storage: &CpuStorage) -> u64 {
    fn of<T>(elements: &Vec<T>) -> u64 {
        (elements.capacity() * size_of::<T>()) as u64
    }
    match storage {
        CpuStorage::I16(elements) => of(elements),
        CpuStorage::U32(elements) => of(elements),
        CpuStorage::I32(elements) => of(elements),
        CpuStorage::I64(elements) => of(elements),
        CpuStorage::BF16(elements) => of(elements),
        CpuStorage::F16(elements) => of(elements),
        CpuStorage::F32(elements) => of(elements),
        CpuStorage::F64(elements) => of(elements),
        CpuStorage::F8E4M3(elements) => of(elements),
        CpuStorage::U8(elements)
        | CpuStorage::F6E2M3(elements)
        | CpuStorage::F6E3M2(elements)
        | CpuStorage::F4(elements)
        | CpuStorage::F8E8M0(elements) => of(elements),
    }
}

/// The code of an element type.
pub const fn dtype_code(dtype: candle_core::DType) -> DType {
    use candle_core::DType as Candle;
    match dtype {
        Candle::U8 => DType::U8,
        Candle::U32 => DType::U32,
        Candle::I16 => DType::I16,
        Candle::I32 => DType::I32,
        Candle::I64 => DType::I64,
        Candle::BF16 => DType::BF16,
        Candle::F16 => DType::F16,
        Candle::F32 => DType::F32,
        Candle::F64 => DType::F64,
        Candle::F8E4M3 => DType::F8E4M3,
        Candle::F6E2M3 => DType::F6E2M3,
        Candle::F6E3M2 => DType::F6E3M2,
        Candle::F4 => DType::F4,
        Candle::F8E8M0 => DType::F8E8M0,
        // candle may come to have more.
        _ => DType::OTHER,
    }
}

/// The code of a tensor's device, defined in the recording on first use.
pub fn device_code<C>(probe: &ProbeRef<'_, C>, tensor: &Tensor) -> DeviceCode {
    let ordinal = |id: usize| u32::try_from(id).unwrap_or(u32::MAX);
    probe.device_at(match tensor.device().location() {
        DeviceLocation::Cpu => DevicePlace::Cpu,
        DeviceLocation::Cuda { gpu_id } => DevicePlace::Cuda(ordinal(gpu_id)),
        DeviceLocation::Metal { gpu_id } => DevicePlace::Metal(ordinal(gpu_id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Result};

    #[test]
    fn the_id_is_the_number_that_candle_shows() -> Result<()> {
        let tensor = Tensor::zeros(3, candle_core::DType::F32, &Device::Cpu)?;
        assert_eq!(format!("TensorId({})", tensor_id(&tensor).0), format!("{:?}", tensor.id()));
        Ok(())
    }

    #[test]
    fn views_share_a_storage_and_have_ids_of_their_own() -> Result<()> {
        let tensor = Tensor::zeros((2, 3), candle_core::DType::F64, &Device::Cpu)?;
        let (view, copy) = (tensor.narrow(1, 1, 2)?, tensor.copy()?);
        assert_eq!(storage_id(&tensor), storage_id(&view));
        assert_eq!(storage_bytes(&view), Some(48), "the whole storage, not the part that shows");
        assert_ne!(storage_id(&tensor), storage_id(&copy));
        assert_ne!(tensor_id(&tensor), tensor_id(&view));
        assert_eq!(storage_id(&tensor).0 >> 48, 0, "no epoch");
        assert!(same_storage(&tensor, &view) && !same_storage(&tensor, &copy));
        Ok(())
    }

    #[test]
    fn every_element_type_has_a_code_of_the_same_name() {
        use candle_core::DType as Candle;
        let all = [
            Candle::U8,
            Candle::U32,
            Candle::I16,
            Candle::I32,
            Candle::I64,
            Candle::BF16,
            Candle::F16,
            Candle::F32,
            Candle::F64,
            Candle::F8E4M3,
            Candle::F6E2M3,
            Candle::F6E3M2,
            Candle::F4,
            Candle::F8E8M0,
        ];
        for dtype in all {
            assert_eq!(dtype_code(dtype).name(), Some(dtype.as_str()));
        }
    }
}
