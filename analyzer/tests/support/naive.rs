//! A second reader, as simple as can be, that shares no code with the first: chunk by chunk, up to
//! the first that is not whole.

use super::patch::word;

/// A chunk as the naive reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NaiveChunk {
    /// Where it starts.
    pub offset: usize,
    /// Where the next thing starts.
    pub end: usize,
    /// Its kind.
    pub kind: u8,
    /// Its lane.
    pub lane: u16,
    /// Its records; 0 unless its kind is records.
    pub records: usize,
}

/// The chunks of an undamaged file, or of the undamaged part before the first trouble.
pub fn chunks(file: &[u8]) -> Vec<NaiveChunk> {
    let mut chunks = Vec::new();
    let mut offset = 64;
    while file.len() >= offset + 64 && &file[offset..offset + 4] == b"tmCK" {
        let end = offset + 64 + word(file, offset + 16) as usize;
        let header = &file[offset..offset + 64];
        if file.len() < end
            || crc32(&header[..60]) != word(header, 60)
            || crc32(&file[offset + 64..end]) != word(header, 56)
        {
            break;
        }
        let kind = header[4];
        let lane = u16::from_le_bytes([header[6], header[7]]);
        let records = if kind == 1 { (end - offset - 64) / 64 } else { 0 };
        chunks.push(NaiveChunk { offset, end, kind, lane, records });
        offset = end;
    }
    chunks
}

/// CRC-32 (IEEE), bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xEDB8_8320 };
        }
    }
    !crc
}
