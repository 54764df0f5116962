//! The index and the trailer, held against the walk.

use tmrun_formats::DecodeError;
use tmrun_formats::wire::{
    Chunk, ChunkHeader, ChunkKind, Chunks, INDEX_EVERY, IndexEntry, IndexHead, Walked,
};

use super::error::Finding;
use super::recording::Recording;

impl Recording<'_> {
    pub(super) fn check_indexes(&self, findings: &mut Vec<Finding>) {
        let file = self.bytes();
        let (mut previous, mut listed) = (0, Chunks::new(file));
        for chunk in headers(Chunks::new(file)) {
            let header = chunk.header;
            let is_index = header.kind == ChunkKind::INDEX && header.is_known();
            if !is_index || chunk.check().is_err() {
                continue;
            }
            // Behind damage what the index lists may be among what is damaged.
            let whole = self.whole_before(chunk.offset);
            let since = headers(listed).take_while(|listed| listed.offset < chunk.offset);
            if let Err(error) = check_index(&chunk, previous, since, whole) {
                findings.push(Finding::in_chunk(error, header.lane, header.number));
            }
            (previous, listed) = (chunk.offset, Chunks::from(file, chunk.offset));
        }
    }

    /// Whether nothing before this offset is damaged.
    fn whole_before(&self, offset: u64) -> bool {
        self.findings().first().is_none_or(|finding| finding.error.offset() > offset)
    }

    pub(super) fn check_trailer(&self, findings: &mut Vec<Finding>) {
        let Some(trailer) = self.trailer().filter(|_| self.findings().is_empty()) else { return };
        let chunks = self.chunk_counts();
        let claims = [
            ("chunks that the trailer counts", 8, chunks.all, trailer.chunks),
            ("records that the trailer counts", 16, chunks.records_said, trailer.records),
            ("offset of the last index in the trailer", 24, chunks.last_index, trailer.last_index),
        ];
        for (what, at, expected, found) in claims {
            if expected != found {
                let offset = trailer.offset.saturating_add(at);
                let error = DecodeError::Malformed { what, offset, expected, found };
                findings.push(Finding::new(error));
            }
        }
    }
}

/// The chunks of a walk. They are read from the file again: none is kept.
fn headers(walk: Chunks<'_>) -> impl Iterator<Item = Chunk<'_>> {
    walk.filter_map(|walked| match walked {
        Walked::Chunk(chunk) => Some(chunk),
        _ => None,
    })
}

/// Holds one index against the chunks that it lists: all since the index before it, that one
/// included. When not all of the file before it is whole, entries that have no chunk are the
/// damaged ones.
fn check_index<'a>(
    index: &Chunk<'_>,
    previous: u64,
    listed: impl Iterator<Item = Chunk<'a>>,
    whole: bool,
) -> Result<(), DecodeError> {
    let base = index.payload_offset();
    let (head, entries) = IndexHead::decode(index.payload, base)?;
    let differs = |what, at: u64, expected, found| {
        let offset = base.saturating_add(at);
        Err(DecodeError::Malformed { what, offset, expected, found })
    };
    let count = entries.clone().count();
    if count > INDEX_EVERY {
        return differs("entries of an index", 0, INDEX_EVERY as u64, count as u64);
    }
    // The index before this one may be damaged: then not all that was found since is listed here.
    let first = entries.clone().next().filter(|_| !whole).map_or(0, |entry| entry.offset);
    let listed = listed.skip_while(|chunk| chunk.offset < first);
    let mut walked = listed.map(|chunk| (chunk.offset, chunk.header)).peekable();
    let place = |i: u64| i.saturating_add(1).saturating_mul(IndexEntry::SIZE as u64);
    let mut closed: Vec<IndexEntry> = Vec::new();
    for (i, entry) in (0_u64..).zip(entries.clone()) {
        if let Some((offset, header)) = walked.next_if(|&(offset, _)| offset <= entry.offset) {
            if offset != entry.offset {
                return differs("offset of an index entry", place(i), offset, entry.offset);
            }
            check_entry(&entry, &header, base.saturating_add(place(i)))?;
        } else if whole {
            return differs("an index entry without a chunk", place(i), 0, entry.offset);
        }
        closed.push(entry);
    }
    if let Some((offset, _)) = walked.next() {
        return differs("a chunk that the index does not list", 0, offset, 0);
    }
    if whole && head.previous != previous {
        return differs("offset of the previous index", 0, previous, head.previous);
    }
    let least = IndexEntry::close(&mut closed);
    if head.least != least {
        return differs("least tick of the index", 8, least.0, head.least.0);
    }
    for ((i, entry), closed) in (0_u64..).zip(entries).zip(&closed) {
        let (expected, found) = (closed.running_least.0, entry.running_least.0);
        if expected != found {
            let at = place(i).saturating_add(40);
            return differs("running least tick of an index entry", at, expected, found);
        }
    }
    Ok(())
}

/// Holds an entry against the header of its chunk; `offset` is where the entry lies in the file.
fn check_entry(entry: &IndexEntry, header: &ChunkHeader, offset: u64) -> Result<(), DecodeError> {
    let fields: [(&'static str, u64, u64, u64); 8] = [
        ("chunk number in the index", 8, header.number, entry.number),
        ("first position in the index", 16, header.first_sequence, entry.first_sequence),
        ("least tick in the index", 24, header.least.0, entry.least.0),
        ("greatest tick in the index", 32, header.greatest.0, entry.greatest.0),
        ("payload length in the index", 48, header.payload_len.into(), entry.payload_len.into()),
        ("records in the index", 52, header.records.into(), entry.records.into()),
        ("lane in the index", 56, header.lane.0.into(), entry.lane.0.into()),
        ("chunk kind in the index", 58, header.kind.0.into(), entry.kind.0.into()),
    ];
    for (what, at, expected, found) in fields {
        if expected != found {
            let offset = offset.saturating_add(at);
            return Err(DecodeError::Malformed { what, offset, expected, found });
        }
    }
    Ok(())
}
