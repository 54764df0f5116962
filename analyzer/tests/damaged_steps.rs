//! Evidence of the steps of a recording of which any one chunk is damaged: it is what it was, or it says
//! what it lacks.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use support::Builder;
use support::naive::{NaiveChunk, chunks};
use support::record::{gap, level, scalar, span, span_in, stats, step};
use tmrun::query::{Page, slow_steps};
use tmrun::scan::{Gap, Recording};
use tmrun::slice::{Region, RegionError, slice};
use tmrun::trace::{Refuted, Trace};
use tmrun_formats::trace::{CaptureContract, CoverageLevel, RunOutcome, TraceDocument};
use tmrun_formats::wire::{
    self, Alloc, ContractV1, Frame, Free, Gradient, GradientEntryV1, GradientFamilyV1, Op, Payload,
    Record, RecordHeader, Tensor, TerminalV1, flags,
};
use tmrun_formats::{
    DType, GapClass, GapReason, GradientState, LaneId, Level, NameId, Planes, StorageId, TensorId,
    Ticks,
};

const STEPS: u64 = 4;

const EVERY: Page = Page { limit: 0, offset: 0, all: true };

fn of<P: Payload>(ticks: u64, name: u32, flags: u16, payload: &P) -> Record {
    let header = RecordHeader::of::<P>(Level::METADATA);
    Record::new(RecordHeader { ticks: Ticks(ticks), name: NameId(name), flags, ..header }, payload)
}

fn op(ticks: u64, tensor: u64) -> Record {
    let (output, storage) = (TensorId(tensor), StorageId(tensor));
    of(ticks, 1, 0, &Op { end: Ticks(ticks + 10), output, storage, ..Op::default() })
}

/// A tensor with its dimensions and statistics.
fn numerics(ticks: u64, tensor: u64) -> [Record; 2] {
    let (dtype, tensor, dims) = (DType::F32, TensorId(tensor), [4, 0, 0, 0, 0]);
    let tensor = Tensor { tensor, rank: 1, dtype, dims, ..Tensor::default() };
    [of(ticks, 2, 0, &tensor), stats(ticks, 0.5)]
}

fn memory(ticks: u64, number: u64, allocates: bool) -> Record {
    let (storage, tensor, bytes) = (StorageId(number), TensorId(number), 64);
    if allocates {
        of(ticks, 0, 0, &Alloc { storage, tensor, bytes, ..Alloc::default() })
    } else {
        of(ticks, 0, 0, &Free { storage, tensor, bytes, ..Free::default() })
    }
}

fn gradient(ticks: u64) -> Record {
    let gradient = Gradient { norm: 0.5, root: NameId(1), state: GradientState::PRESENT };
    of(ticks, 2, flags::GRADIENT_NORM, &gradient)
}

fn contract() -> ContractV1 {
    ContractV1 {
        operations: 2,
        tensors: 2,
        gradients: 2,
        logical_memory: 2,
        ..ContractV1::default()
    }
}

/// What a recording is like.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// A span is around all steps.
    epoch: bool,
    /// The end of a step and the beginning of the next one are in one chunk.
    joined: bool,
}

const SHAPES: [Shape; 3] = [
    Shape { epoch: false, joined: false },
    Shape { epoch: true, joined: false },
    Shape { epoch: true, joined: true },
];

/// Steps on two lanes, the second of which joins, in chunks of a record or several.
fn recorded(shape: Shape) -> Vec<u8> {
    let entry = GradientEntryV1 { root: "forward", key: "loss", family: "all" };
    let family = GradientFamilyV1 { family: "all", expectation: 0, min_present: 1 };
    let mut file = Builder::started()
        .meta(&[
            Frame::Contract(contract()),
            Frame::GradientEntry(entry),
            Frame::GradientFamily(family),
            Frame::Lane(support::lane(1, "worker")),
        ])
        .records(u16::MAX, &[level(1_010, 1_020, 3, 3)])
        .records(1, &[scalar(1_100, 2, 0.0), memory(1_110, 100, true)]);
    let mut ends = Vec::new();
    for number in 1..=STEPS {
        let (at, id) = ((number + 1) * 1_000, number as u32 * 10);
        ends.push(step(at, number, false));
        file = file
            .records(0, &std::mem::take(&mut ends))
            .records(1, &[scalar(at + 20, 2, 0.1), step(at + 50, number, false)])
            .records(0, &[op(at + 100, number), memory(at + 120, number, true)])
            .records(0, &numerics(at + 150, number))
            .records(0, &[span_in(id + 1, (at + 160, at + 300), id + 2, 1)])
            .records(1, &[span(at + 60, at + 400, number as u32, 1), scalar(at + 410, 2, 0.2)])
            .records(0, &[span(at + 110, at + 500, id + 1, 1), gradient(at + 600)])
            .records(1, &[step(at + 700, number, true)]);
        ends = vec![memory(at + 800, number, false), step(at + 900, number, true)];
        let mut behind = vec![scalar(at + 950, 2, 0.3)];
        // What one step allocates and a later one frees.
        match number {
            2 => behind.push(memory(at + 960, 200, true)),
            3 => behind.push(memory(at + 970, 200, false)),
            _ => {}
        }
        if shape.joined {
            ends.append(&mut behind);
            continue;
        }
        file = file.records(0, &std::mem::take(&mut ends));
        for record in behind {
            file = file.records(0, &[record]);
        }
    }
    file = if shape.joined { file.records(0, &ends) } else { file };
    if shape.epoch {
        file = file.records(0, &[span(1_900, 7_000, 1, 1)]);
    }
    file.finish()
}

