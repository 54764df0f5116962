//! A small file cut at every byte, with every bit flipped, and with every length replaced.

use tmrun_formats::DecodeError;
use tmrun_formats::wire::*;

use crate::wire_support::{place, small};

/// Where the pieces of an undamaged file begin, its end included.
fn boundaries(file: &[u8]) -> Vec<u64> {
    let starts = Chunks::new(file).map(|walked| place(&walked).0);
    starts.chain([file.len() as u64]).collect()
}

fn pieces(file: &[u8]) -> Vec<Walked<'_>> {
    Chunks::new(file).collect()
}

/// Whether a walk's pieces are those that begin at these offsets, whole and as they were.
fn assert_whole(found: &[Walked<'_>], file: &[u8], starts: &[u64]) {
    let whole: Vec<u64> = found
        .iter()
        .filter(|walked| match walked {
            Walked::Chunk(chunk) => {
                let at = chunk.offset as usize;
                let bytes = &file[at..at + 64 + chunk.payload.len()];
                chunk.check().is_ok() && bytes[64..] == *chunk.payload
            }
            Walked::Trailer(_) => true,
            Walked::Damage(_) => false,
        })
        .map(|walked| place(walked).0)
        .collect();
    assert_eq!(whole, starts);
}

#[test]
fn the_undamaged_file_is_chunks_and_a_trailer() {
    let file = small();
    let found = pieces(&file);
    let starts = boundaries(&file);
    assert_whole(&found, &file, &starts[..starts.len() - 1]);
    assert!(matches!(found.last(), Some(Walked::Trailer(trailer)) if trailer.chunks == 8));
}

#[test]
fn a_file_cut_at_any_byte_keeps_every_chunk_before_the_cut_and_says_what_is_torn() {
    let file = small();
    let starts = boundaries(&file);
    for end in 0..file.len() {
        let cut = &file[..end];
        let found = pieces(cut);
        let end = end as u64;
        if end < 64 {
            assert!(found.is_empty());
            let header = FileHeader::decode(cut);
            assert!(matches!(header, Err(DecodeError::Truncated { found, .. }) if found == end));
            continue;
        }
        let before = starts.iter().filter(|&&start| start <= end).count() - 1;
        assert_whole(&found, &file, &starts[..before]);
        match (&found[before..], starts[before]) {
            ([], start) => assert_eq!(start, end, "a cut between two chunks is no damage"),
            ([Walked::Damage(damage)], start) => {
                assert_eq!((damage.offset, damage.len), (start, end - start));
                assert!(matches!(damage.error, DecodeError::Truncated { .. }), "{damage:?}");
                let header = ChunkHeader::decode(&file[start as usize..], start).ok();
                assert_eq!(damage.header, header.filter(|_| end - start >= 64), "what is lost");
            }
            other => panic!("cut at {end}: {other:?}"),
        }
    }
}

#[test]
fn a_flipped_bit_costs_the_chunk_that_it_is_in_and_no_other() {
    let mut file = small();
    let original = file.clone();
    let starts = boundaries(&file);
    for bit in 0..file.len() * 8 {
        file[bit / 8] ^= 1 << (bit % 8);
        let at = (bit / 8) as u64;
        let found = pieces(&file);
        if at < 64 {
            assert!(FileHeader::decode(&file).is_err());
            assert_whole(&found, &original, &starts[..starts.len() - 1]);
        } else {
            let hit = starts.iter().filter(|&&start| start <= at).count() - 1;
            let mut whole = starts[..starts.len() - 1].to_vec();
            whole.remove(hit);
            assert_whole(&found, &file, &whole);
            let (start, len) = (starts[hit], starts[hit + 1] - starts[hit]);
            assert_eq!(place(&found[hit]), (start, len), "bit {bit}");
            match &found[hit] {
                Walked::Damage(_) => assert!(at - start < 64, "only a header hides its chunk"),
                Walked::Chunk(chunk) => assert!(chunk.check().is_err() && at - start >= 64),
                Walked::Trailer(_) => panic!("bit {bit} of the trailer was not seen"),
            }
        }
        file[bit / 8] ^= 1 << (bit % 8);
    }
}

const LENGTHS: [u64; 8] =
    [0, 1, 64, 1 << 31, u32::MAX as u64 - 63, u32::MAX as u64, 1 << 63, u64::MAX];

/// Calls `check` with the file after each replacement of `size` bytes at `at`, where what is sealed
/// by a CRC is sealed again, from the payload's out.
fn replaced(at: usize, size: usize, check: impl Fn(&[u8])) {
    let original = small();
    let starts = boundaries(&original);
    let hit = starts.iter().filter(|&&start| start <= at as u64).count() - 1;
    let (start, end) = (starts[hit] as usize, starts[hit + 1] as usize);
    for length in LENGTHS {
        let mut file = original.clone();
        file[at..at + size].copy_from_slice(&length.to_le_bytes()[..size]);
        if end - start > 64 {
            let crc = crc32fast::hash(&file[start + 64..end]);
            file[start + 56..start + 60].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&file[start..start + 60]);
        file[start + 60..start + 64].copy_from_slice(&crc.to_le_bytes());
        check(&file);
    }
}

#[test]
fn a_wrong_length_or_count_in_a_chunk_header_costs_that_chunk_alone() {
    let original = small();
    let starts = boundaries(&original);
    for (hit, &start) in starts[..starts.len() - 2].iter().enumerate() {
        for field in [16, 20] {
            replaced(start as usize + field, 4, |file| {
                let found = pieces(file);
                let mut at = 64;
                for walked in &found {
                    let (offset, len) = place(walked);
                    assert_eq!(offset, at);
                    at += len;
                }
                assert_eq!(at, file.len() as u64);
                let offsets: Vec<u64> = found.iter().map(|walked| place(walked).0).collect();
                let others = starts.iter().enumerate().filter(|&(i, _)| i != hit);
                for (_, other) in others.filter(|&(_, &other)| other != file.len() as u64) {
                    assert_eq!(offsets.iter().filter(|&at| at == other).count(), 1);
                }
            });
        }
    }
}

#[test]
fn a_wrong_length_of_a_frame_ends_the_frames_of_its_payload() {
    let first = boundaries(&small())[0] as usize;
    replaced(first + 64 + 4, 4, |file| {
        let Some(Walked::Chunk(chunk)) = Chunks::new(file).next() else { panic!("a chunk") };
        chunk.check().expect("the CRC holds");
        let frames: Vec<_> = chunk.frames().collect();
        assert!(frames.len() <= chunk.payload.len() / 8);
        let wrong = frames
            .iter()
            .any(|raw| raw.is_err_and(|e| !matches!(e, DecodeError::Truncated { .. })));
        let unread = frames.iter().flatten().any(|raw| raw.decode().is_err());
        assert!(wrong || unread, "it does not go unnoticed");
    });
}

#[test]
fn a_wrong_offset_in_an_index_or_trailer_is_refused_or_harmless() {
    let original = small();
    let starts = boundaries(&original);
    let index = starts[starts.len() - 3] as usize;
    let trailer = starts[starts.len() - 2] as usize;
    let listed = |file: &[u8]| {
        let Some(Walked::Chunk(chunk)) = Chunks::from(file, index as u64).next() else {
            panic!("the index")
        };
        chunk.check().expect("the CRC holds");
        assert_eq!(chunk.header.kind, ChunkKind::INDEX);
        if let Ok((head, entries)) = IndexHead::decode(chunk.payload, chunk.payload_offset()) {
            assert!(head.previous < index as u64);
            assert!(entries.map(|entry| entry.end()).is_sorted());
        }
    };
    for field in [0, 64, 64 + 48, 128, 128 + 48] {
        let size = if field % 64 == 48 { 4 } else { 8 };
        replaced(index + 64 + field, size, listed);
    }
    for field in [8, 16, 24, 32] {
        replaced(trailer + field, 8, |file| match Chunks::from(file, trailer as u64).next() {
            Some(Walked::Trailer(found)) => assert!(found.last_index < trailer as u64),
            Some(Walked::Damage(damage)) => assert_eq!(damage.offset, trailer as u64),
            other => panic!("{other:?}"),
        });
    }
}

#[test]
fn bytes_behind_the_trailer_are_damage() {
    let mut file = small();
    let trailer = file.len() as u64 - 64;
    file.push(0);
    let last = Chunks::new(&file).last();
    let Some(Walked::Damage(damage)) = last else { panic!("{last:?}") };
    assert_eq!((damage.offset, damage.len), (trailer, 65));
}

#[test]
fn a_walk_goes_on_at_any_alignment() {
    let original = small();
    let starts = boundaries(&original);
    for shift in 1..64 {
        let mut file = original.clone();
        let at = starts[2] as usize;
        file.splice(at..at, vec![0xEE; shift]);
        let found = pieces(&file);
        let (offset, len) = place(&found[2]);
        assert!(matches!(found[2], Walked::Damage(_)));
        assert_eq!((offset, len), (starts[2], shift as u64));
        let chunks = found.iter().filter(|walked| matches!(walked, Walked::Chunk(_))).count();
        assert_eq!(chunks, starts.len() - 2);
    }
}

#[test]
fn bytes_that_are_cut_out_of_a_payload_cost_that_chunk_alone() {
    let file = small();
    let starts = boundaries(&file);
    let chunks: Vec<_> = starts.windows(2).map(|at| (at[0], at[1])).collect();
    // Behind the last chunk is the trailer, which is none once it has moved.
    for &(start, end) in &chunks[..chunks.len() - 2] {
        for len in [1, 63, 65, (end - start - 64).min(100) | 1] {
            let mut cut = file.clone();
            let from = (start + 64) as usize;
            if from + len as usize > end as usize {
                continue;
            }
            cut.drain(from..from + len as usize);
            let found = pieces(&cut);
            let damage = found.iter().find_map(|walked| match walked {
                Walked::Damage(damage) => Some(damage),
                _ => None,
            });
            let damage = damage.expect("something is missing");
            assert_eq!((damage.offset, damage.len), (start, end - start - len));
            assert!(damage.header.is_some(), "which says what is missing");
            let whole = found.iter().filter(|walked| matches!(walked, Walked::Chunk(_))).count();
            assert_eq!(whole, chunks.len() - 2, "all but this one, and the trailer is none");
        }
    }
}
