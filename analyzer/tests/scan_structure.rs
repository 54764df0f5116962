//! Chunks whose bytes are as they were written, and still break the format.

mod support;

use support::naive::chunks;
use support::record::{level, scalar, span, stats, tensor};
use support::{Builder, patch, run, small};
use tmrun::scan::{ChunkState, Recording, Status};
use tmrun_formats::wire::{DeviceV1, Frame, Place, Record, RunV1, TerminalV1, TotalsV1};
use tmrun_formats::{DeviceCode, GapReason, LaneId, RunId, SpanId, Ticks};

/// Changes the first chunk of lane 0 with `change`, mends its CRCs, and gives what is then found.
fn found(change: impl FnOnce(&mut [u8], usize)) -> String {
    let mut file = small();
    let all = chunks(&file);
    let chunk = *all.iter().find(|chunk| chunk.kind == 1 && chunk.lane == 0).expect("lane 0");
    change(&mut file, chunk.offset);
    patch::payload_crc(&mut file, chunk.offset);
    let recording = Recording::open(&file, "test").expect("a header");
    let finding = recording.findings().first().expect("a finding");
    assert_eq!(recording.counts().total(), 11 - 3, "none of the chunk is used");
    let gap = recording.lost().next().expect("a gap");
    assert_eq!((gap.reason, gap.records), (GapReason::CORRUPT, 3));
    let offset = finding.error.offset() as usize;
    assert!((chunk.offset..chunk.end).contains(&offset), "{finding}");
    finding.to_string()
}

#[test]
fn a_sequence_number_out_of_place_is_found() {
    let finding = found(|file, chunk| file[chunk + 64 + 64 + 16] = 9);
    assert!(finding.contains("sequence number of a record"), "{finding}");
    assert!(finding.contains("expected 0x1, found 0x9"), "{finding}");
}

#[test]
fn an_empty_slot_is_found() {
    let finding = found(|file, chunk| file[chunk + 64 + 20] = 0);
    assert!(finding.contains("empty slot"), "{finding}");
}

#[test]
fn a_chunk_that_begins_within_a_group_is_found() {
    // Statistics continue a tensor; here nothing is before them.
    let finding = found(|file, chunk| {
        file[chunk + 64 + 20] = 7;
        file[chunk + 64 + 23] = 0x80;
    });
    assert!(finding.contains("first record of a chunk continues another"), "{finding}");
}

#[test]
fn a_head_that_claims_to_continue_is_found() {
    let finding = found(|file, chunk| file[chunk + 64 + 64 + 23] = 0x80);
    assert!(finding.contains("continues none continues another"), "{finding}");
}

#[test]
fn ticks_outside_the_header_are_found() {
    let finding = found(|file, chunk| file[chunk + 40] ^= 1);
    assert!(finding.contains("least tick"), "{finding}");
    let finding = found(|file, chunk| file[chunk + 48] ^= 1);
    assert!(finding.contains("greatest tick"), "{finding}");
}

#[test]
fn a_group_is_sixteen_records_at_most() {
    let group = |n: usize| -> Vec<Record> {
        let behind = std::iter::repeat_n(stats(1_000, 1.0), n - 1);
        std::iter::once(tensor(1_000, 2)).chain(behind).collect()
    };
    let file = Builder::started().records(0, &group(16)).records(0, &group(17)).finish();
    let recording = Recording::open(&file, "test").expect("a header");
    let states: Vec<_> = recording.chunks().map(|chunk| chunk.state).collect();
    assert_eq!(states[1..3], [ChunkState::Intact, ChunkState::Damaged]);
    assert!(recording.findings()[0].to_string().contains("too many records"));
}

#[test]
fn kinds_and_frames_of_newer_versions_are_counted_and_skipped() {
    let mut words = scalar(1_000, 2, 1.0).words();
    words[2] = words[2] & !(0xFF << 32) | 200 << 32;
    let mut file = Builder::started()
        .records(0, &[Record::from_words(words), scalar(1_100, 2, 1.0)])
        .unfinished();
    // The run's frame becomes one of a kind that is not known.
    file[64 + 64..64 + 66].copy_from_slice(&999_u16.to_le_bytes());
    patch::payload_crc(&mut file, 64);
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!(recording.findings(), []);
    assert_eq!(recording.counts().unknown(), 1);
    assert_eq!(recording.counts().total(), 2);
    assert_eq!(recording.meta().unknown_frames, 1);
    assert!(recording.meta().run.is_none());
    assert_eq!(recording.names().len(), 2, "the frames behind it are read");
}