/// A step as it is told.
#[derive(Debug, PartialEq)]
struct Said {
    region: Region,
    trace: String,
    outcome: RunOutcome,
    measured_ns: Option<u64>,
    /// How much there is of each plane that may be promised.
    counts: [usize; 4],
    contract: CaptureContract,
    gaps: Vec<Gap>,
    refuted: Vec<Refuted>,
}

fn said(recording: &Recording<'_>, number: u64) -> Result<Said, RegionError> {
    let region = Region::of(recording, Some(number))?;
    let trace = Trace::of(recording, &region);
    let derived = trace.derive();
    let TraceDocument { ops, tensors, gradients, memory, .. } = &derived.document;
    let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
    Ok(Said {
        outcome: derived.document.terminal.outcome,
        measured_ns: derived.document.spans.iter().find(|span| span.measured).unwrap().duration_ns,
        counts: [ops.len(), tensors.len(), gradients.len(), memory.len()],
        contract: derived.document.run.capture_contract.clone(),
        trace: String::from_utf8(text).expect("text"),
        gaps: derived.told.gaps,
        refuted: derived.told.refuted,
        region,
    })
}

/// Whether a chunk has the begin or the end of a step on the lane that it began on.
fn has_edge(file: &[u8], chunk: &NaiveChunk, whole: &Said) -> bool {
    let records = file[chunk.offset + 64..chunk.end].chunks(64);
    let mut ticks = records.map(|r| u64::from_le_bytes(r[..8].try_into().expect("eight bytes")));
    let Region { lane, first, last, .. } = whole.region;
    chunk.kind == 1 && chunk.lane == lane.0 && ticks.any(|at| at == first.0 || at == last.0)
}

/// The slice of a step gives what the recording gives, and is its own slice.
fn sliced(recording: &Recording<'_>, number: u64, whole: &Said, context: &str) -> Vec<u8> {
    let mut file = Vec::new();
    slice(recording, &whole.region, &mut file).expect("memory");
    let part = Recording::open(&file, "test").expect("a header");
    assert_eq!(part.verify(), [], "{context}");
    let said = said(&part, number).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(said, *whole, "{context}");
    let mut again = Vec::new();
    slice(&part, &said.region, &mut again).expect("memory");
    assert!(again == file, "{context}: the slice of a slice is another one");
    file
}

