//! Changes to the bytes of a file.

use super::naive::crc32;

/// Computes the CRC in the header of the chunk at `offset` anew.
pub fn header_crc(file: &mut [u8], offset: usize) {
    let crc = crc32(&file[offset..offset + 60]);
    file[offset + 60..offset + 64].copy_from_slice(&crc.to_le_bytes());
}

/// Computes the CRC of the payload of the chunk at `offset` anew, and then the header's.
pub fn payload_crc(file: &mut [u8], offset: usize) {
    let len = word(file, offset + 16) as usize;
    if let Some(payload) = file.get(offset + 64..offset + 64 + len) {
        let crc = crc32(payload);
        file[offset + 56..offset + 60].copy_from_slice(&crc.to_le_bytes());
    }
    header_crc(file, offset);
}

/// Four bytes at `at`.
pub fn word(file: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"))
}

/// Writes four bytes at `at`.
pub fn put_word(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
