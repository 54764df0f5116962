//! A file may be cut at any byte and have any bit wrong: what holds is used, and what does not is a
//! gap with its count.

mod support;

use support::naive::{NaiveChunk, NaiveRecord, chunks, records_of};
use support::record::{scalar, span};
use support::{Builder, calibration, small};
use tmrun::scan::{Gap, Missing, Recording, Status};
use tmrun_formats::wire::{Frame, TerminalV1, TotalsV1};
use tmrun_formats::{DecodeError, GapReason, LaneId, Planes, Ticks};

/// The records of the recording, each with lane and position: what a test compares.
fn records(recording: &Recording<'_>) -> Vec<NaiveRecord> {
    let of_chunk = |chunk: tmrun::scan::RecordChunk<'_>| -> Vec<NaiveRecord> {
        let (lane, positions) = (chunk.lane().0, chunk.first_sequence()..);
        positions.zip(chunk.records()).map(|(at, r)| (lane, at, *r.as_bytes())).collect()
    };
    recording.record_chunks().flat_map(of_chunk).collect()
}

fn lost<'r>(recording: &'r Recording<'_>, reason: GapReason) -> Vec<&'r Gap> {
    recording.lost().filter(|gap| gap.reason == reason).collect()
}

#[test]
fn the_small_file_is_whole() {
    let file = small();
    let recording = Recording::open(&file, "small").expect("a header");
    assert_eq!(recording.verify(), []);
    assert_eq!(recording.status(), Status::Finished);
    assert_eq!(recording.lost().count(), 0);
    assert_eq!(records(&recording), records_of(&file, &chunks(&file)));
    assert_eq!(recording.counts().total(), 11);
}

#[test]
fn truncated_tail_keeps_committed_records() {
    let whole = small();
    let all = chunks(&whole);
    for len in 0..whole.len() {
        let file = &whole[..len];
        let recording = match Recording::open(file, "cut") {
            Ok(recording) => recording,
            Err(error) => {
                assert!(len < 64, "a whole header at {len}");
                let missing = DecodeError::Truncated {
                    what: "file header",
                    offset: 0,
                    expected: 64,
                    found: len as u64,
                };
                assert_eq!(error.source, missing);
                continue;
            }
        };
        assert!(len >= 64, "half a header at {len}");
        let committed: Vec<_> = all.iter().copied().filter(|chunk| chunk.end <= len).collect();
        assert_eq!(chunks(file), committed, "the naive reader at {len}");
        assert_eq!(records(&recording), records_of(file, &committed), "cut at {len}");
        let torn = lost(&recording, GapReason::TORN);
        assert_eq!(lost(&recording, GapReason::CORRUPT), [] as [&Gap; 0], "cut at {len}");
        let end = committed.last().map_or(64, |chunk| chunk.end);
        if len == end {
            assert_eq!(recording.status(), Status::NotFinished, "cut at {len}");
            assert_eq!(torn, [] as [&Gap; 0]);
        } else {
            assert_eq!(recording.status(), Status::Torn, "cut at {len}");
            let cut = all.iter().find(|chunk| chunk.offset < len && len < chunk.end);
            let known = cut.filter(|chunk| len >= chunk.offset + 64);
            let records = known.map_or(0, |chunk| chunk.records as u64);
            assert_eq!(torn.iter().map(|gap| gap.records).collect::<Vec<_>>(), [records]);
            assert!(recording.findings().iter().any(|f| f.error.offset() <= len as u64));
        }
    }
}

#[test]
fn a_flipped_bit_costs_its_own_chunk_and_no_other_record() {
    let whole = small();
    let all = chunks(&whole);
    let mut file = whole.clone();
    for at in 0..whole.len() {
        for bit in 0..8 {
            file[at] ^= 1 << bit;
            check_flip(&file, &whole, &all, at);
            file[at] ^= 1 << bit;
        }
    }
}