#[test]
fn a_chunk_of_records_in_an_unknown_form_is_a_gap_of_its_count() {
    let mut file = small();
    let all = chunks(&file);
    let chunk = all.iter().find(|chunk| chunk.kind == 1 && chunk.lane == 1).expect("lane 1");
    file[chunk.offset + 5] = 1;
    patch::header_crc(&mut file, chunk.offset);
    let recording = Recording::open(&file, "test").expect("a header");
    let info = recording.chunks().find(|info| info.offset == chunk.offset as u64);
    assert_eq!(info.map(|info| info.state), Some(ChunkState::Unknown));
    assert_eq!(recording.lost().map(|gap| gap.records).collect::<Vec<_>>(), [2]);
    assert!(recording.findings()[0].to_string().contains("unsupported"));
}

#[test]
fn an_index_that_lies_is_found_and_costs_no_record() {
    for at in [0, 8, 64, 72, 80, 88, 96, 104, 112, 116, 120, 122] {
        let mut file = small();
        let index = *chunks(&file).iter().filter(|c| c.kind == 3).nth(1).expect("an index");
        file[index.offset + 64 + at] ^= 1;
        patch::payload_crc(&mut file, index.offset);
        let recording = Recording::open(&file, "test").expect("a header");
        assert_eq!(recording.lost().count(), 0, "byte {at}");
        let findings = recording.verify();
        assert_eq!(findings.len(), 1, "byte {at}: {findings:?}");
        // In its own 64 bytes, or in the next where it runs into the entry there.
        let place = (index.offset + 64 + at) / 64 * 64;
        let offset = findings[0].error.offset() as usize;
        assert!((place..=place + 64).contains(&offset), "byte {at}: {findings:?}");
    }
}

#[test]
fn a_trailer_that_lies_is_found_and_costs_no_record() {
    for at in [8, 16, 24] {
        let mut file = small();
        let trailer = file.len() - 64;
        file[trailer + at] ^= 1;
        patch::header_crc(&mut file, trailer);
        let recording = Recording::open(&file, "test").expect("a header");
        assert_eq!(recording.status(), Status::Finished);
        let findings = recording.verify();
        assert_eq!(findings.len(), 1, "byte {at}: {findings:?}");
        assert!(findings[0].to_string().contains("trailer"));
    }
}

#[test]
fn a_level_that_is_none_is_found_and_costs_no_record() {
    let file = Builder::started().records(0, &[with_level(scalar(1_000, 2, 1.0), 4)]).finish();
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!((recording.findings().len(), recording.counts().total()), (0, 1));
    let findings = recording.verify();
    assert!(findings[0].to_string().contains("level of a record"), "{findings:?}");
}

fn with_level(record: Record, level: u64) -> Record {
    let mut words = record.words();
    words[2] = words[2] & !(0xFF << 40) | level << 40;
    Record::from_words(words)
}

#[test]
fn a_chunk_number_that_jumps_is_found() {
    let mut file = small();
    let chunk = chunks(&file)[3];
    file[chunk.offset + 8] = 77;
    patch::header_crc(&mut file, chunk.offset);
    let recording = Recording::open(&file, "test").expect("a header");
    assert!(recording.findings()[0].to_string().contains("number of the chunk"));
    assert_eq!(recording.counts().total(), 11);
}

