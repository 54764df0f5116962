//! A file of thousands of chunks, opened from its end.

use tmrun_formats::wire::*;
use tmrun_formats::{LaneId, Level, SpanId, Ticks};

use crate::wire_support::File;

/// A file of one-record chunks; the record of chunk `i` is at tick `i`, but each hundredth is a
/// span that began long before.
fn long(chunks: u64) -> Vec<u8> {
    let mut file = File::new();
    for i in 0..chunks {
        if file.assembler.index_due() {
            file.index();
        }
        let ticks = Ticks(if i % 100 == 99 { i.saturating_sub(1_500) } else { i });
        let header = RecordHeader { ticks, ..RecordHeader::of::<Span>(Level::TIMING) };
        let span = Span { end: Ticks(i), ..Span::default() };
        file.records(LaneId(0), i, SpanId(1), &[Record::new(header, &span)]);
    }
    if file.assembler.index_due() {
        file.index();
    }
    file.finish()
}

/// The entries of all indexes, from the last to the first, and their heads.
fn indexes(file: &[u8]) -> Vec<(u64, IndexHead, Vec<IndexEntry>)> {
    let at = file.len() - Trailer::SIZE;
    let trailer = Trailer::decode(&file[at..], at as u64).expect("a trailer");
    let (mut found, mut next) = (Vec::new(), trailer.last_index);
    while next != 0 {
        let Some(Walked::Chunk(chunk)) = Chunks::from(file, next).next() else {
            panic!("an index at {next}")
        };
        chunk.check().expect("whole");
        let (head, entries) =
            IndexHead::decode(chunk.payload, chunk.payload_offset()).expect("valid");
        let entries: Vec<IndexEntry> = entries.collect();
        assert_eq!(chunk.header.records as usize, entries.len());
        found.push((next, head, entries));
        next = head.previous;
    }
    found
}

#[test]
fn every_chunk_is_listed_once_and_the_last_index_by_the_trailer() {
    for chunks in [0, 1, 1_022, 1_023, 1_024, 1_025, 2_046, 2_047, 2_500] {
        let file = long(chunks);
        let found = indexes(&file);
        let last = found.first().expect("finished files have an index").0;
        let mut listed: Vec<IndexEntry> = found.iter().flat_map(|(_, _, e)| e.clone()).collect();
        listed.sort_by_key(|entry| entry.offset);
        let mut walked = Vec::new();
        for piece in Chunks::new(&file) {
            match piece {
                Walked::Chunk(chunk) => walked.push(IndexEntry::of(&chunk.header, chunk.offset)),
                Walked::Damage(damage) => panic!("{damage:?}"),
                Walked::Trailer(trailer) => {
                    assert_eq!((trailer.records, trailer.last_index), (chunks, last));
                    assert_eq!(trailer.chunks, walked.len() as u64);
                }
            }
        }
        assert_eq!(walked.pop().map(|entry| entry.offset), Some(last));
        let numbers: Vec<u64> = walked.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, (0..walked.len() as u64).collect::<Vec<_>>());
        let plain = |entry: &IndexEntry| IndexEntry { running_least: entry.least, ..*entry };
        assert_eq!(listed.iter().map(plain).collect::<Vec<_>>(), walked);
    }
}

#[test]
fn an_index_lists_the_one_before_it_and_at_most_1024_chunks() {
    for (at, head, entries) in indexes(&long(2_500)) {
        assert!(entries.len() <= INDEX_EVERY, "index at {at}");
        let first = entries.first().expect("not empty");
        if head.previous == 0 {
            assert_eq!(first.offset, 64);
        } else {
            assert_eq!((first.offset, first.kind), (head.previous, ChunkKind::INDEX));
        }
    }
}

#[test]
fn a_long_span_is_found_without_reading_what_cannot_hold_it() {
    let file = long(2_500);
    let moment = Ticks(1_700);
    let (mut looked_at, mut found) = (0, Vec::new());
    for (_, head, entries) in indexes(&file) {
        if head.least > moment {
            continue;
        }
        for entry in entries.iter().take_while(|entry| entry.running_least <= moment) {
            if entry.kind != ChunkKind::RECORDS || entry.least > moment || entry.greatest < moment {
                continue;
            }
            looked_at += 1;
            found.push(entry.first_sequence);
        }
    }
    found.sort_unstable();
    let open =
        |i: &u64| if i % 100 == 99 { (1_500..=1_700 + 1_500).contains(i) } else { *i == 1_700 };
    let expected: Vec<u64> = (0..2_500).filter(|i| open(i) && *i >= 1_700).collect();
    assert_eq!(found, expected);
    assert!(looked_at < 20);
}

#[test]
#[should_panic(expected = "an index is due")]
fn a_chunk_too_many_before_an_index_is_refused() {
    let mut assembler = Assembler::new();
    for _ in 0..=INDEX_EVERY {
        let header = assembler.meta_header(&[]);
        assembler.commit(&header);
    }
}
