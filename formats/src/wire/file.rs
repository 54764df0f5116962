//! The file header: the first 64 bytes.

use super::chunk::{crc_of, get};
use crate::{DecodeError, RunId};

/// The first eight bytes of every `.tmrun`.
pub const FILE_MAGIC: [u8; 8] = *b"\x89TMRUN\r\n";
/// The version of the format that this crate writes, and the newest that it reads.
pub const VERSION: u16 = 1;

const WHAT: &str = "file header";

/// The first 64 bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// The run that the file belongs to.
    pub run: RunId,
    /// When the file was created, in nanoseconds since 1970-01-01 UTC.
    pub created_ns: u64,
    /// Nominal rate of the recording clock; calibration frames refine it.
    pub ticks_per_second: u64,
}

impl FileHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 64;

    /// Its 64 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(super::RECORD_SIZE as u16).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.run.0);
        bytes[32..40].copy_from_slice(&self.created_ns.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.ticks_per_second.to_le_bytes());
        let crc = crc_of(&bytes);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// Truncated below 64 bytes; malformed when magic or CRC do not hold, or version or record size
    /// are smaller than any that was ever written; unsupported when they are greater than the ones
    /// known here. (Magic, version, record size and CRC keep their places in every version.)
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::SIZE }>() else {
            let (expected, found) = (Self::SIZE as u64, bytes.len() as u64);
            return Err(DecodeError::Truncated { what: WHAT, offset: 0, expected, found });
        };
        let malformed = |what, offset, expected, found| {
            Err(DecodeError::Malformed { what, offset, expected, found })
        };
        let magic = u64::from_le_bytes(get(bytes, 0));
        if magic != u64::from_le_bytes(FILE_MAGIC) {
            return malformed("file magic", 0, u64::from_le_bytes(FILE_MAGIC), magic);
        }
        let stored = u32::from_le_bytes(get(bytes, 60));
        let computed = crc_of(bytes);
        if computed != stored {
            return malformed("CRC of the file header", 60, computed.into(), stored.into());
        }
        let known = [("file version", 8, VERSION), ("record size", 10, super::RECORD_SIZE as u16)];
        for (what, offset, expected) in known {
            let found = u16::from_le_bytes(get(bytes, offset));
            let (newer, offset) = (found > expected, offset as u64);
            let (expected, found) = (expected.into(), found.into());
            if newer {
                return Err(DecodeError::Unsupported { what, offset, expected, found });
            } else if found != expected {
                return malformed(what, offset, expected, found);
            }
        }
        Ok(Self {
            run: RunId(get(bytes, 16)),
            created_ns: u64::from_le_bytes(get(bytes, 32)),
            ticks_per_second: u64::from_le_bytes(get(bytes, 40)),
        })
    }
}
