//! What is missing is a gap: recorded, left out of a lane's sequence, or never asked for.

mod support;

use support::record::{gap, level, micro_batch, scalar, span, step};
use support::{Builder, calibration, lane, name};
use tmrun::scan::{ChunkState, Gap, Recording, Status};
use tmrun_formats::wire::{Frame, HoleV1, Place, Record};
use tmrun_formats::{GapClass, GapReason, LaneId, NameId, Planes, SpanId, Ticks};

fn open(file: &[u8]) -> Recording<'_> {
    Recording::open(file, "test").expect("a header")
}

fn lost(recording: &Recording<'_>) -> Vec<Gap> {
    recording.lost().copied().collect()
}

#[test]
fn a_gap_record_belongs_to_the_lane_of_its_payload() {
    let file = Builder::started()
        .records(0, &[gap(1_500, 1_600, 12, 0, GapReason::OVERRUN), scalar(1_700, 2, 1.0)])
        .records(
            u16::MAX,
            &[
                gap(1_800, 1_900, 5, 3, GapReason::OVERRUN),
                gap(1_850, 1_950, 7, u16::MAX, GapReason::NO_LANE),
                gap(1_860, 1_960, 0, 0, GapReason::FOCUS),
            ],
        )
        .finish();
    let recording = open(&file);
    assert_eq!(recording.verify(), []);
    let found: Vec<_> = recording
        .gaps()
        .iter()
        .map(|gap| (gap.class, gap.reason, gap.lane, gap.records, gap.first_ns))
        .collect();
    let (lost, quiet) = (GapClass::Lost, GapClass::NotRequested);
    assert_eq!(
        found,
        [
            (lost, GapReason::OVERRUN, Some(LaneId(0)), 12, 500),
            (lost, GapReason::OVERRUN, Some(LaneId(3)), 5, 800),
            (lost, GapReason::NO_LANE, None, 7, 850),
            (quiet, GapReason::FOCUS, Some(LaneId(0)), 0, 860),
        ]
    );
    assert_eq!(recording.gaps()[0].planes, Planes::HOST_TIME);
    assert_eq!(recording.gaps()[0].groups, 12);
}

#[test]
fn a_hole_in_a_lane_is_a_lost_gap_of_exactly_that_many_records() {
    let file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .skip(0, 5)
        .records(0, &[span(1_900, 2_000, 7, 1)])
        .finish();
    let recording = open(&file);
    let gaps = lost(&recording);
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].reason, gaps[0].lane), (GapReason::CORRUPT, Some(LaneId(0))));
    assert_eq!((gaps[0].records, gaps[0].groups), (5, 0));
    assert_eq!((gaps[0].first, gaps[0].last), (Ticks(1_100), Ticks(2_000)));
    assert_eq!(recording.status(), Status::Damaged);
    let finding = recording.findings()[0];
    assert!(finding.to_string().contains("position of the next record of a lane"), "{finding}");
}

#[test]
fn totals_that_count_more_are_a_hole_at_the_end() {
    let file = Builder::started().records(0, &[span(1_000, 1_100, 1, 1)]).skip(0, 9).finish();
    let recording = open(&file);
    let gaps = lost(&recording);
    assert_eq!(gaps.iter().map(|gap| gap.records).collect::<Vec<_>>(), [9]);
    assert_eq!(gaps[0].first, Ticks(1_100));
    assert_eq!(gaps[0].last, Ticks(2_100), "the terminal's");
}

#[test]
fn a_lane_that_is_known_from_its_totals_alone_has_lost_everything() {
    let file = Builder::started().skip(4, 3).finish();
    let recording = open(&file);
    let gaps = lost(&recording);
    assert_eq!((gaps[0].lane, gaps[0].records), (Some(LaneId(4)), 3));
}

