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

/// The whole and intact chunk at an offset, if one is there.
fn chunk_at(file: &[u8], offset: usize) -> Option<NaiveChunk> {
    let header = file.get(offset..offset + 64).filter(|header| header.starts_with(b"tmCK"))?;
    let end = offset + 64 + word(header, 16) as usize;
    let payload = file.get(offset + 64..end)?;
    if crc32(&header[..60]) != word(header, 60) || crc32(payload) != word(header, 56) {
        return None;
    }
    let kind = header[4];
    let lane = u16::from_le_bytes([header[6], header[7]]);
    let records = if kind == 1 { payload.len() / 64 } else { 0 };
    Some(NaiveChunk { offset, end, kind, lane, records })
}

/// The chunks of an undamaged file, or of the undamaged part before the first trouble.
pub fn chunks(file: &[u8]) -> Vec<NaiveChunk> {
    let first = chunk_at(file, 64);
    std::iter::successors(first, |chunk| chunk_at(file, chunk.end)).collect()
}

/// Every intact chunk of a damaged file, wherever it stands.
pub fn intact_chunks(file: &[u8]) -> Vec<NaiveChunk> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let chunk = chunk_at(file, at);
        at = chunk.map_or(at + 1, |chunk| chunk.end);
        found.extend(chunk);
    }
    found
}

/// A record, with its lane and position.
pub type NaiveRecord = (u16, u64, [u8; 64]);

/// The records of these chunks, straight from their bytes.
pub fn records_of(file: &[u8], chunks: &[NaiveChunk]) -> Vec<NaiveRecord> {
    let mut all = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == 1) {
        let first = file[chunk.offset + 24..][..8].try_into().expect("eight bytes");
        let payload = &file[chunk.offset + 64..chunk.end];
        for (at, record) in (u64::from_le_bytes(first)..).zip(payload.chunks(64)) {
            all.push((chunk.lane, at, record.try_into().expect("64 bytes")));
        }
    }
    all
}

/// The metadata frames of these chunks, each with its kind and all its bytes.
pub fn frames_of(file: &[u8], chunks: &[NaiveChunk]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == 2) {
        let mut rest = &file[chunk.offset + 64..chunk.end];
        while let Some([low, high, _, _, length @ ..]) = rest.first_chunk::<8>() {
            let kind = u16::from_le_bytes([*low, *high]);
            let end = 8 + u32::from_le_bytes(*length) as usize;
            let Some(frame) = rest.get(..end).filter(|_| kind != 0) else { break };
            all.push((kind, frame.to_vec()));
            rest = &rest[end..];
        }
    }
    all
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
