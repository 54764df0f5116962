//! File header, chunk header, index and trailer.

use proptest::prelude::*;
use tmrun_formats::wire::*;
use tmrun_formats::{DecodeError, LaneId, RunId, Ticks};

fn chunk_headers() -> impl Strategy<Value = ChunkHeader> {
    let small = any::<(u8, u8, u16, u32)>();
    (small, any::<[u64; 5]>(), 0..1_u32 << 26).prop_map(|(small, wide, units)| {
        let (kind, flags, lane, payload_crc) = small;
        let [number, first_sequence, first_span, least, greatest] = wide;
        let kind = ChunkKind(kind % 6);
        // Records are counted by their bytes; what the count is elsewhere is free.
        let free = (number >> 32) as u32;
        let records = if kind == ChunkKind::RECORDS { units } else { free };
        ChunkHeader {
            kind,
            flags,
            lane: LaneId(lane),
            number,
            payload_len: units * 64,
            records,
            first_sequence,
            first_span,
            least: Ticks(least),
            greatest: Ticks(greatest),
            payload_crc,
        }
    })
}

proptest! {
    #[test]
    fn a_file_header_survives_encoding(run: [u8; 16], created_ns: u64, ticks_per_second: u64) {
        let header = FileHeader { run: RunId(run), created_ns, ticks_per_second };
        prop_assert_eq!(FileHeader::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn a_chunk_header_survives_encoding(header in chunk_headers(), offset: u64) {
        prop_assert_eq!(ChunkHeader::decode(&header.encode(), offset), Ok(header));
    }

    #[test]
    fn a_trailer_survives_encoding(chunks: u64, records: u64, offset in 64_u64.., last: u64) {
        let trailer = Trailer { chunks, records, last_index: last % offset, offset };
        prop_assert_eq!(Trailer::decode(&trailer.encode(), offset), Ok(trailer));
        prop_assert!(Trailer::decode(&trailer.encode(), offset ^ 64).is_err(), "at another place");
    }

    #[test]
    fn an_index_survives_encoding(headers in prop::collection::vec(chunk_headers(), 0..20), least: u64) {
        let mut at = 64;
        let mut entries: Vec<IndexEntry> = headers.iter().map(|header| {
            let entry = IndexEntry::of(header, at);
            at = entry.end();
            entry
        }).collect();
        let running = IndexEntry::close(&mut entries);
        let head = IndexHead { previous: 0, least: Ticks(least) };
        let pieces = core::iter::once(head.encode()).chain(entries.iter().map(IndexEntry::encode));
        let payload: Vec<u8> = pieces.flatten().collect();
        let (read, listed) = IndexHead::decode(&payload, at + 64).expect("valid");
        prop_assert_eq!(read, head);
        prop_assert_eq!(listed.collect::<Vec<_>>(), entries.clone());
        let first = entries.first().map_or(Ticks(u64::MAX), |entry| entry.running_least);
        prop_assert_eq!(running, first);
        for (i, entry) in entries.iter().enumerate() {
            let behind = entries[i..].iter().filter(|entry| entry.kind == ChunkKind::RECORDS);
            let least = behind.map(|entry| entry.least).min().unwrap_or(Ticks(u64::MAX));
            prop_assert_eq!(entry.running_least, least);
        }
    }
}

fn file_header() -> [u8; 64] {
    FileHeader { run: RunId([7; 16]), created_ns: 1, ticks_per_second: 2 }.encode()
}

/// The bytes with a new CRC over the first 60.
fn sealed(mut bytes: [u8; 64]) -> [u8; 64] {
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn a_newer_file_version_says_which_side_to_upgrade() {
    let mut newer = file_header();
    newer[8..10].copy_from_slice(&2_u16.to_le_bytes());
    let error = FileHeader::decode(&sealed(newer)).expect_err("not read by guessing");
    assert!(matches!(error, DecodeError::Unsupported { offset: 8, expected: 1, found: 2, .. }));
    let text = error.to_string();
    assert!(text.contains("upgrade the tmrun that reads it"), "{text}");
}

#[test]
fn a_wider_record_is_unsupported_and_a_version_that_never_was_is_malformed() {
    let with = |at: usize, value: u16| {
        let mut bytes = file_header();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        FileHeader::decode(&sealed(bytes))
    };
    assert!(matches!(with(10, 128), Err(DecodeError::Unsupported { offset: 10, .. })));
    assert!(matches!(with(10, 32), Err(DecodeError::Malformed { offset: 10, .. })));
    assert!(matches!(with(8, 0), Err(DecodeError::Malformed { offset: 8, .. })));
}

#[test]
fn a_damaged_version_is_damage_and_not_a_newer_file() {
    let mut flipped = file_header();
    flipped[8] ^= 2;
    assert!(matches!(FileHeader::decode(&flipped), Err(DecodeError::Malformed { .. })));
}

#[test]
fn reserved_bytes_are_written_as_zero_and_not_looked_at() {
    let plain = file_header();
    for at in (12..16).chain(48..60) {
        assert_eq!(plain[at], 0);
        let mut used = plain;
        used[at] = 0xFF;
        assert_eq!(FileHeader::decode(&sealed(used)), FileHeader::decode(&plain));
    }
}

#[test]
fn every_flipped_bit_of_a_header_is_found() {
    let header = Assembler::new().meta_header(&[0; 64]).encode();
    let trailer = Assembler::new().trailer().encode();
    for bit in 0..512 {
        let flip = |mut bytes: [u8; 64]| {
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        assert!(FileHeader::decode(&flip(file_header())).is_err(), "file header, bit {bit}");
        assert!(ChunkHeader::decode(&flip(header), 64).is_err(), "chunk header, bit {bit}");
        assert!(Trailer::decode(&flip(trailer), 64).is_err(), "trailer, bit {bit}");
    }
}

#[test]
fn a_header_that_is_cut_is_truncated_with_both_lengths() {
    for len in 0..64 {
        let bytes = [0x55; 64];
        let cut = &bytes[..len];
        for error in [
            FileHeader::decode(cut).expect_err("too short"),
            ChunkHeader::decode(cut, 0).expect_err("too short"),
            Trailer::decode(cut, 0).expect_err("too short"),
        ] {
            let len = len as u64;
            assert!(
                matches!(error, DecodeError::Truncated { offset: 0, expected: 64, found, .. } if found == len)
            );
        }
    }
}
