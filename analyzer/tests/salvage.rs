//! A salvaged file is whole, has every intact record where it was, and lacks exactly what the file
//! that it was made from lacks.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use support::naive::{chunks, frames_of, intact_chunks, records_of};
use support::record::{gap, level, scalar, span, stats, step, tensor};
use support::{Builder, calibration, lane, name, patch, run, small};
use tmrun::salvage::salvage;
use tmrun::scan::{Gap, Recording, Status};
use tmrun_formats::wire::{
    ControlV1, Frame, HoleV1, LaneStartV1, LaneStepV1, LaneV1, OpenSpanV1, RecorderCostV1, SiteV1,
    StepState, TagV1, TerminalV1, TotalsV1,
};
use tmrun_formats::{GapReason, LaneId, Level, NameId, RunId, SpanId, Ticks};

fn open(file: &[u8]) -> Recording<'_> {
    Recording::open(file, "test").expect("a header")
}

fn salvaged(file: &[u8]) -> Vec<u8> {
    let recording = Recording::open_damaged(file, "test", &|_| ()).expect("a recording");
    let mut out = Vec::new();
    let written = salvage(&recording, &mut out, &|_| ()).expect("written");
    assert_eq!(written.bytes, out.len() as u64);
    assert_eq!(written.kept, recording.counts().total());
    out
}

/// Salvages a file, holds the result against everything that is promised of it, and gives it back.
fn check(file: &[u8]) -> Vec<u8> {
    let out = salvaged(file);
    let (before, after) =
        (Recording::open_damaged(file, "before", &|_| ()).expect("a recording"), open(&out));
    assert_eq!(after.verify(), []);
    assert_eq!(after.status(), Status::Finished);

    // Every intact record is there, in the order of its lane, and behind them nothing but gaps.
    let (mut intact, mut kept) =
        (records_of(file, &intact_chunks(file)), records_of(&out, &chunks(&out)));
    let added = kept.split_off(intact.len().min(kept.len()));
    assert_eq!(kept.len(), intact.len());
    assert!(kept == intact, "records differ");
    assert!(added.iter().all(|(lane, _, record)| *lane == u16::MAX && record[20] == 18));
    intact.clear();
    has_every_frame(file, &out);

    // What is missing is the same.
    assert_eq!(gaps(&after), gaps(&before));

    let (a, b) = (before.meta(), after.meta());
    assert_eq!(b.run, a.run);
    assert_eq!(b.tags, a.tags);
    assert_eq!(b.sites, a.sites);
    assert_eq!(b.controls, a.controls);
    assert_eq!(b.open_spans, a.open_spans);
    assert_eq!(b.cost, a.cost);
    assert_eq!(b.unknown_frames, a.unknown_frames);
    assert_eq!(after.calibrations().used, before.calibrations().used);
    let names = |recording: &Recording<'_>| -> Vec<_> {
        recording.names().iter().map(|name| format!("{name:?}")).collect()
    };
    assert_eq!(names(&after), names(&before));
    let terminal = b.terminal.expect("it says how the run ended");
    match a.terminal {
        Some(known) => assert_eq!(terminal, known),
        None => assert!(!terminal.complete && terminal.reason.is_some_and(|r| r.contains("salv"))),
    }
    if before.header_error().is_none() {
        assert_eq!(after.header(), before.header());
    }
    assert!(salvaged(&out) == out, "a salvaged file salvages to itself");
    out
}

