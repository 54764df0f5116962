//! Bytes from anyone: every reader ends, in a value or an error.

use proptest::prelude::*;
use tmrun_formats::wire::*;

use crate::wire_support::{place, small};

/// Walks and reads everything, and holds the walk against its promises.
fn read_everything(file: &[u8]) {
    let _ = FileHeader::decode(file);
    let mut at = 64;
    for walked in Chunks::new(file) {
        let (offset, len) = place(&walked);
        assert_eq!(offset, at, "every byte behind the header is in one piece of the walk");
        assert!(len > 0, "every piece goes on");
        at += len;
        match walked {
            Walked::Chunk(chunk) => read_chunk(&chunk),
            Walked::Damage(damage) => {
                // A header at its start was looked at, and the first byte behind it.
                let looked_at = damage.offset..=damage.offset + 64;
                assert!(looked_at.contains(&damage.error.offset()), "{damage:?}");
            }
            Walked::Trailer(_) => {}
        }
    }
    assert_eq!(at, (file.len() as u64).max(64), "and nothing is left out");
}

fn read_chunk(chunk: &Chunk<'_>) {
    let _ = chunk.check();
    for group in groups(chunk.records()) {
        for record in group {
            let (first, last) = record.edges();
            assert!(first <= last);
            let _ = chunk.header.span_of(record.header().span);
            let _ = crate::wire_support::listing::payload(record);
        }
    }
    read_frames(chunk.payload, chunk.payload_offset());
    read_index(chunk.payload, chunk.payload_offset());
}

fn read_frames(payload: &[u8], offset: u64) {
    let mut bytes = 0;
    for raw in Frames::new(payload, offset).flatten() {
        bytes += 8 + raw.body.len();
        let _ = raw.decode();
    }
    assert!(bytes <= payload.len(), "no byte is in two frames");
}

fn read_index(payload: &[u8], offset: u64) {
    let Ok((head, entries)) = IndexHead::decode(payload, offset) else { return };
    assert!(head.previous == 0 || head.previous < offset, "a chain of indexes ends");
    assert!(entries.clone().is_sorted_by(|a, b| a.end() <= b.offset), "no chunk is listed twice");
    assert!(entries.clone().all(|entry| entry.end() <= offset), "and all lie before the index");
}

/// Bytes in which the magics are common.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..80),
        1 => Just(CHUNK_MAGIC.to_vec()),
        1 => Just(TRAILER_MAGIC.to_vec()),
        1 => Just(vec![0; 64]),
        1 => Just(small()[64..192].to_vec()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in bytes(), offset: u64) {
        read_everything(&bytes);
        read_frames(&bytes, offset);
        read_index(&bytes, offset);
        let _ = ChunkHeader::decode(&bytes, offset);
        let _ = Trailer::decode(&bytes, offset);
        let from = Chunks::from(&bytes, offset % 1_000).count();
        prop_assert!(from <= bytes.len());
        prop_assert_eq!(Chunks::from(&bytes, u64::MAX).count(), 0);
    }

    #[test]
    fn any_frame_body_ends_in_a_frame_or_an_error(kind in 0..30_u16, version in 0..3_u16, body: Vec<u8>) {
        let raw = RawFrame { kind, version, body: &body, offset: 0 };
        let known = (1..=27).contains(&kind) && version == 1;
        prop_assert_eq!(matches!(raw.decode(), Err(FrameError::Unknown { .. })), !known);
    }

    #[test]
    fn a_file_that_is_cut_spliced_and_overwritten_is_read_to_its_end(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..200_usize, bytes()), 1..4)
    ) {
        let mut file = small();
        for (at, len, bytes) in cuts {
            let at = at.index(file.len() + 1);
            let end = at.saturating_add(len).min(file.len());
            file.splice(at..end, bytes);
        }
        read_everything(&file);
    }
}

#[test]
fn a_file_of_nothing_but_magics_is_read_in_time() {
    let file: Vec<u8> = CHUNK_MAGIC.iter().copied().cycle().take(4 << 20).collect();
    read_everything(&file);
    assert_eq!(Chunks::new(&file).count(), 1);
}

#[test]
fn a_file_of_nothing_but_torn_chunks_is_read_in_time() {
    let torn = ChunkHeader { payload_len: u32::MAX - 63, ..Assembler::new().meta_header(&[]) };
    let file: Vec<u8> = torn.encode().iter().copied().cycle().take(4 << 20).collect();
    read_everything(&file);
    assert!(
        Chunks::new(&file)
            .all(|walked| matches!(walked, Walked::Damage(d) if d.header == Some(torn)))
    );
}
