//! A recorded process that dies at a moment of nobody's choice: `tmrun salvage` makes a whole
//! recording of what it leaves, with every record that it had stored.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use support::command::tmrun;
use support::dying::{self, Count, GROUPS, LANES, rings};
use support::slots;
use tmrun::salvage::{Process, Rings, join};
use tmrun::scan::{Recording, Status};
use tmrun_formats::rings::{LaneImage, RingsHeader};
use tmrun_formats::wire::{Kind, Op, OpInput, Record, RecordHeader, Scalar, Shape, Span};
use tmrun_formats::{ExecutionStep, GapReason, LaneId, Level, SpanId, SpanKind, TensorId, Ticks};

#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    if let Some(task) = dying::task() {
        dying::record_until_it_dies(&task);
    }
}

fn this_test() -> Command {
    dying::test("records_until_it_dies")
}

/// What a process of some thousand records leaves.
fn left(policy: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    dying::died(this_test(), folder.path(), policy, "abort", 5_000);
    folder
}

/// Salvages what a process left, and holds it against what the process said that it recorded.
fn salvaged(folder: &Path, policy: &str, said: [u64; LANES.len()], of: &Path) {
    let out = folder.join("whole.tmrun");
    let output =
        tmrun(&["salvage", &of.to_string_lossy(), "--force", "-o", &out.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");

    let bytes = std::fs::read(&out).expect("the result");
    let recording = Recording::open(&bytes, "whole").expect("a header");
    assert_eq!(recording.verify(), [], "{text}");
    assert_eq!(recording.status(), Status::Finished);
    let verified = tmrun(&["verify", &out.to_string_lossy()]);
    assert!(matches!(verified.status.code(), Some(0 | 3)), "verify accepts it: {verified:?}");
    let rings = std::fs::read(rings(folder)).expect("the rings are still there");
    assert!(slots::all_in(&rings, &recording) > 0, "a process that records has some in its rings");

    let mut stored = 0;
    for (lane, said) in LANES.into_iter().zip(said) {
        let chunks = recording.record_chunks().filter(|chunk| chunk.lane() == lane);
        let scalars = chunks
            .flat_map(|chunk| chunk.records())
            .filter_map(|record| Some(record.payload::<Scalar>()?.value as u64));
        let values: Vec<_> = scalars.collect();
        assert!(values.is_sorted_by(|a, b| a < b), "each once, in order");
        let [dropped, lapped, torn] = lost(&recording, lane);
        let all = values.len() as u64 + dropped + lapped;
        assert!(
            (said..=said + 1).contains(&all),
            "{lane:?}: {all} of {said}: {dropped} {lapped} {text}"
        );
        assert!(torn <= 1, "only the slot in flight");
        if policy == "newest" {
            assert_eq!(dropped, 0);
        } else {
            assert_eq!((lapped, torn), (0, 0));
        }
        let lane = recording.lanes().get(lane).expect("the lane");
        assert!(lane.claim.is_some() && lane.totals.is_some());
        stored += values.len() as u64;
    }
    operations(&recording, policy, Count::open(folder).of(GROUPS).load(Ordering::Relaxed));
    let told = [GapReason::OVERRUN, GapReason::LAPPED, GapReason::TORN];
    let other = recording.lost().filter(|gap| !told.contains(&gap.reason));
    assert_eq!(other.count(), 0, "nothing else is missing: {:?}", recording.gaps());
    assert_eq!(recording.counts().of(Kind::Scalar), stored, "no lane but these");

    let meta = recording.meta();
    let open = meta.open_spans.iter().filter_map(|open| recording.names().text(open.name));
    assert_eq!(open.collect::<Vec<_>>(), ["outer", "inner"]);
    let terminal = meta.terminal.expect("it says how it ended");
    assert!(!terminal.complete);
    assert!(terminal.reason.is_some_and(|reason| reason.contains("ended without finishing")));
    assert_eq!(meta.run.map(|run| run.entrypoint), Some("dies"));
    assert!(recording.calibrations().used >= 1, "the clock");
    assert!(recording.names().iter().any(|name| name.text == "value"));
    assert!(meta.devices.values().any(|device| device.name == "cpu"));
}

/// Records of a lane that were dropped, stored over, and being stored.
fn lost(recording: &Recording<'_>, lane: LaneId) -> [u64; 3] {
    [GapReason::OVERRUN, GapReason::LAPPED, GapReason::TORN].map(|reason| {
        let gaps = recording.lost().filter(|gap| gap.lane == Some(lane));
        gaps.filter(|gap| gap.reason == reason).map(|gap| gap.records).sum()
    })
}

/// Holds that operations of three records each are whole or not there, and that all the others of those
/// that the process said were counted, with the one that it was storing.
fn operations(recording: &Recording<'_>, policy: &str, said: u64) {
    let chunks = recording.record_chunks().filter(|chunk| chunk.lane() == GROUPS);
    let records = chunks.flat_map(|chunk| chunk.records().to_vec());
    let records: Vec<_> = records.filter(|record| record.kind() != Some(Kind::Gap)).collect();
    let numbers = records.chunks(3).map(|group| {
        let [head, shape, input] = group else { panic!("{group:?} is not whole") };
        let TensorId(number) = head.payload::<Op>().expect("an operation").output;
        let dims = shape.payload::<Shape>().expect("its shape");
        assert_eq!(dims.used(shape.header().flags), [number]);
        let inputs = input.payload::<OpInput>().expect("its input").tensors;
        assert_eq!(inputs[0], TensorId(number));
        number
    });
    let numbers: Vec<_> = numbers.collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once, in order");
    let [dropped, lapped, torn] = lost(recording, GROUPS);
    let all = 3 * numbers.len() as u64 + dropped + lapped;
    println!("{said} operations: {dropped} {lapped} {torn}");
    let mut possible = vec![(3 * said, 0), (3 * said + 3, 0)];
    if policy == "newest" {
        assert_eq!(dropped, 0);
        possible.push((3 * said, 3));
    } else {
        assert_eq!(lapped, 0);
    }
    assert!(possible.contains(&(all, torn)), "{all} of {said} operations, and {torn} in flight");
}

/// Ends children of a program so, at moments of nobody's choice, and salvages what they leave: by
/// the recording's file and by that of the rings in turn.
fn ended(program: impl Fn() -> Command, policy: &str, how: &str, rounds: usize) {
    for (round, moment) in dying::moments().take(rounds).enumerate() {
        let dir = tempfile::tempdir().expect("a folder");
        let said = dying::died(program(), dir.path(), policy, how, moment);
        println!("{how}, {policy}: {said:?} records in, asked for {moment}");
        let of = if round % 2 == 0 { dir.path().join("run.tmrun") } else { rings(dir.path()) };
        salvaged(dir.path(), policy, said, &of);
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_stored() {
    ended(this_test, "drop", "kill", 45);
}

#[test]
fn a_killed_process_that_keeps_the_newest_loses_the_slot_in_flight_at_most() {
    ended(this_test, "newest", "kill", 40);
}

#[test]
fn however_a_process_ends_its_rings_are_joined_to_what_was_drained() {
    for how in ["abort", "exit", "hook"] {
        for policy in ["drop", "newest"] {
            ended(this_test, policy, how, 8);
        }
    }
}

#[test]
#[ignore = "builds the recorder once more"]
fn a_panic_that_aborts_loses_nothing_either() {
    let program = built_to_abort();
    for policy in ["drop", "newest"] {
        ended(|| Command::new(&program), policy, "panic", 20);
    }
}

/// The child as a program of its own, which is built with `panic = "abort"`.
fn built_to_abort() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("panic-abort");
    let ran = Command::new(env!("CARGO"))
        .args(["build", "--locked", "-p", "tmrun-test-library", "--example", "dies"])
        .args(["--config", "profile.dev.panic='abort'", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    target.join("debug/examples/dies")
}

#[test]
fn rings_alone_are_salvaged_when_their_recording_is_gone() {
    let dir = left("newest");
    std::fs::remove_file(dir.path().join("run.tmrun")).expect("it is there");
    let out = dir.path().join("whole.tmrun");
    let rings = rings(dir.path());
    let output = tmrun(&["salvage", &rings.to_string_lossy(), "-o", &out.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(3), "what was drained is lost");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("run.tmrun is gone"), "{text}");
    let bytes = std::fs::read(&out).expect("the result");
    let recording = Recording::open(&bytes, "whole").expect("a header");
    assert_eq!(recording.verify(), []);
    let chunks = recording.record_chunks().filter(|chunk| chunk.lane() == LANES[0]);
    let records: usize = chunks.map(|chunk| chunk.records().len()).sum();
    assert!(records >= 255, "a ring of them, but for the slot in flight: {records}");
}

#[test]
fn the_result_replaces_neither_of_the_two_files() {
    let folder = left("drop");
    let (rings, drained) = (rings(folder.path()), folder.path().join("run.tmrun"));
    for (input, output) in [(&rings, &drained), (&drained, &rings)] {
        let before = std::fs::read(output).expect("it is there");
        let (input, path) = (input.to_string_lossy(), output.to_string_lossy());
        let refused = tmrun(&["salvage", &input, "--force", "-o", &path]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("is the input itself"));
        assert!(std::fs::read(output).expect("it is still there") == before);
    }
}

#[test]
fn a_torn_slot_is_never_taken_for_a_whole_one_whichever_of_its_words_were_stored() {
    let dir = left("newest");
    let bytes = std::fs::read(rings(dir.path())).expect("the rings");
    let header = RingsHeader::decode(&bytes).expect("a header");
    let fit = |number: u64| usize::try_from(number).expect("it fits");
    for (lane, size) in [(LANES[0], 1), (GROUPS, 3)] {
        let (slots, published) = (header.slots, header.block(&bytes, lane).published);
        let block = fit(header.blocks) + usize::from(lane.0) * LaneImage::SIZE;
        let ring = fit(header.rings) + usize::from(lane.0) * fit(slots) * 64;
        let slot = |position: u64| ring + fit(position % slots) * 64;
        // The slots of the oldest records are being stored to: any of their words may be the new ones.
        for words in 0..=u8::MAX {
            let mut torn = bytes.clone();
            let reserved = block + LaneImage::RESERVED;
            torn[reserved..][..8].copy_from_slice(&(published + size).to_le_bytes());
            for (nth, position) in (0..).zip(published..published + size) {
                let (last, _) = Record::slice(&bytes[slot(position - size)..][..64]);
                let stored = support::at(&last[0], position);
                // Each time others of each.
                let words = words.rotate_left(3 * nth);
                for at in (0..8).filter(|word| words >> word & 1 != 0).map(|word| word * 8) {
                    let stored = &stored.as_bytes()[at..at + 8];
                    torn[slot(position) + at..][..8].copy_from_slice(stored);
                }
            }
            let rings = Rings::open(&torn).expect("the header is as it was");
            let mut joined = Vec::new();
            join(None, &rings, Process::Gone, &mut joined).expect("memory takes it");
            let recording = Recording::open(&joined, "joined").expect("a header");
            let chunks = recording.record_chunks().filter(|chunk| chunk.lane() == lane);
            let positions = chunks.flat_map(|chunk| {
                let first = chunk.first_sequence();
                (first..).zip(chunk.records()).map(|(position, _)| position)
            });
            let whole = (published + size - slots).next_multiple_of(size)..published;
            assert!(positions.eq(whole), "{lane:?}, words {words:#010b}");
            let [_, _, torn] = lost(&recording, lane);
            assert_eq!(torn, size);
        }
    }
}

#[test]
fn a_span_whose_record_was_just_published_is_not_open_too() {
    let dir = left("drop");
    let mut bytes = std::fs::read(rings(dir.path())).expect("the rings");
    let header = RingsHeader::decode(&bytes).expect("a header");
    let lane = header.block(&bytes, LaneId(0));
    let open: Vec<_> = lane.open_spans().map(|(_, _, open)| open.id).collect();
    let SpanId(innermost) = *open.last().expect("the child dies in a span");
    let opened = |bytes: &[u8]| {
        let rings = Rings::open(bytes).expect("the header is as it was");
        let mut joined = Vec::new();
        join(None, &rings, Process::Gone, &mut joined).expect("memory takes it");
        let recording = Recording::open(&joined, "joined").expect("a header");
        recording.meta().open_spans.iter().map(|open| open.span).collect::<Vec<_>>()
    };
    assert_eq!(opened(&bytes), open);

    // The record of the innermost is the last one: the process died before it cleared the entry.
    let last = (lane.published - 1) % header.slots;
    let slot = usize::try_from(header.rings + last * 64).expect("it fits");
    let span = Span {
        end: Ticks(1),
        parent: SpanId(0),
        own_high: (innermost >> 32) as u32,
        parent_lane: LaneId(0),
        own_lane: LaneId(0),
        depth: 0,
        step: ExecutionStep(0),
        kind: SpanKind::FUNCTION,
    };
    let published = RecordHeader {
        seq: lane.published as u32 - 1,
        span: innermost as u32,
        ..RecordHeader::of::<Span>(Level::TIMING)
    };
    bytes[slot..slot + 64].copy_from_slice(Record::new(published, &span).as_bytes());
    assert_eq!(opened(&bytes), open[..open.len() - 1]);
}

#[test]
fn rings_that_somebody_scribbled_on_end_in_a_recording_or_an_error() {
    let dir = left("drop");
    let bytes = std::fs::read(rings(dir.path())).expect("the rings");
    let drained = std::fs::read(dir.path().join("run.tmrun")).expect("the recording");
    let drained = Recording::open_damaged(&drained, "drained", &|_| ()).expect("a header");
    let header = RingsHeader::decode(&bytes).expect("a header");
    let shown = usize::try_from(header.rings).expect("it fits");
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..300 {
        let mut scribbled = bytes.clone();
        for _ in 0..1 + next() % 40 {
            let at = next() as usize % shown;
            let value = [next() as u8, 0xFF, 0][next() as usize % 3];
            scribbled[at] = value;
            if next() % 4 == 0 {
                let blocks = header.blocks as usize;
                let word = blocks + next() as usize % 300 / 8 * 8;
                scribbled[word..word + 8].copy_from_slice(&next().to_le_bytes());
            }
        }
        let Ok(rings) = Rings::open(&scribbled) else { continue };
        for drained in [None, Some(&drained)] {
            let mut joined = Vec::new();
            join(drained, &rings, Process::Gone, &mut joined).expect("memory takes it");
            let recording = Recording::open(&joined, "joined").expect("a header");
            let mut whole = Vec::new();
            tmrun::salvage::salvage(&recording, &mut whole, &|_| ()).expect("memory takes it");
            assert!(Recording::open(&whole, "whole").is_ok());
        }
    }
}