/// Every intact metadata frame is there: what stands where it holds, in that order and no more often;
/// the first of every definition; and what is said of the end, once.
fn has_every_frame(file: &[u8], out: &[u8]) {
    let before = frames_of(file, &intact_chunks(file));
    let after = frames_of(out, &chunks(out));
    // Run, name, dtype, device, clock; open span, terminal, totals, cost, hole, the recording's file.
    let (definitions, ends) = ([1, 11, 13, 14, 15], [18, 19, 20, 21, 22, 23]);
    let placed = |frames: &[(u16, Vec<u8>)]| -> Vec<_> {
        let is_placed = |kind| !definitions.contains(kind) && !ends.contains(kind);
        frames.iter().filter(|(kind, _)| is_placed(kind)).cloned().collect()
    };
    assert_eq!(placed(&after), placed(&before));

    // A run or a definition goes by its id, in front of its body.
    let id_of = |(kind, frame): &(u16, Vec<u8>)| match kind {
        1 => (1, 0),
        // Seven bits a byte, the lowest first.
        11 => (11, 1 + frame[8..].iter().take_while(|byte| **byte >= 128).count()),
        kind => (*kind, 1),
    };
    let defined = |frames: &[(u16, Vec<u8>)]| {
        let mut first = BTreeMap::new();
        for frame in frames.iter().filter(|(kind, _)| definitions.contains(kind)) {
            let (kind, length) = id_of(frame);
            let id = (kind, frame.1[8..8 + length].to_vec());
            first.entry(id).or_insert_with(|| frame.1.clone());
        }
        first
    };
    assert_eq!(defined(&after), defined(&before));

    // Of what is said of the end the first counts, but for counters.
    for kind in [18, 19, 21] {
        let of_kind = |frames: &[(u16, Vec<u8>)]| -> BTreeSet<Vec<u8>> {
            let frames = frames.iter().filter(|frame| frame.0 == kind);
            frames.map(|frame| frame.1.clone()).collect()
        };
        let (before, after) = (of_kind(&before), of_kind(&after));
        assert!(before.is_empty() || after.is_subset(&before), "kind {kind}: {after:?}");
        assert!(before.is_empty() == after.is_empty() || (kind, after.len()) == (19, 1));
    }
}

fn gaps(recording: &Recording<'_>) -> Vec<Gap> {
    let mut gaps = recording.gaps().to_vec();
    for gap in &mut gaps {
        // Without a header the rate of a clock that was calibrated once is not known, or rounded.
        (gap.first_ns, gap.last_ns) = (0, 0);
        if gap.records > 0 && matches!(gap.reason, GapReason::CORRUPT | GapReason::TORN) {
            // The header of a damaged chunk said when; a hole is between its neighbours.
            (gap.first, gap.last) = (Ticks(0), Ticks(0));
        }
    }
    gaps.sort_by_key(|gap| (gap.reason, gap.lane, gap.first, gap.last, gap.records));
    gaps
}

/// A file with everything that may be in one.
fn rich() -> Vec<u8> {
    let site = |id, line| {
        let (kind, level, file) = (1, Level::TIMING, "src/train.rs");
        Frame::Site(SiteV1 { name: NameId(id), kind, level, file, line })
    };
    Builder::started()
        .meta(&[
            Frame::Tag(TagV1 { key: "owner", value: "me" }),
            site(1, 10),
            Frame::Control(ControlV1 { configuration: 1, level: Level::TIMING, body: b"x" }),
        ])
        .records(u16::MAX, &[level(1_000, 1_010, 2, 2)])
        .records(0, &[step(1_100, 1, false), span(1_200, 1_900, 1, 1), scalar(1_950, 2, 0.5)])
        .meta(&[Frame::Name(name(3, "late")), Frame::Lane(lane(1, "loader")), site(3, 20)])
        .records(1, &[span(1_300, 1_400, 1, 3)])
        .index()
        .records(0, &[gap(1_960, 1_990, 7, 0, GapReason::OVERRUN), tensor(2_000, 2)])
        .records(0, &[tensor(2_001, 2), stats(2_001, 10.0), step(2_100, 1, true)])
        .meta(&[Frame::Calibration(calibration(2_150, 51_150))])
        .records(1, &[span(1_500, 2_200, 2, 3)])
        .records(0, &[span(2_200, 2_300, 2, 1)])
        .records(u16::MAX, &[gap(2_400, 2_500, 9, 1, GapReason::OVERRUN)])
        .meta(&[
            Frame::OpenSpan(OpenSpanV1 {
                lane: LaneId(1),
                span: SpanId(3),
                parent: SpanId::NONE,
                name: NameId(3),
                start: Ticks(2_210),
                depth: 0,
            }),
            Frame::Name(name(3, "late")),
            Frame::RecorderCost(RecorderCostV1 { record: 20_000, span: 40_000, unnamed: 0 }),
        ])
        .finish()
}