/// Damages every chunk in turn, at the byte `at` of it, and hands every step of what is left to `look`.
fn each(shape: Shape, at: usize, mut look: impl FnMut(&Recording<'_>, u64, &Said, &str)) {
    let file = recorded(shape);
    let undamaged = Recording::open(&file, "test").expect("a header");
    let whole: Vec<Said> =
        (1..=STEPS).map(|number| said(&undamaged, number).expect("the step")).collect();
    for (at_chunk, chunk) in chunks(&file).iter().enumerate() {
        let mut damaged = file.clone();
        damaged[chunk.offset + at] ^= 1;
        let recording = Recording::open(&damaged, "test").expect("a header");
        let ranked = slow_steps(EVERY, &recording).steps.rows;
        for (number, whole) in (1..).zip(&whole) {
            let context = format!("step {number}, chunk {at_chunk} {chunk:?}");
            let said = said(&recording, number).unwrap_or_else(|e| panic!("{context}: {e}"));
            let mut rows = ranked.iter().filter(|row| row.step == number);
            let row = rows.next().map(|row| (row.duration_ns, row.lane));
            assert_eq!(row, Some((said.measured_ns, said.region.lane.0)), "{context}: slow-steps");
            assert_eq!(rows.next(), None, "{context}: slow-steps has it once");
            if has_edge(&file, chunk, whole) {
                assert_eq!(said.outcome, RunOutcome::Failed, "{context}: an edge of it is lost");
                assert_eq!(said.measured_ns, None, "{context}");
                assert!(said.trace.contains("is lost"), "{context}: the reason says so");
            } else if said.outcome == RunOutcome::Complete {
                assert_eq!(said.measured_ns, whole.measured_ns, "{context}");
            }
            if said.trace != whole.trace {
                let lost = said.gaps.iter().any(|gap| gap.class == GapClass::Lost);
                assert!(lost, "{context}: nothing is said to be lost:\n{}", said.trace);
            }
            let levels = |contract: &CaptureContract| {
                let CaptureContract { operations, tensors, gradients, logical_memory, .. } =
                    contract;
                [*operations, *tensors, *gradients, *logical_memory]
            };
            let planes =
                levels(&said.contract).into_iter().zip(said.counts.iter().zip(whole.counts));
            for (level, (&there, were)) in planes {
                assert!(there == were || level != CoverageLevel::Complete, "{context}: {level:?}");
            }
            look(&recording, number, &said, &context);
        }
    }
}

#[test]
fn an_undamaged_step_is_complete_and_promises_what_the_run_did() {
    for shape in SHAPES {
        let file = recorded(shape);
        let recording = Recording::open(&file, "test").expect("a header");
        for number in 1..=STEPS {
            let said = said(&recording, number).expect("the step");
            assert_eq!((said.outcome, said.measured_ns), (RunOutcome::Complete, Some(900)));
            assert_eq!(said.counts, [1, 1, 1, if number == 3 { 4 } else { 3 }]);
            assert_eq!((&said.gaps[..], &said.refuted[..]), (&[][..], &[][..]));
            assert_eq!(said.contract.gradients, CoverageLevel::Complete);
            sliced(&recording, number, &said, "undamaged");
        }
    }
}

#[test]
fn whichever_payload_is_damaged_a_step_is_what_it_was_or_says_what_it_lacks() {
    for shape in SHAPES {
        each(shape, 64 + 17, |recording, number, said, context| {
            sliced(recording, number, said, context);
        });
    }
}

#[test]
fn whichever_header_is_damaged_a_step_is_what_it_was_or_says_what_it_lacks() {
    // Nobody knows how long before it was published a lost record began.
    for shape in SHAPES.into_iter().filter(|shape| !shape.epoch || shape.joined) {
        each(Shape { epoch: false, ..shape }, 40, |recording, number, said, context| {
            sliced(recording, number, said, context);
        });
    }
}

#[test]
fn a_slice_of_a_file_whose_first_reading_of_the_clock_is_lost_tells_the_same_time() {
    // The first records of lane 0 are lost with it: its hole is not all that was there.
    let mut file = Builder::started().records(0, &[scalar(1_100, 2, 0.0)]);
    for number in 1..=3 {
        let at = (number + 1) * 1_000;
        file = file.records(0, &[step(at, number, false), op(at + 100, number)]);
        file = file.records(0, &[step(at + 900, number, true)]);
    }
    let mut file = file.finish();
    let all = chunks(&file);
    file[all[0].offset..all[1].end].fill(0);
    let recording = Recording::open(&file, "test").expect("a header");
    let is_whole = |gap: &Gap| gap.lane.is_some() || gap.class != GapClass::Lost;
    assert!(!recording.gaps().iter().all(is_whole), "metadata is said to be lost");
    for number in 1..=3 {
        let whole = said(&recording, number).expect("the step");
        assert_eq!((whole.outcome, whole.measured_ns), (RunOutcome::Complete, Some(900)));
        let part = sliced(&recording, number, &whole, "the first reading is lost");
        let part = Recording::open(&part, "test").expect("a header");
        let Region { first, last, .. } = whole.region;
        for clock in [recording.clock(), part.clock()] {
            assert_eq!(clock.ns(last) - clock.ns(first), 900, "step {number}");
        }
    }
}

/// Steps of which the clock was first read behind all of them, as far as is left, and what else there is.
fn read_late(more: &[Record]) -> Vec<u8> {
    let mut file = Builder::new()
        .meta(&[
            Frame::Run(support::run()),
            Frame::Name(support::name(1, "forward")),
            Frame::Name(support::name(2, "loss")),
        ])
        .records(u16::MAX, &[level(1_010, 1_020, 3, 3)])
        .records(0, &[scalar(1_100, 2, 0.0)]);
    for number in 1..=3 {
        let at = (number + 1) * 1_000;
        file = file.records(0, &[step(at, number, false), op(at + 100, number)]);
        file = file.records(0, &[step(at + 900, number, true)]);
    }
    file.records(u16::MAX, more).finish()
}

#[test]
fn a_step_before_the_first_reading_of_the_clock_is_as_long_as_it_was() {
    let file = read_late(&[]);
    let recording = Recording::open(&file, "test").expect("a header");
    for number in 1..=3 {
        let whole = said(&recording, number).expect("the step");
        assert_eq!((whole.outcome, whole.measured_ns), (RunOutcome::Complete, Some(900)));
        sliced(&recording, number, &whole, "nothing is lost");
    }
}

#[test]
fn a_slice_says_that_readings_of_the_clock_may_be_lost_whenever_that_was() {
    let (first, last, planes) = (Ticks(4_950), Ticks(4_960), Planes(u32::MAX));
    let (lane, reason) = (LaneId::RECORDER, GapReason::CORRUPT);
    let late = wire::Gap { first, last, records: 0, groups: 0, planes, lane, reason };
    // What a lane has next behind a step a slice keeps anyway.
    let next = gap(4_920, 4_930, 0, 0, GapReason::FOCUS);
    let file = read_late(&[next, of(4_950, 0, 0, &late)]);
    let recording = Recording::open(&file, "test").expect("a header");
    for number in 1..=3 {
        let whole = said(&recording, number).expect("the step");
        assert_eq!(whole.gaps, [], "it is behind the steps");
        let part = sliced(&recording, number, &whole, "what is lost is behind it");
        let part = Recording::open(&part, "test").expect("a header");
        let Region { first, last, .. } = whole.region;
        for clock in [recording.clock(), part.clock()] {
            assert_eq!(clock.ns(last) - clock.ns(first), 900, "step {number}");
        }
    }
}

#[test]
fn nobody_claims_the_wall_time_of_a_step_whose_time_the_clock_does_not_tell() {
    // The host's clock would have shown less than nothing when the step ran.
    let terminal = TerminalV1 { complete: true, reason: None, ticks: Ticks(20_000_000) };
    let file = Builder::new()
        .meta(&[
            Frame::Run(support::run()),
            Frame::Calibration(support::calibration(10_000_000, 1_000)),
            Frame::Name(support::name(1, "forward")),
            Frame::Name(support::name(2, "loss")),
        ])
        .records(0, &[step(1_000_000, 1, false), step(3_000_000, 1, true)])
        .meta(&[Frame::Terminal(terminal)])
        .unfinished();
    let recording = Recording::open(&file, "test").expect("a header");
    let said = said(&recording, 1).expect("the step");
    assert_eq!((said.outcome, said.measured_ns), (RunOutcome::Failed, None));
    assert!(said.trace.contains("the clock do not tell"), "{}", said.trace);
    let ranked = slow_steps(EVERY, &recording);
    assert_eq!((ranked.timed, ranked.steps.rows[0].duration_ns), (0, None));
    sliced(&recording, 1, &said, "untold");
}

#[test]
fn a_bundle_of_a_damaged_step_is_derived_again_with_its_reasons() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut count, mut seen) = (0, std::collections::BTreeSet::new());
    each(SHAPES[1], 64 + 17, |recording, number, said, context| {
        count += 1;
        if said.gaps.is_empty() || count % 9 != 0 {
            return;
        }
        let root = folder.path().join(count.to_string());
        bundles::publish_at(recording.bytes(), Some(number), &root, &mut |_| Ok(()))
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = tmrun::bundle::semantic(&root).unwrap_or_else(|e| panic!("{context}: {e}"));
        assert_eq!(found.mismatches, [], "{context}");
        let evidence = std::fs::read_to_string(root.join("evidence.json")).expect("text");
        for refuted in &said.refuted {
            let reason = format!("{}: declared complete, but {}", refuted.plane, refuted.because);
            assert!(evidence.contains(&reason), "{context}: {reason} in {evidence}");
        }
        let report = std::fs::read_to_string(root.join("report.md")).expect("text");
        let of_time = |gap: &&Gap| gap.planes.contains(Planes::HOST_TIME);
        let mut lost = said.gaps.iter().filter(of_time).filter(|g| g.class == GapClass::Lost);
        let lost = lost.any(|gap| said.region.overlaps(gap.first, gap.last));
        if said.outcome == RunOutcome::Complete {
            seen.insert(lost);
            let says = evidence.contains("inside its parent, of those that were kept: ");
            assert_eq!(says, lost, "{context}: {evidence}");
            assert_eq!(report.contains("Spans may be missing"), lost, "{context}: {report}");
            assert_eq!(report.contains("(complete evidence)"), !lost, "{context}: {report}");
        }
    });
    assert_eq!(seen.len(), 2, "with and without a loss of spans");
}
