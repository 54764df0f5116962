//! Index chunks and the trailer: opening a large file without reading all of it.
//!
//! An index chunk's payload is one [`IndexHead`] and one [`IndexEntry`] for every chunk since the
//! index before it, that index included and itself not. The trailer is the file's last 64 bytes.
//! Neither is needed to read a file: after a crash a reader walks the chunk headers instead.

use super::FileHeader;
use super::chunk::{ChunkHeader, ChunkKind, crc_of, get};
use crate::{DecodeError, LaneId, Ticks};

/// An index is written as soon as there are this many chunks for it to list.
pub const INDEX_EVERY: usize = 1024;
/// The first eight bytes of the trailer.
pub const TRAILER_MAGIC: [u8; 8] = *b"tmrunEND";

/// The first 64 bytes of an index's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHead {
    /// Offset of the index chunk before this one, 0 for none.
    pub previous: u64,
    /// Least tick over all chunks that this index lists.
    pub least: Ticks,
}

/// One chunk, as an index lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the chunk starts in the file.
    pub offset: u64,
    /// Its number.
    pub number: u64,
    /// Position of its first record in its lane's stream.
    pub first_sequence: u64,
    /// Least tick of its records.
    pub least: Ticks,
    /// Greatest tick of its records.
    pub greatest: Ticks,
    /// Least tick of this chunk and of all that this index lists behind it: when it lies after a
    /// moment, no later chunk of the index holds a span that was open then.
    pub running_least: Ticks,
    /// Bytes of its payload.
    pub payload_len: u32,
    /// Its records.
    pub records: u32,
    /// Its lane.
    pub lane: LaneId,
    /// Its kind.
    pub kind: ChunkKind,
}

impl IndexHead {
    /// Bytes of the head.
    pub const SIZE: usize = 64;

    /// Its 64 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.previous.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.least.0.to_le_bytes());
        bytes
    }

    /// The head and the entries of an index's payload, which starts at `offset` in the file.
    ///
    /// Following [`previous`](Self::previous) ends, and no chunk is listed twice: what is decoded
    /// lies before the index, and the entries are in file order and do not overlap.
    ///
    /// # Errors
    ///
    /// Malformed when the payload is not a head and whole entries, or points elsewhere than back.
    pub fn decode(
        payload: &[u8],
        offset: u64,
    ) -> Result<(Self, impl Iterator<Item = IndexEntry> + Clone), DecodeError> {
        let malformed = |what, at, expected, found| {
            let offset = super::offset_add(offset, at);
            Err(DecodeError::Malformed { what, offset, expected, found })
        };
        let (pieces, rest) = payload.as_chunks::<{ IndexEntry::SIZE }>();
        let Some((head, entries)) = pieces.split_first().filter(|_| rest.is_empty()) else {
            let found = payload.len() as u64;
            let expected = (found / Self::SIZE as u64).max(1).saturating_mul(Self::SIZE as u64);
            return malformed("length of an index, a multiple of 64", 0, expected, found);
        };
        let head = Self {
            previous: u64::from_le_bytes(get(head, 0)),
            least: Ticks(u64::from_le_bytes(get(head, 8))),
        };
        let own = offset.saturating_sub(ChunkHeader::SIZE as u64);
        if head.previous != 0 && head.previous >= own {
            return malformed("offset of the previous index", 0, own, head.previous);
        }
        let entries = entries.iter().map(IndexEntry::decode);
        let mut free = FileHeader::SIZE as u64;
        for (i, entry) in entries.clone().enumerate() {
            let at = Self::SIZE.saturating_add(i.saturating_mul(IndexEntry::SIZE));
            if entry.offset < free {
                return malformed("offset of an index entry", at, free, entry.offset);
            }
            free = entry.end();
            if free > own {
                return malformed("end of an index entry", at, own, free);
            }
        }
        Ok((head, entries))
    }
}

impl IndexEntry {
    /// Bytes of an entry.
    pub const SIZE: usize = 64;