fn check_flip(file: &[u8], whole: &[u8], all: &[NaiveChunk], at: usize) {
    let recording = match Recording::open(file, "flipped") {
        Ok(recording) => recording,
        Err(error) => {
            assert!(at < 64, "the file header holds, byte {at}");
            assert!(error.to_string().starts_with("flipped: "));
            return;
        }
    };
    assert!(at >= 64, "the file header does not hold, byte {at}");
    let (hit, spared): (Vec<NaiveChunk>, Vec<NaiveChunk>) =
        all.iter().partition(|chunk| (chunk.offset..chunk.end).contains(&at));
    assert_eq!(records(&recording), records_of(whole, &spared), "byte {at}");
    let corrupt = lost(&recording, GapReason::CORRUPT);
    assert_eq!(corrupt.len(), 1, "byte {at}: {corrupt:?}");
    assert_eq!(recording.lost().count(), 1, "byte {at}");
    let gap = corrupt[0];
    assert!(gap.first <= gap.last && gap.first_ns <= gap.last_ns);
    match hit.first() {
        Some(chunk) if chunk.kind == 1 => {
            assert_eq!(gap.records, chunk.records as u64, "byte {at}");
            assert_eq!(gap.lane.map(|lane| lane.0), Some(chunk.lane), "byte {at}");
        }
        _ => assert_eq!(gap.records, 0, "byte {at}"),
    }
    let starts = hit.first().map_or(whole.len() - 64, |chunk| chunk.offset);
    let findings = recording.verify();
    assert!(!findings.is_empty(), "byte {at}");
    let offset = findings[0].error.offset() as usize;
    assert!((starts..starts + 128).contains(&offset), "byte {at} is found at {offset}");
}

#[test]
fn the_gap_of_a_flipped_payload_has_the_times_of_its_header() {
    let mut file = small();
    let chunk = chunks(&file).into_iter().filter(|chunk| chunk.kind == 1).nth(1).expect("lane 0");
    file[chunk.offset + 64 + 24] ^= 1;
    let recording = Recording::open(&file, "flipped").expect("a header");
    let gap = lost(&recording, GapReason::CORRUPT)[0];
    assert_eq!((gap.first.0, gap.last.0, gap.records), (1_100, 1_950, 3));
    assert_eq!((gap.first_ns, gap.last_ns), (100, 950), "since the first calibration");
}

#[test]
fn the_gap_of_a_flipped_header_lies_between_its_neighbours() {
    let mut file = small();
    let lane_0: Vec<_> = chunks(&file).into_iter().filter(|c| c.kind == 1 && c.lane == 0).collect();
    file[lane_0[1].offset + 8] ^= 1;
    let recording = Recording::open(&file, "flipped").expect("a header");
    let gap = lost(&recording, GapReason::CORRUPT)[0];
    // What comes behind it begins at 2,200, and was published at 2,300.
    assert_eq!((gap.first.0, gap.last.0, gap.records), (1_950, 2_300, 3));
    assert_eq!(gap.groups, 0, "nobody knows");
}

/// Records of two lanes, a reading of the clock between them, and the ends.
fn mixed() -> Vec<u8> {
    Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .records(1, &[scalar(1_050, 2, 0.5)])
        .records(0, &[span(1_200, 1_300, 2, 1), scalar(1_350, 2, 0.5)])
        .records(1, &[scalar(1_400, 2, 0.5)])
        .meta(&[Frame::Calibration(calibration(1_500, 50_500))])
        .records(1, &[scalar(1_550, 2, 0.5)])
        .records(0, &[span(1_600, 1_700, 3, 1)])
        .finish()
}

/// What is lost of a file of which chunks from one to another have no byte left: lane and records, by lane.
fn without(file: &[u8], from: usize, to: usize) -> Vec<(Option<u16>, u64)> {
    let (mut file, all) = (file.to_vec(), chunks(file));
    file[all[from].offset..all[to].end].fill(0);
    let recording = Recording::open(&file, "zeroed").expect("a header");
    let of_gap = |gap: &&Gap| (gap.lane.map(|lane| lane.0), gap.records);
    let mut lost: Vec<_> = lost(&recording, GapReason::CORRUPT).iter().map(of_gap).collect();
    lost.sort_unstable();
    lost
}

#[test]
fn damage_that_more_than_the_records_of_holes_fill_may_have_been_anything() {
    let file = mixed();
    let uncounted = (None, 0);
    assert_eq!(without(&file, 3, 3), [(Some(0), 2)], "the hole is all that was there");
    assert_eq!(without(&file, 3, 4), [(Some(0), 2), (Some(1), 1)]);
    assert_eq!(without(&file, 4, 5), [uncounted, (Some(1), 1)], "a reading of the clock, too");
    assert_eq!(without(&file, 3, 5), [uncounted, (Some(0), 2), (Some(1), 1)]);
}

