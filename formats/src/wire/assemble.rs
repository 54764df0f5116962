//! Assembling a file: the numbers of its chunks, its index and its trailer. It writes nothing
//! itself: it hands out headers, and is told what was written.

use super::{
    ChunkHeader, ChunkKind, FileHeader, INDEX_EVERY, IndexEntry, IndexHead, Record, Trailer,
};
use crate::{LaneId, SpanId, Ticks};

/// What a file holds so far. One header at a time: ask for it, write it and its payload, then
/// [`commit`](Self::commit) it; a header whose write failed is forgotten by asking for another.
pub struct Assembler {
    offset: u64,
    number: u64,
    records: u64,
    last_index: u64,
    pending: usize,
    entries: [IndexEntry; INDEX_EVERY],
}

/// Where the records of a chunk belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The lane.
    pub lane: LaneId,
    /// Position of the first record in the lane's stream.
    pub sequence: u64,
    /// A recent span id of the lane, in full: see [`ChunkHeader::first_span`].
    pub span: SpanId,
}

impl Assembler {
    /// A file whose header has been written, and nothing else.
    pub const fn new() -> Self {
        const EMPTY: IndexEntry = IndexEntry {
            offset: 0,
            number: 0,
            first_sequence: 0,
            least: Ticks(0),
            greatest: Ticks(0),
            running_least: Ticks(0),
            payload_len: 0,
            records: 0,
            lane: LaneId(0),
            kind: ChunkKind(0),
        };
        Self {
            offset: FileHeader::SIZE as u64,
            number: 0,
            records: 0,
            last_index: 0,
            pending: 0,
            entries: [EMPTY; INDEX_EVERY],
        }
    }

    /// Where the next chunk starts: the length of the file so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// How many records have been written.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The header of a chunk of these records: one or two slices of a ring, in sequence.
    ///
    /// # Panics
    ///
    /// When the records are 4 GiB or more.
    pub fn records_header(&self, place: Place, slices: [&[Record]; 2]) -> ChunkHeader {
        let mut crc = crc32fast::Hasher::new();
        let (mut least, mut greatest, mut count) = (Ticks(u64::MAX), Ticks(0), 0);
        for slice in slices {
            crc.update(zerocopy::IntoBytes::as_bytes(slice));
            count += slice.len();
            for record in slice {
                let (first, last) = record.edges();
                least = least.min(first);
                greatest = greatest.max(last);
            }
        }
        ChunkHeader {
            kind: ChunkKind::RECORDS,
            flags: 0,
            lane: place.lane,
            number: self.number,
            payload_len: payload_len(count.saturating_mul(super::RECORD_SIZE)),
            records: count as u32,
            first_sequence: place.sequence,
            first_span: place.span.0,
            least,
            greatest,
            payload_crc: crc.finalize(),
        }
    }

    /// The header of a chunk of metadata frames. The payload's length is a multiple of 64; what
    /// frames do not fill is zero.
    ///
    /// # Panics
    ///
    /// When the payload is no multiple of 64, or 4 GiB or more: no reader would take the chunk.
    pub fn meta_header(&self, payload: &[u8]) -> ChunkHeader {
        self.meta_header_of(payload.len(), crc32fast::hash(payload))
    }

    /// The same for a payload of this length and CRC-32 that its writer never holds whole.
    pub fn meta_header_of(&self, len: usize, crc: u32) -> ChunkHeader {
        self.plain_header(ChunkKind::META, len, 0, crc)
    }

    /// The header of a chunk that another file has, as the next one of this file. The payload stays
    /// as it is.
    pub const fn copied_header(&self, header: &ChunkHeader) -> ChunkHeader {
        ChunkHeader { number: self.number, ..*header }
    }

    fn plain_header(&self, kind: ChunkKind, len: usize, entries: usize, crc: u32) -> ChunkHeader {
        ChunkHeader {
            kind,
            flags: 0,
            lane: LaneId::RECORDER,
            number: self.number,
            payload_len: payload_len(len),
            records: entries as u32,
            first_sequence: 0,
            first_span: 0,
            least: Ticks(u64::MAX),
            greatest: Ticks(0),
            payload_crc: crc,
        }
    }

