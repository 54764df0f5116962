//! Walking a file chunk by chunk, past any damage.

use super::{CHUNK_MAGIC, ChunkHeader, FileHeader, Record, TRAILER_MAGIC, Trailer};
use crate::DecodeError;

/// A chunk in place: its header held, its payload not yet held against its CRC.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Where its header starts in the file.
    pub offset: u64,
    /// Its header.
    pub header: ChunkHeader,
    /// Its payload, all of it.
    pub payload: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Where the payload starts in the file.
    pub const fn payload_offset(&self) -> u64 {
        super::offset_add(self.offset, ChunkHeader::SIZE)
    }

    /// Holds the payload against its CRC.
    ///
    /// # Errors
    ///
    /// Malformed when they differ.
    pub fn check(&self) -> Result<(), DecodeError> {
        let (expected, found) = (self.header.payload_crc, crc32fast::hash(self.payload));
        if expected == found {
            return Ok(());
        }
        let (what, offset) = ("CRC of the payload", self.payload_offset());
        let (expected, found) = (expected.into(), found.into());
        Err(DecodeError::Malformed { what, offset, expected, found })
    }

    /// The payload as records. Only a records chunk has any.
    pub fn records(&self) -> &'a [Record] {
        match self.header.kind {
            super::ChunkKind::RECORDS => Record::slice(self.payload).0,
            _ => &[],
        }
    }
}

/// A stretch of the file that is no chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where it starts.
    pub offset: u64,
    /// How many bytes, up to the next valid header or the end.
    pub len: u64,
    /// What was wrong at its start.
    pub error: DecodeError,
}

/// What a walk finds next.
#[derive(Debug, Clone, Copy)]
pub enum Walked<'a> {
    /// A chunk with a valid header and all of its payload.
    Chunk(Chunk<'a>),
    /// Bytes that are no chunk.
    Damage(Damage),
    /// The trailer: the file was finished.
    Trailer(Trailer),
}

/// Walks the chunks behind the file header, in file order. After damage it goes on at the next
/// bytes that are a valid chunk header or trailer, and reports the hole. It reads each byte a
/// bounded number of times, and it always ends.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// A walk over a whole file, whose first 64 bytes are its header.
    pub const fn new(file: &'a [u8]) -> Self {
        Self { file, at: FileHeader::SIZE }
    }

    /// A walk from `offset` on; what lies before is not looked at.
    pub fn from(file: &'a [u8], offset: u64) -> Self {
        Self { file, at: usize::try_from(offset).unwrap_or(usize::MAX) }
    }

    fn chunk_at(&self, at: usize) -> Result<Chunk<'a>, DecodeError> {
        let bytes = self.file.get(at..).unwrap_or_default();
        let offset = at as u64;
        let header = ChunkHeader::decode(bytes, offset)?;
        let payload = bytes.get(ChunkHeader::SIZE..).unwrap_or_default();
        match payload.get(..header.payload_len as usize) {
            Some(payload) => Ok(Chunk { offset, header, payload }),
            None => Err(DecodeError::Truncated {
                what: "payload",
                offset: super::offset_add(offset, ChunkHeader::SIZE),
                expected: header.payload_len.into(),
                found: payload.len() as u64,
            }),
        }
    }

    fn trailer_at(&self, at: usize) -> Option<Trailer> {
        let bytes = self.file.get(at..)?;
        (bytes.len() == Trailer::SIZE).then(|| Trailer::decode(bytes, at as u64).ok()).flatten()
    }

    /// The next offset from `from` on at which a chunk or the trailer begins, else the end.
    fn resynchronise(&self, from: usize) -> usize {
        let rest = self.file.get(from..).unwrap_or_default();
        rest.windows(CHUNK_MAGIC.len())
            .enumerate()
            .filter(|(_, bytes)| *bytes == CHUNK_MAGIC || TRAILER_MAGIC.starts_with(bytes))
            .map(|(i, _)| from.saturating_add(i))
            .find(|&at| self.chunk_at(at).is_ok() || self.trailer_at(at).is_some())
            .unwrap_or(self.file.len())
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Walked<'a>;

    fn next(&mut self) -> Option<Walked<'a>> {
        let at = self.at;
        if at >= self.file.len() {
            return None;
        }
        if let Some(trailer) = self.trailer_at(at) {
            self.at = self.file.len();
            return Some(Walked::Trailer(trailer));
        }
        match self.chunk_at(at) {
            Ok(chunk) => {
                self.at = at + ChunkHeader::SIZE + chunk.payload.len();
                Some(Walked::Chunk(chunk))
            }
            Err(error) => {
                self.at = self.resynchronise(at.saturating_add(1));
                let (offset, len) = (at as u64, self.at.saturating_sub(at) as u64);
                Some(Walked::Damage(Damage { offset, len, error }))
            }
        }
    }
}
