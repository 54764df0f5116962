//! The chunk header: 64 bytes before every payload.

use crate::{DecodeError, LaneId, Ticks, codes::codes};

/// The first four bytes of every chunk.
pub const CHUNK_MAGIC: [u8; 4] = *b"tmCK";

codes! {
    /// What a chunk's payload is.
    ChunkKind {
        /// Records of one lane, in sequence.
        RECORDS = 1 "records",
        /// Metadata frames.
        META = 2 "meta",
        /// An index of the chunks before it.
        INDEX = 3 "index",
        /// Bounded tensor data.
        BLOB = 4 "blob",
    }
}

/// The 64 bytes before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// What the payload is.
    pub kind: ChunkKind,
    /// Written as 0. A bit that a newer version defines changes how the payload is read: see
    /// [`is_known`](Self::is_known).
    pub flags: u8,
    /// The lane whose records it holds; 0xFFFF for metadata and index.
    pub lane: LaneId,
    /// Position among the chunks of the file, from 0.
    pub number: u64,
    /// Bytes of the payload, a multiple of 64.
    pub payload_len: u32,
    /// Records in the payload.
    pub records: u32,
    /// Position of the first record in its lane's stream, in full.
    pub first_sequence: u64,
    /// A recent span id of the lane, in full: what the low halves in the records are completed
    /// from, see [`span_of`](Self::span_of).
    pub first_span: u64,
    /// Least tick over all edges of the records.
    pub least: Ticks,
    /// Greatest tick over all edges of the records.
    pub greatest: Ticks,
    /// CRC-32 of the payload.
    pub payload_crc: u32,
}

impl ChunkHeader {
    /// Bytes of the header; chunks and payloads are multiples of it.
    pub const SIZE: usize = 64;

    /// Its 64 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4] = self.kind.0;
        bytes[5] = self.flags;
        bytes[6..8].copy_from_slice(&self.lane.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.records.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_span.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.least.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.greatest.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc_of(&bytes);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`, which lies at `offset` in the file.
    ///
    /// # Errors
    ///
    /// Truncated below 64 bytes; malformed when magic, CRC or the payload's length do not hold.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Self, DecodeError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::SIZE }>() else {
            let (expected, found) = (Self::SIZE as u64, bytes.len() as u64);
            return Err(DecodeError::Truncated { what: "chunk header", offset, expected, found });
        };
        let malformed = |what, at, expected: u32, found: u32| {
            let (expected, found) = (expected.into(), found.into());
            let offset = super::offset_add(offset, at);
            Err(DecodeError::Malformed { what, offset, expected, found })
        };
        let magic = u32::from_le_bytes(get(bytes, 0));
        if magic != u32::from_le_bytes(CHUNK_MAGIC) {
            return malformed("chunk magic", 0, u32::from_le_bytes(CHUNK_MAGIC), magic);
        }
        let (computed, stored) = (crc_of(bytes), u32::from_le_bytes(get(bytes, 60)));
        if computed != stored {
            return malformed("CRC of the chunk header", 60, computed, stored);
        }
        let payload_len = u32::from_le_bytes(get(bytes, 16));
        if payload_len % Self::SIZE as u32 != 0 {
            let expected = payload_len / Self::SIZE as u32 * Self::SIZE as u32;
            return malformed("payload length, a multiple of 64", 16, expected, payload_len);
        }
        let kind = ChunkKind(bytes[4]);
        let records = u32::from_le_bytes(get(bytes, 20));
        let flags = bytes[5];
        let expected = payload_len / super::RECORD_SIZE as u32;
        if kind == ChunkKind::RECORDS && flags == 0 && records != expected {
            return malformed("record count of the payload", 20, expected, records);
        }
        Ok(Self {
            kind,
            flags,
            lane: LaneId(u16::from_le_bytes(get(bytes, 6))),
            number: u64::from_le_bytes(get(bytes, 8)),
            payload_len,
            records,
            first_sequence: u64::from_le_bytes(get(bytes, 24)),
            first_span: u64::from_le_bytes(get(bytes, 32)),
            least: Ticks(u64::from_le_bytes(get(bytes, 40))),
            greatest: Ticks(u64::from_le_bytes(get(bytes, 48))),
            payload_crc: u32::from_le_bytes(get(bytes, 56)),
        })
    }

    /// Whether this version knows how to read the payload. A reader skips and counts a chunk of
    /// an unknown kind or with an unknown flag.
    pub const fn is_known(&self) -> bool {
        self.flags == 0 && self.kind.name().is_some()
    }

    /// The full id of the enclosing span whose low half a record of this chunk carries: the id
    /// nearest to `first_span` that ends in it, never below 0 or above 2^64. 0 stays none, which is
    /// why no span's id has 0 for its low half.
    ///
    /// It is wrong only for a span that stayed open while its lane opened 2^31 others, so a span
    /// with that low half that is known to have been open at the record's tick goes first. (A Span
    /// record's own id is not completed: the other half is in its payload.)
    #[inline]
    pub const fn span_of(&self, low: u32) -> crate::SpanId {
        crate::SpanId(self.first_span).nearest(low)
    }
}

/// CRC-32 (IEEE) of the first 60 of 64 bytes.
pub(super) fn crc_of(bytes: &[u8; 64]) -> u32 {
    crc32fast::hash(&bytes[..60])
}

/// `N` bytes at `at`, which together lie within the 64 (the callers' offsets are constants).
pub(super) fn get<const N: usize>(bytes: &[u8; 64], at: usize) -> [u8; N] {
    core::array::from_fn(|i| bytes[at + i])
}