#[test]
fn a_whole_file_stays_what_it_is() {
    for file in [small(), rich()] {
        let out = check(&file);
        let (before, after) = (open(&file), open(&out));
        assert_eq!(before.missing(), []);
        assert_eq!(after.counts().total(), before.counts().total());
        for (id, lane) in before.lanes().iter() {
            let again = after.lanes().get(id).expect("the lane");
            assert_eq!((again.totals, again.claims), (lane.totals, lane.claims));
            assert_eq!((again.next, again.steps, again.state), (lane.next, lane.steps, lane.state));
        }
        assert_eq!(after.span(), before.span());
    }
}

#[test]
fn a_prefix_of_any_length_gives_all_chunks_that_are_whole() {
    let whole = rich();
    for len in 0..=whole.len() {
        check(&whole[..len]);
    }
}

#[test]
fn a_suffix_of_any_length_gives_all_chunks_that_are_whole() {
    let whole = small();
    let last = chunks(&whole).last().expect("chunks").offset;
    for from in 1..=last {
        check(&[&whole[..64], &whole[64.max(from)..]].concat());
        if from > 64 {
            check(&whole[from - 64..]);
        }
    }
}

#[test]
fn a_flipped_bit_costs_its_own_chunk() {
    let whole = rich();
    let mut file = whole.clone();
    for at in 0..whole.len() {
        for bit in [at % 8, (at + 3) % 8] {
            file[at] ^= 1 << bit;
            check(&file);
            file[at] ^= 1 << bit;
        }
    }
}

#[test]
fn damage_in_many_places_costs_what_it_hits() {
    let whole = rich();
    proptest!(ProptestConfig::with_cases(400), |(
        edits in prop::collection::vec((0..whole.len(), any::<u8>()), 1..12),
        cuts in prop::collection::vec((0..whole.len(), 0..5_usize), 0..3),
        inserted in prop::collection::vec((0..whole.len(), 0..2_usize), 0..3),
    )| {
        // Chunks are multiples of 64 bytes: what is lost of one is never as long as another.

        let mut file = whole.clone();
        edits.iter().for_each(|&(at, byte)| file[at] = byte);
        for (at, len) in cuts {
            let at = at.min(file.len());
            let end = (at + 64 * len + 1).min(file.len());
            file.drain(at..end);
        }
        for (at, len) in inserted {
            let at = at.min(file.len());
            file.splice(at..at, std::iter::repeat_n(0xA5, 64 * len + 3));
        }
        if !intact_chunks(&file).is_empty() {
            check(&file);
        }
    });
}

#[test]
fn without_a_header_the_run_is_known_from_its_frame_and_the_rate_from_the_calibrations() {
    let mut file = rich();
    file[20] ^= 1;
    let out = check(&file);
    let after = open(&out);
    assert_eq!(after.header().run, run().run);
    assert_eq!((after.header().created_ns, after.header().ticks_per_second), (0, 1_000_000_000));
    let lost: Vec<_> = after.lost().filter(|gap| gap.reason == GapReason::CORRUPT).collect();
    assert_eq!(lost.iter().map(|gap| (gap.lane, gap.records)).collect::<Vec<_>>(), [(None, 0)]);
    // Nor is the run known when its frame is damaged too.
    file[64 + 70] ^= 1;
    assert_eq!(open(&check(&file)).header().run, RunId([0; 16]));
}

#[test]
fn what_is_no_recording_is_not_salvaged() {
    for file in
        [b"not a recording at all, and of more than 64 bytes, as a photograph is".as_slice(), b"no"]
    {
        let refused = Recording::open_damaged(file, "photo.jpg", &|_| ()).expect_err("refused");
        assert!(refused.to_string().starts_with("photo.jpg: "), "{refused}");
    }
    let mut newer = small();
    newer[8] = 2;
    patch::header_crc(&mut newer, 0);
    Recording::open_damaged(&newer, "newer", &|_| ()).expect_err("its chunks may be others");
}

#[test]
fn names_stand_before_their_use_even_when_only_their_repetition_survived() {
    let mut file = small();
    file[64 + 70] ^= 1;
    let out = check(&file);
    let first = chunks(&out)[0];
    assert_eq!(first.kind, 2);
    let text = String::from_utf8_lossy(&out[first.offset..first.end]).into_owned();
    assert!(text.contains("forward") && text.contains("loss"), "{text}");
}

