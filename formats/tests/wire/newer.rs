//! A file of a newer writer: what is unknown is skipped and counted, what is known is read.

use tmrun_formats::wire::*;
use tmrun_formats::{GapReason, LaneId, Level, NameId, SpanId, Ticks};

use crate::wire_support::{File, numbered, payload_of};

const SCALAR: Scalar = Scalar { value: 2.0 };

fn scalar() -> Record {
    Record::new(
        RecordHeader { name: NameId(1), ..RecordHeader::of::<Scalar>(Level::PULSE) },
        &SCALAR,
    )
}

/// A record of a kind that this version does not know, every bit of the payload set.
fn unknown() -> Record {
    let mut words = [u64::MAX; 8];
    (words[0], words[1], words[2]) = (9, 0, 200 << 32);
    Record::from_words(words)
}

fn newer_file() -> Vec<u8> {
    let mut file = File::new();
    let tag = Frame::Tag(TagV1 { key: "k", value: "v" });
    let mut payload = Vec::new();
    let raw = |kind: u16, version: u16, body: &[u8]| {
        let head = u64::from(kind) | u64::from(version) << 16 | (body.len() as u64) << 32;
        [head.to_le_bytes().as_slice(), body].concat()
    };
    let mut space = [0; 64];
    let used = tag.encode(&mut space).expect("fits");
    payload.extend(raw(999, 1, b"what is this?"));
    payload.extend(&space[..used]);
    payload.extend(raw(2, 2, b"a tag of another shape"));
    payload.extend(raw(1_000, 0, b""));
    payload.extend(&space[..used]);
    payload.resize(payload.len().next_multiple_of(64), 0);
    let header = file.assembler.meta_header(&payload);
    file.raw(header, &payload);

    file.records(LaneId(0), 0, SpanId(1), &numbered(0, [scalar(), unknown(), scalar()]));
    let plain = file.assembler.meta_header(&[]);
    file.raw(ChunkHeader { kind: ChunkKind(77), records: 5, ..plain }, &[0xAB; 128]);
    let records = ChunkHeader { kind: ChunkKind::RECORDS, records: 1_000, ..plain };
    file.raw(ChunkHeader { flags: 1, ..records }, &[0xCD; 64]);
    file.raw(ChunkHeader { flags: 0x80, ..plain }, &payload_of(&[tag]));
    file.records(LaneId(0), 3, SpanId(1), &numbered(3, [scalar()]));
    file.finish()
}

#[test]
fn what_is_unknown_is_skipped_and_counted_and_the_rest_is_read() {
    let file = newer_file();
    let (mut tags, mut unknown_frames) = (0, Vec::new());
    let (mut values, mut unknown_records, mut unknown_chunks) = (0, 0, 0);
    for walked in Chunks::new(&file) {
        let chunk = match walked {
            Walked::Chunk(chunk) => chunk,
            Walked::Damage(damage) => panic!("a newer file is not damaged: {damage:?}"),
            Walked::Trailer(trailer) => {
                assert_eq!((trailer.chunks, trailer.offset), (7, file.len() as u64 - 64));
                continue;
            }
        };
        chunk.check().expect("a newer chunk has the CRC that every chunk has");
        unknown_chunks += usize::from(!chunk.header.is_known());
        for record in chunk.records() {
            match record.kind() {
                None => unknown_records += 1,
                Some(kind) => {
                    assert_eq!(kind, Kind::Scalar);
                    assert_eq!(record.payload(), Some(SCALAR));
                    values += 1;
                }
            }
        }
        for raw in chunk.frames() {
            match raw.expect("frames are skipped by length").decode() {
                Ok(Frame::Tag(TagV1 { key: "k", value: "v" })) => tags += 1,
                Err(FrameError::Unknown { kind, version, .. }) => {
                    unknown_frames.push((kind, version));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((values, unknown_records), (3, 1));
    assert_eq!((tags, unknown_frames), (2, vec![(999, 1), (2, 2), (1_000, 0)]));
    assert_eq!(unknown_chunks, 3);
}

#[test]
fn an_unknown_record_keeps_its_bytes_and_its_place_in_time() {
    let record = unknown();
    assert_eq!(record.kind(), None);
    assert_eq!(record.header().kind, 200);
    assert_eq!(record.edges(), (Ticks(9), Ticks(9)));
    assert_eq!(Record::slice(record.as_bytes()).0, [record]);
}

#[test]
fn an_unknown_gap_reason_is_a_loss() {
    use tmrun_formats::GapClass;
    assert_eq!(GapReason(200).class(), GapClass::Lost);
    assert_eq!(GapReason(200).name(), None);
    assert_eq!(GapReason(0).class(), GapClass::Lost, "a gap without a reason is no excuse");
    assert_eq!(GapReason(15).class(), GapClass::NotRequested, "codes below 16 are kept for it");
}