    /// Whether the next chunk has to be an index.
    pub const fn index_due(&self) -> bool {
        self.pending == INDEX_EVERY
    }

    /// The header of an index of all chunks since the last one, and the pieces of its payload. The
    /// caller writes both and commits the header.
    pub fn index(&mut self) -> (ChunkHeader, impl Iterator<Item = [u8; 64]> + '_) {
        let entries = self.entries.get_mut(..self.pending).unwrap_or_default();
        let head = IndexHead { previous: self.last_index, least: IndexEntry::close(entries) };
        let count = entries.len();
        let entries = self.entries.get(..count).unwrap_or_default();
        let pieces = core::iter::once(head.encode()).chain(entries.iter().map(IndexEntry::encode));
        let mut crc = crc32fast::Hasher::new();
        pieces.clone().for_each(|piece| crc.update(&piece));
        let len = (count + 1) * IndexEntry::SIZE;
        (self.plain_header(ChunkKind::INDEX, len, count, crc.finalize()), pieces)
    }

    /// The chunk with this header, the last one asked for, has been written.
    ///
    /// # Panics
    ///
    /// When a chunk that is not an index is committed while an [index is due](Self::index_due).
    pub fn commit(&mut self, header: &ChunkHeader) {
        if header.kind == ChunkKind::INDEX {
            self.last_index = self.offset;
            self.pending = 0;
        }
        assert!(!self.index_due(), "an index is due before the next chunk");
        self.entries[self.pending] = IndexEntry::of(header, self.offset);
        self.pending += 1;
        if header.kind == ChunkKind::RECORDS {
            self.records += u64::from(header.records);
        }
        self.number += 1;
        self.offset += ChunkHeader::SIZE as u64 + u64::from(header.payload_len);
    }

    /// The trailer, to be written behind the last chunk (an index, usually).
    pub const fn trailer(&self) -> Trailer {
        let Self { number, records, last_index, offset, .. } = *self;
        Trailer { chunks: number, records, last_index, offset }
    }
}

/// A payload's length as a header holds it.
fn payload_len(len: usize) -> u32 {
    assert!(len.is_multiple_of(ChunkHeader::SIZE), "a payload is a multiple of 64 bytes");
    u32::try_from(len).expect("a payload is shorter than 4 GiB")
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Assembler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Assembler")
            .field("offset", &self.offset)
            .field("number", &self.number)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::wire::{RecordHeader, Scalar, Span};

    const PLACE: Place = Place { lane: LaneId(2), sequence: 9, span: SpanId(5) };

    #[test]
    fn two_slices_make_the_header_that_one_would() {
        let span = |start, end| {
            let header =
                RecordHeader { ticks: Ticks(start), ..RecordHeader::of::<Span>(Level::TIMING) };
            Record::new(header, &Span { end: Ticks(end), ..Span::default() })
        };
        let records = [span(30, 50), span(10, 20), span(40, 41)];
        let whole = Assembler::new().records_header(PLACE, [&records, &[]]);
        for at in 0..=records.len() {
            let (a, b) = records.split_at(at);
            assert_eq!(Assembler::new().records_header(PLACE, [a, b]), whole);
        }
        assert_eq!((whole.least, whole.greatest), (Ticks(10), Ticks(50)));
        assert_eq!((whole.records, whole.payload_len), (3, 192));
    }

    #[test]
    fn a_header_that_is_not_committed_leaves_no_trace() {
        let mut assembler = Assembler::new();
        let record = Record::new(RecordHeader::of::<Scalar>(Level::PULSE), &Scalar::default());
        let refused = assembler.records_header(PLACE, [&[record], &[]]);
        assert_eq!(assembler.meta_header(&[0; 64]).number, refused.number);
        let _ = assembler.index();
        assert_eq!((assembler.offset(), assembler.records()), (64, 0));
        let again = assembler.records_header(PLACE, [&[record], &[]]);
        assert_eq!(again, refused);
        assembler.commit(&again);
        assert_eq!((assembler.offset(), assembler.records()), (192, 1));
        assert_eq!(assembler.trailer().chunks, 1);
    }

    #[test]
    #[should_panic(expected = "multiple of 64")]
    fn a_payload_that_no_reader_would_take_is_refused() {
        let _ = Assembler::new().meta_header(&[0; 65]);
    }
}