#[test]
fn chunks_that_are_not_there_are_more_than_the_hole_that_some_of_them_leave() {
    let file = mixed();
    let all = chunks(&file);
    let cut = |from: usize, to: usize| {
        let mut file = file[..all[all.len() - 2].offset].to_vec();
        file.drain(all[from].offset..all[to].end);
        let recording = Recording::open(&file, "cut").expect("a header");
        let lost = lost(&recording, GapReason::CORRUPT);
        let mut lost: Vec<_> = lost.iter().map(|gap| (gap.lane, gap.records, gap.planes)).collect();
        lost.sort_unstable_by_key(|gap| gap.0);
        lost
    };
    let [alone] = cut(3, 3)[..] else { panic!("one hole") };
    assert_eq!((alone.0, alone.1), (Some(LaneId(0)), 2));
    let [other, hole] = cut(4, 5)[..] else { panic!("a hole, and what else there was") };
    assert_eq!((hole.0, hole.1), (Some(LaneId(1)), 1));
    assert_eq!((other.0, other.1), (None, 0));
    assert!(other.2.contains(Planes::RECORDER.union(Planes::HOST_TIME)));
}

#[test]
fn the_end_of_a_lane_is_not_hidden_by_the_hole_of_another() {
    // The last of lane 0 is lost, and so are the totals that would tell.
    let totals = |lane, records| {
        Frame::Totals(TotalsV1 { lane: LaneId(lane), records, ..TotalsV1::default() })
    };
    let terminal = TerminalV1 { complete: true, reason: None, ticks: Ticks(2_000) };
    let mut file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .records(1, &[scalar(1_050, 2, 0.5)])
        .records(1, &[scalar(1_400, 2, 0.5)])
        .records(0, &[span(1_600, 1_700, 3, 1), scalar(1_750, 2, 0.5)])
        .records(1, &[scalar(1_550, 2, 0.5)])
        .meta(&[totals(0, 3), totals(1, 3)])
        .meta(&[Frame::Terminal(terminal)])
        .index()
        .trailer();
    let all = chunks(&file);
    for at in [3, 4, 6] {
        file[all[at].offset + 8] ^= 1;
    }
    let recording = Recording::open(&file, "flipped").expect("a header");
    let lost = lost(&recording, GapReason::CORRUPT);
    assert!(lost.iter().any(|gap| (gap.lane, gap.records) == (Some(LaneId(1)), 1)), "{lost:?}");
    let is_there = |missing: &&Missing| missing.offset == all[3].offset as u64;
    let untold = recording.missing().iter().filter(is_there).find(|it| it.position.is_none());
    let gap = untold.expect("what more was there").gap;
    assert!(gap.planes.contains(Planes::OPERATIONS) && gap.lane.is_none(), "{gap:?}");
    assert!(gap.first <= Ticks(1_600) && gap.last >= Ticks(1_750), "{gap:?}");
}

#[test]
fn bytes_behind_the_trailer_are_damage() {
    let mut file = small();
    file.extend_from_slice(b"and then some");
    let recording = Recording::open(&file, "longer").expect("a header");
    assert_eq!(recording.status(), Status::Damaged);
    assert_eq!(recording.counts().total(), 11);
    assert_eq!(lost(&recording, GapReason::CORRUPT).len(), 1);
}

#[test]
fn any_bytes_end_in_a_value_or_an_error() {
    use proptest::prelude::*;
    let whole = small();
    proptest!(ProptestConfig::with_cases(300), |(
        edits in prop::collection::vec((64..whole.len(), any::<u8>()), 1..40),
        cut in 0..whole.len(),
    )| {
        let mut file = whole.clone();
        for (at, byte) in edits {
            file[at] = byte;
        }
        file.truncate(cut);
        if let Ok(recording) = Recording::open(&file, "any") {
            let n: usize = recording.record_chunks().map(|chunk| chunk.records().len()).sum();
            prop_assert_eq!(recording.counts().total(), n as u64);
        }
    });
}