#[test]
fn a_chunk_that_is_there_twice_is_damage_and_counts_once() {
    let records = [span(1_000, 1_100, 1, 1)];
    let place = Place { lane: LaneId(0), sequence: 0, span: SpanId(1) };
    let file = Builder::started().records(0, &records).chunk_of(place, &records).finish();
    let recording = open(&file);
    assert_eq!(recording.counts().total(), 1);
    assert_eq!(recording.chunks().nth(2).map(|info| info.state), Some(ChunkState::Displaced));
    assert_eq!(recording.status(), Status::Damaged);
    let gaps = lost(&recording);
    assert_eq!(
        gaps.iter().map(|gap| (gap.reason, gap.records)).collect::<Vec<_>>(),
        [(GapReason::CORRUPT, 0)]
    );
    let finding = recording.findings()[0];
    assert!(finding.to_string().contains("expected 0x1, found 0x0"), "{finding}");
}

#[test]
fn a_chunk_at_the_end_of_all_positions_is_not_believed() {
    let records = [span(1_000, 1_100, 1, 1), span(1_100, 1_200, 2, 1)];
    let place = Place { lane: LaneId(0), sequence: u64::MAX, span: SpanId(1) };
    let file = Builder::started().chunk_of(place, &records).unfinished();
    let recording = open(&file);
    assert_eq!(recording.chunks().nth(1).map(|info| info.state), Some(ChunkState::Displaced));
    assert_eq!(recording.counts().total(), 0);
}

#[test]
fn a_lane_keeps_its_positions_over_release_and_reclaim() {
    let file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .meta(&[Frame::Lane(lane(0, "second"))])
        .records(0, &[span(1_200, 1_300, 2, 1)])
        .finish();
    let recording = open(&file);
    assert_eq!(recording.verify(), []);
    let lane = recording.lanes().get(LaneId(0)).expect("the lane");
    assert_eq!((lane.claims, lane.records, lane.next), (2, 2, 2));
    assert_eq!(lane.claim.map(|claim| claim.name), Some("second"));
}

#[test]
fn a_level_that_does_not_ask_for_a_plane_is_a_gap_that_is_no_loss() {
    let file = Builder::started()
        .records(u16::MAX, &[level(1_000, 1_010, 1, 1), level(2_000, 2_020, 1, 3)])
        .records(0, &[scalar(1_500, 2, 0.5), scalar(2_990, 2, 0.25)])
        .records(u16::MAX, &[level(3_000, 3_030, 3, 2)])
        .finish();
    let recording = open(&file);
    assert_eq!(recording.verify(), []);
    assert_eq!(recording.lost().count(), 0);
    let gaps = recording.gaps();
    assert!(gaps.iter().all(|gap| gap.reason == GapReason::LEVEL && gap.lane.is_none()));
    let ranges: Vec<_> = gaps.iter().map(|gap| (gap.first.0, gap.last.0)).collect();
    // Raised coverage begins when armed, lowered coverage ends when asked, the terminal is the end.
    assert_eq!(ranges, [(1_000, 2_020), (3_000, 4_030)]);
    assert!(gaps[0].planes.contains(Planes::TENSORS.union(Planes::STATISTICS)));
    assert!(!gaps[0].planes.contains(Planes::HOST_TIME));
    assert_eq!(gaps[1].planes, Planes::STATISTICS);
    assert_eq!(gaps[0].records, 0);
}

#[test]
fn without_a_level_record_nothing_is_said_not_to_have_been_asked_for() {
    let file = Builder::started().records(0, &[scalar(1_500, 2, 0.5)]).finish();
    assert_eq!(open(&file).gaps(), []);
}

