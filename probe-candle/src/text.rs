//! Identities as the texts that sessions compare, written without an allocation.

use std::fmt::{Display, Write};

use candle_core::{DeviceLocation, Tensor};
use tmrun_probe_core::{StorageId, TensorId};

use crate::identity::{storage_id, tensor_id};

/// The longest: an address and an epoch, `storage:0x` and 12 digits, `#` and five.
const LENGTH: usize = 32;

/// A short text of ASCII.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Text {
    fn of(what: impl Display) -> Self {
        let mut text = Self { bytes: [0; LENGTH], length: 0 };
        // None is longer; what were to be would lack its end and nothing else.
        let _ = write!(text, "{what}");
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length.saturating_add(text.len());
        let room = self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// A tensor, as candle shows its identity.
pub(crate) fn of_tensor(tensor: &Tensor) -> Text {
    let TensorId(number) = tensor_id(tensor);
    Text::of(format_args!("TensorId({number})"))
}

/// A storage: its address, and its epoch where it has one.
pub(crate) fn of_storage(StorageId(id): StorageId) -> Text {
    let (address, epoch) = (id & ((1 << 48) - 1), id >> 48);
    match epoch {
        0 => Text::of(format_args!("storage:{address:#x}")),
        _ => Text::of(format_args!("storage:{address:#x}#{epoch}")),
    }
}

/// The storage behind a tensor.
pub(crate) fn of_storage_of(tensor: &Tensor) -> Text {
    of_storage(storage_id(tensor))
}

/// A device.
pub(crate) fn of_device(location: DeviceLocation) -> Text {
    match location {
        DeviceLocation::Cpu => Text::of("cpu"),
        DeviceLocation::Cuda { gpu_id } => Text::of(format_args!("cuda:{gpu_id}")),
        DeviceLocation::Metal { gpu_id } => Text::of(format_args!("metal:{gpu_id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_identities_fit() {
        let storage = of_storage(StorageId(u64::MAX));
        assert_eq!(storage.as_str(), "storage:0xffffffffffff#65535");
        assert_eq!(of_storage(StorageId(0x5000)).as_str(), "storage:0x5000");
        assert_eq!(Text::of(format_args!("TensorId({})", u64::MAX)).as_str().len(), 30);
        let gpu_id = usize::MAX;
        let device = of_device(DeviceLocation::Metal { gpu_id });
        assert_eq!(device.as_str(), format!("metal:{gpu_id}"));
    }
}