#[test]
fn a_hole_is_declared_and_counts_once() {
    let mut file = small();
    let lane_0: Vec<_> = chunks(&file).into_iter().filter(|c| c.kind == 1 && c.lane == 0).collect();
    file[lane_0[1].offset + 8] ^= 1;
    let out = check(&file);
    let after = open(&out);
    let declared: Vec<_> =
        after.missing().iter().map(|m| (m.declared, m.position, m.gap.records)).collect();
    assert_eq!(declared, [(true, Some(3), 3)]);
    assert_eq!(after.lost().count(), 1);
}

#[test]
fn where_a_lane_begins_does_not_depend_on_where_its_holes_are_declared() {
    // A salvaged file declares the holes of a lane right before its next chunk, or at the end. A hole
    // that stood before the lane's claim silenced it, as did a step that was told: what was missing
    // from the claim up to the first chunk was so in the salvaged file alone.
    let (id, records, reason) = (LaneId(1), 12, GapReason::LAPPED);
    let hole = |sequence| Frame::Hole(HoleV1 { lane: id, sequence, records, reason });
    let claim = |sequence| Frame::Lane(LaneV1 { sequence, ..lane(1, "loader") });
    let told = |sequence| Frame::LaneStep(LaneStepV1::of(id, sequence, StepState::START));
    let start =
        |sequence| Frame::LaneStart(LaneStartV1 { lane: id, sequence, ..LaneStartV1::default() });
    let cases: [(&[Frame<'_>], u64); 16] = [
        // Nothing but a claim, or the lane's start in a later file, says that it does not begin at 0.
        (&[], 0),
        (&[hole(50)], 0),
        (&[hole(5)], 0),
        (&[hole(3)], 0),
        (&[told(5)], 0),
        (&[start(3)], 3),
        (&[start(3), told(5), claim(9)], 3),
        // The first one.
        (&[claim(0), claim(4)], 0),
        (&[told(4), claim(2)], 2),
        // A hole may lie before it, on whatever side it is declared, and says nothing when it does not.
        (&[hole(50), claim(0)], 0),
        (&[claim(0), hole(50)], 0),
        (&[hole(50), claim(4)], 4),
        (&[hole(2), claim(4)], 2),
        (&[claim(4), hole(2)], 2),
        // So may the first chunk, which is at 5.
        (&[hole(50), claim(9)], 5),
        (&[claim(9), hole(7)], 5),
    ];
    for (frames, begin) in cases {
        let file = Builder::started().meta(frames).skip(1, 5).records(1, &[scalar(1_000, 2, 1.0)]);
        let file = file.unfinished();
        let recording = open(&file);
        let of_lane = recording.missing().iter().filter(|missing| missing.gap.lane == Some(id));
        let before =
            of_lane.filter_map(|missing| missing.position).filter(|position| *position < 5);
        assert_eq!(before.min().unwrap_or(5), begin, "{frames:?}");
        check(&file);
    }
}

#[test]
fn a_damaged_chunk_that_counts_no_records_is_no_hole() {
    let mut file = Builder::started().records(0, &[]).records(0, &[scalar(1_000, 2, 1.0)]).finish();
    let empty = chunks(&file)[1].offset;
    // Times of what is not there. Its finding says so, and nothing is missing.
    file[empty + 40] ^= 1;
    patch::header_crc(&mut file, empty);
    assert_eq!(open(&file).findings().len(), 1);
    assert_eq!(open(&file).gaps(), []);
    check(&file);

    // A newer version wrote something that it does not count in records, and that is damaged.
    let mut file = Builder::started().records(0, &[scalar(1_000, 2, 1.0)]).finish();
    let newer = chunks(&file)[1].offset;
    file[newer + 5] = 1;
    patch::put_word(&mut file, newer + 20, 0);
    patch::header_crc(&mut file, newer);
    file[newer + 70] ^= 1;
    let recording = open(&file);
    let lost: Vec<_> = recording.missing().iter().map(|m| (m.gap.lane, m.gap.records)).collect();
    assert!(lost.contains(&(Some(LaneId(0)), 0)), "{lost:?}");
    check(&file);
}

#[test]
fn the_totals_count_the_gaps_that_were_added() {
    let mut file = rich();
    let meta = chunks(&file).into_iter().filter(|chunk| chunk.kind == 2).nth(1).expect("metadata");
    file[meta.offset + 70] ^= 1;
    let out = check(&file);
    let own = |recording: &Recording<'_>| {
        let lane = recording.lanes().get(LaneId::RECORDER).expect("the recorder's");
        (lane.next, lane.totals.map(|totals| totals.records))
    };
    assert_eq!(own(&open(&file)), (2, Some(2)));
    assert_eq!(own(&open(&out)), (3, Some(3)));
}

#[test]
fn gaps_that_find_no_room_on_the_recorders_lane_go_elsewhere() {
    for (end, lane) in [(u64::MAX, u16::MAX - 1), (u64::MAX - 1, u16::MAX)] {
        let totals = TotalsV1 { lane: LaneId::RECORDER, records: end, ..TotalsV1::default() };
        let mut file = Builder::started()
            .records(u16::MAX, &[level(1_000, 1_010, 2, 2)])
            .meta(&[Frame::Totals(totals)])
            .unfinished();
        file[64 + 70] ^= 1;
        let out = salvaged(&file);
        let after = open(&out);
        assert_eq!(after.verify(), []);
        assert_eq!(gaps(&after), gaps(&open(&file)));
        let last = chunks(&out).into_iter().rfind(|chunk| chunk.kind == 1).expect("the gap");
        assert_eq!(last.lane, lane);
    }
}

#[test]
fn totals_that_are_less_than_what_is_there_are_left_out() {
    let totals = TotalsV1 { lane: LaneId(0), records: 1, ..TotalsV1::default() };
    let file = Builder::started()
        .records(0, &[scalar(1_000, 2, 1.0), scalar(1_100, 2, 1.0)])
        .meta(&[Frame::Totals(totals)])
        .unfinished();
    assert_eq!(open(&file).findings().len(), 1);
    let out = check(&file);
    assert_eq!(open(&out).lanes().get(LaneId(0)).and_then(|lane| lane.totals), None);
}

#[test]
fn of_definitions_that_differ_the_first_whole_one_counts() {
    let terminal =
        |complete| Frame::Terminal(TerminalV1 { complete, reason: None, ticks: Ticks(9_000) });
    let mut file = Builder::new()
        .meta(&[Frame::Name(name(1, "first")), Frame::Run(run())])
        .meta(&[Frame::Name(name(1, "second"))])
        .records(0, &[scalar(1_000, 1, 1.0)])
        .meta(&[terminal(false), terminal(true)])
        .unfinished();
    assert_eq!(open(&check(&file)).names().text(NameId(1)), Some("first"));
    file[64 + 70] ^= 1;
    assert_eq!(open(&check(&file)).names().text(NameId(1)), Some("second"));
}

#[test]
fn what_a_newer_writer_wrote_is_kept() {
    let mut file = Builder::started()
        .records(0, &[scalar(1_000, 2, 1.0)])
        .meta(&[Frame::Tag(TagV1 { key: "k", value: "v" })])
        .finish();
    let all = chunks(&file);
    // The tag becomes a frame of a newer kind.
    file[all[2].offset + 64..][..2].copy_from_slice(&999_u16.to_le_bytes());
    patch::payload_crc(&mut file, all[2].offset);
    let out = check(&file);
    assert_eq!(open(&out).meta().unknown_frames, 1);
    // A chunk of a newer kind is copied, bytes and all.
    file[all[2].offset + 4] = 77;
    patch::header_crc(&mut file, all[2].offset);
    let out = check(&file);
    assert_eq!(open(&out).chunk_counts().unknown, 1);
    let payload = |file: &[u8]| {
        let chunk = chunks(file).into_iter().find(|chunk| chunk.kind == 77).expect("it");
        file[chunk.offset + 64..chunk.end].to_vec()
    };
    assert_eq!(payload(&out), payload(&file));
}

#[test]
fn a_long_file_has_an_index_every_1024_chunks() {
    let mut builder = Builder::started();
    for i in 0..2_500_u64 {
        builder = builder.records((i % 3) as u16, &[scalar(1_000 + i, 2, 1.0)]);
        if i % 900 == 0 {
            builder = builder.index();
        }
    }
    let mut file = builder.finish();
    let hit = chunks(&file)[1_500].offset;
    file[hit + 70] ^= 1;
    let out = check(&file);
    assert!(chunks(&out).iter().filter(|chunk| chunk.kind == 3).count() >= 3);
}