#[test]
fn a_flood_of_gaps_is_added_up_and_every_record_counted() {
    let flood: Vec<Record> =
        (0..4_000).map(|i| gap(2_000 + i, 2_001 + i, 2, 0, GapReason::OVERRUN)).collect();
    let mut builder = Builder::started();
    for _ in 0..40 {
        builder = builder.records(0, &flood);
    }
    let file = builder.finish();
    let recording = open(&file);
    assert!(recording.gaps().len() <= 40 * 64, "{}", recording.gaps().len());
    let listed = recording.gaps().len() as u64;
    assert_eq!(listed + recording.merged_gaps(), 160_000);
    assert_eq!(recording.lost().map(|gap| gap.records).sum::<u64>(), 320_000);
    assert_eq!(recording.lost().map(|gap| gap.last.0).max(), Some(6_000));
}

#[test]
fn a_chunk_knows_the_step_that_was_open_before_it() {
    let file = Builder::started()
        .records(0, &[step(1_000, 5, false), micro_batch(1_010, 5, 0, false)])
        .records(0, &[scalar(1_020, 2, 1.0), micro_batch(1_030, 5, 0, true)])
        .records(1, &[scalar(1_025, 2, 1.0)])
        .records(0, &[scalar(1_040, 2, 1.0)])
        .skip(0, 2)
        .records(0, &[scalar(1_060, 2, 1.0), step(1_070, 5, true)])
        .records(0, &[step(1_080, 6, false), gap(1_081, 1_082, 1, 0, GapReason::OVERRUN)])
        .records(0, &[scalar(1_090, 2, 1.0)])
        .finish();
    let recording = open(&file);
    let states: Vec<_> = recording
        .record_chunks()
        .filter(|chunk| chunk.lane() == LaneId(0))
        .map(|chunk| {
            let state = chunk.step();
            (state.open.map(|open| (open.number, open.micro_batch)), state.sure)
        })
        .collect();
    assert_eq!(
        states,
        [
            (None, true),
            (Some((5, Some(0))), true),
            (Some((5, None)), true),
            (Some((5, None)), false),
            (None, true),
            (Some((6, None)), false),
        ]
    );
    let other = recording.record_chunks().find(|chunk| chunk.lane() == LaneId(1));
    assert_eq!(other.map(|chunk| chunk.step().open), Some(None), "a step is its lane's alone");
    assert_eq!(recording.lanes().get(LaneId(0)).map(|lane| lane.steps.counts.steps), Some(2));
}

#[test]
fn a_name_keeps_its_first_meaning_and_a_second_one_is_damage() {
    let file = Builder::started()
        .meta(&[Frame::Name(name(1, "forward")), Frame::Name(name(1, "backward"))])
        .finish();
    let recording = open(&file);
    assert_eq!(recording.names().text(NameId(1)), Some("forward"));
    assert_eq!(recording.findings().len(), 1);
    assert_eq!(lost(&recording)[0].planes, Planes::RECORDER);
}

#[test]
fn calibrations_that_run_backwards_are_set_aside_and_repeats_count_once() {
    let mut aside = calibration(1_500, 90_000);
    aside.set_aside = true;
    let frames = [calibration(2_000, 51_000), calibration(3_000, 40_000), aside];
    let frames: Vec<_> = frames.into_iter().map(Frame::Calibration).collect();
    let file = Builder::started().meta(&frames).meta(&frames[..1]).unfinished();
    let recording = open(&file);
    let calibrations = recording.calibrations();
    assert_eq!((calibrations.used, calibrations.set_aside), (2, 2));
    let clock = recording.clock();
    assert_eq!([900, 1_000, 1_500, 2_000].map(|t| clock.ns(Ticks(t))), [0, 0, 500, 1_000]);
}

#[test]
fn an_uncalibrated_file_counts_from_its_first_tick() {
    let file = Builder::new().records(0, &[scalar(7_000, 2, 1.0)]).unfinished();
    let recording = open(&file);
    assert_eq!(recording.clock().ns(Ticks(7_250)), 250);
}

fn hole(lane: u16, sequence: u64, records: u64, reason: GapReason) -> Frame<'static> {
    Frame::Hole(HoleV1 { lane: LaneId(lane), sequence, records, reason })
}

