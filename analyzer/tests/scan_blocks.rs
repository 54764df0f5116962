//! Chunks that are walked again are what they were when the file was opened.

mod support;

use std::collections::BTreeMap;

use rayon::iter::ParallelIterator;
use support::Builder;
use support::naive;
use support::record::{micro_batch, span, step};
use tmrun::scan::{ChunkState, RecordChunk, Recording, StepState};
use tmrun_formats::wire::{Kind, Place, Record, Step};
use tmrun_formats::{LaneId, SpanId};

/// So many chunks that there are several windows, and blocks of every kind of beginning.
const CHUNKS: u64 = 10_000;

/// Three lanes with steps that go over chunks and over blocks, with positions that nobody wrote,
/// chunks that are there twice, payloads that do not hold, and bytes that are no chunk.
fn file() -> Vec<u8> {
    let mut builder = Builder::started();
    for i in 0..CHUNKS {
        let (lane, number) = ((i % 3) as u16, i / 3_000);
        let ticks = 1_000 + 10 * i;
        let record = match i % 1_000 {
            0..3 => step(ticks, number, false),
            400..403 => micro_batch(ticks, number, 7, false),
            500..503 => micro_batch(ticks, number, 7, true),
            900..903 if number % 2 == 0 => step(ticks, number, true),
            _ => span(ticks, ticks + 5, i as u32 + 1, 1),
        };
        builder = builder.records(lane, &[record]);
        if i % 700 == 650 {
            builder = builder.skip(lane, 2).index();
        }
        if i % 900 == 800 {
            let place = Place { lane: LaneId(lane), sequence: 1, span: SpanId(1) };
            builder = builder.chunk_of(place, &[span(ticks, ticks, 1, 1)]);
        }
    }
    let mut file = builder.finish();
    for chunk in naive::chunks(&file).iter().skip(20).step_by(97) {
        let at = chunk.offset + if chunk.offset % 2 == 0 && chunk.lane == 2 { 4 } else { 70 };
        file[at] ^= 1;
    }
    file
}

/// The state behind a chunk's records.
fn behind(chunk: &RecordChunk<'_>) -> StepState {
    let after = |state: StepState, record: &Record| match record.payload::<Step>() {
        Some(step) => state.after(&record.header(), &step),
        None => state,
    };
    chunk.records().iter().fold(chunk.step(), after)
}

#[test]
fn steps_go_on_over_blocks_and_damage() {
    let file = file();
    let recording = Recording::open(&file, "test").expect("a header");
    let counts = recording.chunk_counts();
    assert!(recording.blocks().len() > 10 && counts.damaged > 50);
    let states: Vec<ChunkState> = recording.chunks().map(|info| info.state).collect();
    assert_eq!(states.len() as u64, counts.all);
    let of = |wanted| states.iter().filter(|&&state| state == wanted).count() as u64;
    assert_eq!(of(ChunkState::Damaged) + of(ChunkState::Displaced), counts.damaged);
    assert!(of(ChunkState::Displaced) > 5);

    let mut lanes: BTreeMap<LaneId, (u64, StepState)> = BTreeMap::new();
    let mut marks = 0;
    for chunk in recording.record_chunks() {
        let lane = lanes.entry(chunk.lane()).or_insert((0, StepState::START));
        let whole = lane.0 == chunk.first_sequence();
        assert!(lane.0 <= chunk.first_sequence(), "no position comes twice");
        let expected = if whole { lane.1 } else { lane.1.doubted() };
        assert_eq!(chunk.step(), expected, "the chunk at {}", chunk.info().offset);
        *lane = (chunk.first_sequence() + chunk.records().len() as u64, behind(&chunk));
        let is_mark = |record: &&Record| record.header().kind == Kind::Step as u8;
        marks += chunk.records().iter().filter(is_mark).count();
    }
    assert!(marks > 80, "{marks}");
    for (id, lane) in recording.lanes().iter() {
        assert_eq!(lanes.get(&id).map(|lane| lane.1), Some(lane.state));
    }
    let records = recording.record_chunks().map(|chunk| chunk.records().len() as u64);
    assert_eq!(records.sum::<u64>(), recording.counts().total());
    assert_eq!(recording.record_chunks().count() as u64, counts.records);
}

#[test]
fn all_cores_see_the_chunks_in_the_same_states() {
    let file = file();
    let recording = Recording::open(&file, "test").expect("a header");
    let of = |chunk: RecordChunk<'_>| (*chunk.info(), chunk.records().len());
    let all: Vec<_> = recording.par_record_chunks().map(of).collect();
    assert!(all == recording.record_chunks().map(of).collect::<Vec<_>>());
}
