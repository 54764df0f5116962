//! Walking a file chunk by chunk, past any damage.

use super::{
    CHUNK_MAGIC, ChunkHeader, ChunkKind, FileHeader, Frames, Record, TRAILER_MAGIC, Trailer,
};
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
        self.compare(crc32fast::hash(self.payload))
    }

    /// The same, and hands out the records some at a time, in order, so that all of it takes one pass over
    /// memory. What is made of them counts only if all of the payload holds.
    ///
    /// # Errors
    ///
    /// Malformed when the payload and its CRC differ; else the first error of `each`, which is then
    /// not called again.
    pub fn check_records(
        &self,
        mut each: impl FnMut(&'a [Record]) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut crc = crc32fast::Hasher::new();
        let mut result = Ok(());
        let has_records = self.header.kind == ChunkKind::RECORDS && self.header.is_known();
        for piece in self.payload.chunks(PIECE) {
            // In this order: to look at records is much work a byte, for which memory has time. Adding
            // them up is little, and finds them in the cache.
            if has_records && result.is_ok() {
                result = each(Record::slice(piece).0);
            }
            crc.update(piece);
        }
        self.compare(crc.finalize())?;
        result
    }

    fn compare(&self, found: u32) -> Result<(), DecodeError> {
        let expected = self.header.payload_crc;
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
            ChunkKind::RECORDS if self.header.is_known() => Record::slice(self.payload).0,
            _ => &[],
        }
    }

    /// The payload as metadata frames. Only a metadata chunk has any.
    pub fn frames(&self) -> Frames<'a> {
        let payload = match self.header.kind {
            ChunkKind::META if self.header.is_known() => self.payload,
            _ => &[],
        };
        Frames::new(payload, self.payload_offset())
    }
}

/// Bytes of a payload whose records are looked at before their CRC is computed: many records, and
/// still in the nearest cache.
const PIECE: usize = 8 << 10;

/// A stretch of the file that is no chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where it starts.
    pub offset: u64,
    /// How many bytes, up to the next valid header or the end.
    pub len: u64,
    /// What was wrong at its start.
    pub error: DecodeError,
    /// The valid header at its start, when what is wrong is that the file ends within its payload,
    /// or another chunk begins there: it says which records are lost.
    pub header: Option<ChunkHeader>,
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
/// bytes that are a valid chunk header or trailer, and reports the hole; a header whose payload the
/// file ends in is a hole of its own, which may be followed by chunks again. So is a chunk whose
/// payload is not followed by what belongs there and has the beginning of another chunk in it: bytes
/// of it are gone. It reads each byte a
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

    fn bytes_at(&self, at: usize) -> &'a [u8] {
        self.file.get(at..).unwrap_or_default()
    }

    /// What lies at `at`. The length of damage is not known yet.
    fn look(&self, at: usize) -> Walked<'a> {
        let offset = at as u64;
        let damage = |error| Walked::Damage(Damage { offset, len: 0, error, header: None });
        match self.trailer_at(at) {
            Some(Ok(trailer)) => return Walked::Trailer(trailer),
            Some(Err(error)) => return damage(error),
            None => {}
        }
        let header = match ChunkHeader::decode(self.bytes_at(at), offset) {
            Ok(header) => header,
            Err(error) => return damage(error),
        };
        let rest = self.bytes_at(at.saturating_add(ChunkHeader::SIZE));
        if let Some(payload) = rest.get(..header.payload_len as usize) {
            return Walked::Chunk(Chunk { offset, header, payload });
        }
        let error = DecodeError::Truncated {
            what: "payload",
            offset: super::offset_add(offset, ChunkHeader::SIZE),
            expected: header.payload_len.into(),
            found: rest.len() as u64,
        };
        Walked::Damage(Damage { offset, len: 0, error, header: Some(header) })
    }

    /// The trailer, where its magic is. It is one only at the very end of the file.
    fn trailer_at(&self, at: usize) -> Option<Result<Trailer, DecodeError>> {
        let bytes = self.bytes_at(at);
        bytes.starts_with(&TRAILER_MAGIC).then(|| {
            let trailer = Trailer::decode(bytes, at as u64)?;
            let (expected, found) = (Trailer::SIZE as u64, bytes.len() as u64);
            if found == expected {
                return Ok(trailer);
            }
            let (what, offset) = ("length of the file from the trailer on", at as u64);
            Err(DecodeError::Malformed { what, offset, expected, found })
        })
    }

    /// Whether a valid chunk header or the trailer lies at `at`.
    fn begins_at(&self, at: usize) -> bool {
        ChunkHeader::decode(self.bytes_at(at), at as u64).is_ok()
            || matches!(self.trailer_at(at), Some(Ok(_)))
    }

    /// The next offset from `from` on and before `to` at which a valid chunk header or the trailer
    /// lies. A header is looked at only behind a magic, which cannot overlap another: that is at
    /// most 64 bytes read for every four.
    fn resynchronise(&self, from: usize, to: usize) -> Option<usize> {
        self.bytes_at(from)
            .windows(CHUNK_MAGIC.len())
            .take(to.saturating_sub(from))
            .enumerate()
            .filter(|(_, bytes)| *bytes == CHUNK_MAGIC || TRAILER_MAGIC.starts_with(bytes))
            .map(|(i, _)| from.saturating_add(i))
            .find(|&at| self.begins_at(at))
    }

    /// Where a chunk really ends whose payload reaches to `end`, when that is earlier: nothing that
    /// belongs there is at `end`, and another chunk begins within the payload. Bytes of it are gone.
    fn cut_short(&self, at: usize, end: usize) -> Option<usize> {
        if end == self.file.len() || self.begins_at(end) {
            return None;
        }
        self.resynchronise(at.saturating_add(1), end)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Walked<'a>;

    fn next(&mut self) -> Option<Walked<'a>> {
        let at = self.at;
        if at >= self.file.len() {
            return None;
        }
        let mut walked = self.look(at);
        self.at = match &mut walked {
            Walked::Trailer(_) => self.file.len(),
            &mut Walked::Chunk(chunk) => {
                let payload = at.saturating_add(ChunkHeader::SIZE);
                let end = payload.saturating_add(chunk.payload.len());
                match self.cut_short(at, end) {
                    None => end,
                    Some(next) => {
                        walked = Walked::Damage(short(&chunk, next.saturating_sub(at) as u64));
                        next
                    }
                }
            }
            Walked::Damage(damage) => {
                let end = self.file.len();
                let next = self.resynchronise(at.saturating_add(1), end).unwrap_or(end);
                damage.len = next.saturating_sub(at) as u64;
                next
            }
        };
        Some(walked)
    }
}

/// A chunk of which only so many bytes are there before the next one begins.
const fn short(chunk: &Chunk<'_>, len: u64) -> Damage {
    let error = DecodeError::Malformed {
        what: "payload length, up to where the next chunk begins",
        offset: super::offset_add(chunk.offset, 16),
        expected: len.saturating_sub(ChunkHeader::SIZE as u64),
        found: chunk.header.payload_len as u64,
    };
    Damage { offset: chunk.offset, len, error, header: Some(chunk.header) }
}