#[test]
fn more_than_one_index_is_checked_against_its_chunks() {
    let mut builder = Builder::started().records(u16::MAX, &[level(1_000, 1_000, 1, 1)]);
    for i in 0..6 {
        builder = builder.records(i, &[span(1_000 + u64::from(i), 2_000, 1, 1)]).index();
    }
    let file = builder.finish();
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!(recording.verify(), []);
    // With one of them damaged, the next one still holds, and lists what it lists.
    for index in chunks(&file).iter().filter(|chunk| chunk.kind == 3) {
        let mut file = file.clone();
        file[index.offset + 70] ^= 1;
        let recording = Recording::open(&file, "test").expect("a header");
        assert_eq!(recording.verify().len(), 1, "{:?}", recording.verify());
    }
}

#[test]
fn the_answer_does_not_depend_on_how_many_cores_there_are() {
    let mut builder = Builder::started();
    for i in 0..300_u64 {
        let lane = (i % 5) as u16;
        builder = builder.records(lane, &[span(1_000 + i, 2_000 + i, i as u32 + 1, 1)]);
        if i % 50 == 0 {
            builder = builder.skip(lane, 1);
        }
    }
    let place = Place { lane: LaneId(2), sequence: 0, span: SpanId(1) };
    let file = builder.chunk_of(place, &[span(1, 2, 1, 1)]).finish();
    let answer = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let recording = Recording::open(&file, "test").expect("a header");
            format!("{recording:#?} {:#?}", recording.chunks().collect::<Vec<_>>())
        })
    };
    let single = answer(1);
    assert!(single.contains("Displaced"));
    for threads in [2, 3, 8] {
        assert!(answer(threads) == single, "{threads} threads");
    }
}

#[test]
fn a_shape_of_more_dimensions_than_five_is_found_and_costs_no_record() {
    let mut shape = stats(1_000, 1.0).words();
    shape[2] = shape[2] & !(0xFF << 32) | 6 << 32 | 6 << 48;
    let records = [tensor(1_000, 2), Record::from_words(shape)];
    let file = Builder::started().records(0, &records).finish();
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!((recording.findings().len(), recording.counts().total()), (0, 2));
    let findings = recording.verify();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].to_string().contains("dimensions"), "{findings:?}");
}

#[test]
fn of_two_frames_about_the_run_that_differ_the_first_holds_and_the_other_is_found() {
    let terminal =
        |complete| Frame::Terminal(TerminalV1 { complete, reason: None, ticks: Ticks(9_000) });
    let other = RunV1 { device: "cuda:0", ..run() };
    let clock = |name| Frame::Device(DeviceV1 { code: DeviceCode(1), name });
    for (first, second) in [
        (Frame::Run(run()), Frame::Run(other)),
        (terminal(false), terminal(true)),
        (clock("cpu"), clock("cuda:0")),
    ] {
        let file = Builder::new().meta(&[first]).meta(&[first, second]).unfinished();
        let recording = Recording::open(&file, "test").expect("a header");
        assert_eq!(recording.findings().len(), 1, "{second:?}");
        let holds = Builder::new().meta(&[first]).unfinished();
        let holds = Recording::open(&holds, "test").expect("a header");
        assert_eq!(recording.meta().run, holds.meta().run);
        assert_eq!(recording.meta().terminal, holds.meta().terminal);
        assert_eq!(recording.meta().devices, holds.meta().devices);
    }
}

#[test]
fn a_run_that_is_another_than_the_headers_is_found() {
    let other = RunV1 { run: RunId([8; 16]), ..run() };
    let file = Builder::new().meta(&[Frame::Run(other)]).unfinished();
    let recording = Recording::open(&file, "test").expect("a header");
    let findings = recording.verify();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].error.offset(), 128);
    assert!(findings[0].to_string().contains("file header"), "{findings:?}");
}

#[test]
fn totals_that_count_less_than_there_is_are_found_wherever_they_stand() {
    let totals = Frame::Totals(TotalsV1 { lane: LaneId(0), records: 1, ..TotalsV1::default() });
    let records = [scalar(1_000, 2, 1.0), scalar(1_100, 2, 1.0)];
    for file in [
        Builder::started().meta(&[totals]).records(0, &records).unfinished(),
        Builder::started().records(0, &records).meta(&[totals]).unfinished(),
    ] {
        let recording = Recording::open(&file, "test").expect("a header");
        let findings = recording.verify();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].to_string().contains("totals"), "{findings:?}");
    }
}