    /// The entry of the chunk with this header at `offset`; its running least is its own until
    /// [`IndexEntry::close`] has seen those behind it.
    pub const fn of(header: &ChunkHeader, offset: u64) -> Self {
        Self {
            offset,
            number: header.number,
            first_sequence: header.first_sequence,
            least: header.least,
            greatest: header.greatest,
            running_least: header.least,
            payload_len: header.payload_len,
            records: header.records,
            lane: header.lane,
            kind: header.kind,
        }
    }

    /// Where the chunk ends in the file.
    pub const fn end(&self) -> u64 {
        super::offset_add(self.offset, ChunkHeader::SIZE).saturating_add(self.payload_len as u64)
    }

    /// Fills in the running least of all entries of one index and returns the least over all.
    /// Chunks without records do not count.
    pub fn close(entries: &mut [Self]) -> Ticks {
        let mut least = Ticks(u64::MAX);
        for entry in entries.iter_mut().rev() {
            if entry.kind == ChunkKind::RECORDS {
                least = least.min(entry.least);
            }
            entry.running_least = least;
        }
        least
    }

    /// Its 64 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let words = [
            self.offset,
            self.number,
            self.first_sequence,
            self.least.0,
            self.greatest.0,
            self.running_least.0,
        ];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..52].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.records.to_le_bytes());
        bytes[56..58].copy_from_slice(&self.lane.0.to_le_bytes());
        bytes[58] = self.kind.0;
        bytes
    }

    fn decode(bytes: &[u8; Self::SIZE]) -> Self {
        let word = |at| u64::from_le_bytes(get(bytes, at));
        Self {
            offset: word(0),
            number: word(8),
            first_sequence: word(16),
            least: Ticks(word(24)),
            greatest: Ticks(word(32)),
            running_least: Ticks(word(40)),
            payload_len: u32::from_le_bytes(get(bytes, 48)),
            records: u32::from_le_bytes(get(bytes, 52)),
            lane: LaneId(u16::from_le_bytes(get(bytes, 56))),
            kind: ChunkKind(bytes[58]),
        }
    }
}

/// The last 64 bytes of a finished file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// How many chunks the file has.
    pub chunks: u64,
    /// How many records.
    pub records: u64,
    /// Offset of the last index chunk, 0 for none.
    pub last_index: u64,
    /// Offset of the trailer itself: the file's length less 64.
    pub offset: u64,
}

impl Trailer {
    /// Bytes of the trailer.
    pub const SIZE: usize = 64;

    /// Its 64 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&TRAILER_MAGIC);
        bytes[8..16].copy_from_slice(&self.chunks.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.records.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.last_index.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.offset.to_le_bytes());
        let crc = crc_of(&bytes);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a trailer at the start of `bytes`, which lies at `offset` in the file.
    ///
    /// # Errors
    ///
    /// Truncated below 64 bytes; malformed when magic, CRC or its own offset do not hold, or the
    /// last index does not lie before it.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Self, DecodeError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::SIZE }>() else {
            let (expected, found) = (Self::SIZE as u64, bytes.len() as u64);
            return Err(DecodeError::Truncated { what: "trailer", offset, expected, found });
        };
        let word = |at| u64::from_le_bytes(get(bytes, at));
        let malformed = |what, at, expected, found| {
            let offset = super::offset_add(offset, at);
            Err(DecodeError::Malformed { what, offset, expected, found })
        };
        if word(0) != u64::from_le_bytes(TRAILER_MAGIC) {
            return malformed("trailer magic", 0, u64::from_le_bytes(TRAILER_MAGIC), word(0));
        }
        let (computed, stored) = (crc_of(bytes), u32::from_le_bytes(get(bytes, 60)));
        if computed != stored {
            return malformed("CRC of the trailer", 60, computed.into(), stored.into());
        }
        if word(32) != offset {
            return malformed("offset of the trailer", 32, offset, word(32));
        }
        if word(24) >= offset.max(1) {
            return malformed("offset of the last index, before the trailer", 24, offset, word(24));
        }
        Ok(Self { chunks: word(8), records: word(16), last_index: word(24), offset })
    }
}