fn lost_records(recording: &Recording<'_>) -> Vec<(GapReason, u64)> {
    lost(recording).iter().map(|gap| (gap.reason, gap.records)).collect()
}

#[test]
fn a_hole_that_the_file_declares_is_lost_for_its_reason_and_no_damage() {
    let (lapped, torn) = (GapReason::LAPPED, GapReason::TORN);
    let file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .skip(0, 5)
        .meta(&[hole(0, 1, 3, lapped), hole(0, 4, 2, torn)])
        .records(0, &[span(1_900, 2_000, 7, 1)])
        .finish();
    let recording = open(&file);
    assert_eq!(recording.verify(), []);
    assert_eq!(lost_records(&recording), [(lapped, 3), (torn, 2)]);
}

#[test]
fn a_hole_or_a_chunk_of_no_records_says_nothing() {
    let file = Builder::started()
        .meta(&[hole(0, 50, 0, GapReason::LAPPED)])
        .chunk_of(Place { lane: LaneId(0), sequence: 70, span: SpanId(1) }, &[])
        .records(0, &[scalar(1_000, 2, 1.0)])
        .finish();
    let recording = open(&file);
    assert_eq!(recording.findings(), []);
    assert_eq!(recording.gaps(), []);
    assert_eq!(recording.lanes().get(LaneId(0)).map(|lane| lane.end), Some(1));
}

#[test]
fn what_is_not_declared_of_a_hole_is_damage() {
    let file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .skip(0, 9)
        // Twice, and beyond where the records begin again.
        .meta(&[hole(0, 8, 9, GapReason::LAPPED), hole(0, 3, 2, GapReason::LAPPED)])
        .meta(&[hole(0, 3, 2, GapReason::LAPPED)])
        .records(0, &[span(1_900, 2_000, 7, 1); 20])
        .finish();
    let recording = open(&file);
    let mut counts: Vec<_> = recording
        .missing()
        .iter()
        .map(|missing| (missing.position, missing.gap.records, missing.declared))
        .collect();
    counts.sort_unstable();
    let expected = [(1, 2, false), (3, 2, true), (5, 3, false), (8, 2, true)];
    assert_eq!(counts, expected.map(|(at, records, declared)| (Some(at), records, declared)));
    assert_eq!(recording.findings().len(), 1, "one hole, one finding");
    assert_eq!(recording.status(), Status::Damaged);
}

#[test]
fn a_hole_behind_the_last_chunk_counts_without_totals() {
    let file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .meta(&[hole(0, 1, 4, GapReason::TORN), hole(9, 0, 2, GapReason::LAPPED)])
        .unfinished();
    let recording = open(&file);
    assert_eq!(recording.findings(), []);
    assert_eq!(recording.status(), Status::NotFinished);
    let lane = recording.lanes().get(LaneId(0)).expect("the lane");
    assert_eq!((lane.next, lane.end), (1, 5));
    let mut lost = lost_records(&recording);
    lost.sort_unstable();
    assert_eq!(lost, [(GapReason::LAPPED, 2), (GapReason::TORN, 4)]);
}

#[test]
fn damage_beside_a_declared_hole_is_not_excused_by_it() {
    let mut file = Builder::started()
        .records(0, &[span(1_000, 1_100, 1, 1)])
        .skip(0, 5)
        .meta(&[hole(0, 1, 5, GapReason::LAPPED)])
        .meta(&[Frame::Calibration(calibration(1_500, 50_500))])
        .records(0, &[span(1_900, 2_000, 7, 1)])
        .finish();
    let chunk = support::naive::chunks(&file)[3];
    file[chunk.offset + 8] ^= 1;
    let recording = open(&file);
    let mut lost = lost_records(&recording);
    lost.sort_unstable();
    assert_eq!(lost, [(GapReason::LAPPED, 5), (GapReason::CORRUPT, 0)]);
}
