//! What is live when a step begins is known from every allocation before it: where some of those were not
//! asked for, nothing that rests on them is complete. A slice has them, and says the same.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use support::Builder;
use support::record::{level, scalar, step};
use tmrun::scan::{Gap, Recording};
use tmrun::slice::{Region, slice};
use tmrun::trace::{Refuted, Trace};
use tmrun_formats::wire::{
    Alloc, ContractV1, Frame, HoleV1, LaneStartV1, Record, RecordHeader, RemovedV1,
};
use tmrun_formats::{GapClass, GapReason, LaneId, Level, Planes, StorageId, TensorId, Ticks};

fn alloc(ticks: u64, number: u64) -> Record {
    let (storage, tensor) = (StorageId(number), TensorId(number));
    let header = RecordHeader::of::<Alloc>(Level::METADATA);
    let header = RecordHeader { ticks: Ticks(ticks), ..header };
    Record::new(header, &Alloc { storage, tensor, bytes: 64, ..Alloc::default() })
}

fn started(contract: ContractV1, levels: &[Record]) -> Builder {
    Builder::started().meta(&[Frame::Contract(contract)]).records(u16::MAX, levels)
}

/// All of memory, and what else may be promised.
const MEMORY: ContractV1 = ContractV1 {
    measurement_scope: 0,
    operations: 2,
    activations: 0,
    tensors: 2,
    gradients: 0,
    logical_memory: 2,
    physical_memory: 2,
    device_timing: 2,
};

/// Three steps, each with an allocation, the last two behind `between`; and what follows.
fn steps(file: Builder, between: impl FnOnce(Builder) -> Builder) -> Vec<u8> {
    let of_step = |file: Builder, number: u64| {
        let at = number * 1_000;
        file.records(0, &[step(at, number, false), alloc(at + 100, number)])
            .records(0, &[step(at + 900, number, true), scalar(at + 950, 2, 0.5)])
    };
    let file = between(of_step(file, 1));
    [2, 3].into_iter().fold(file, of_step).records(0, &[scalar(5_000, 2, 0.5)]).finish()
}

/// What is missing of step 3 and what that refutes; the same of its slice, which is its own slice, and of
/// the bundle.
fn told(file: &[u8]) -> (Vec<Gap>, Vec<Refuted>) {
    let said = |recording: &Recording<'_>| {
        let region = Region::of(recording, Some(3)).expect("the step");
        let trace = Trace::of(recording, &region);
        let derived = trace.derive();
        let text = derived.document.write(Vec::new()).expect("a trace that a reader takes");
        let mut part = Vec::new();
        slice(recording, &region, &mut part).expect("memory");
        (derived.told.gaps, derived.told.refuted, text, part)
    };
    let recording = Recording::open(file, "test").expect("a header");
    assert_eq!(recording.verify(), []);
    let of_file = said(&recording);
    let part = Recording::open(&of_file.3, "slice").expect("a header");
    assert_eq!(part.verify(), []);
    assert_eq!(said(&part), of_file);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    bundles::publish_at(file, Some(3), &root, &mut |_| Ok(())).expect("it is published");
    let semantic = tmrun::bundle::semantic(&root).expect("it can be derived");
    assert_eq!(semantic.mismatches, []);
    let (gaps, refuted, ..) = of_file;
    (gaps, refuted)
}

/// Memory is not complete, and nothing else; the one gap that says so.
fn refutes_memory(file: &[u8], reason: GapReason) -> Gap {
    let (gaps, refuted) = told(file);
    let [gap] = gaps[..] else { panic!("{gaps:?}") };
    let [refuted] = &refuted[..] else { panic!("{refuted:?}") };
    assert_eq!(refuted.plane, "logical_memory");
    assert!(refuted.because.ends_with("before it began"), "{}", refuted.because);
    assert_eq!((gap.class, gap.reason), (GapClass::NotRequested, reason));
    assert_eq!(gap.planes, Planes::LOGICAL_MEMORY);
    assert!(gap.last <= Ticks(3_000), "{gap:?}");
    gap
}

#[test]
fn where_every_allocation_was_asked_for_memory_is_complete() {
    let levels = [level(10, 20, 3, 3)];
    let file = steps(started(MEMORY, &levels), |file| file);
    assert_eq!(told(&file), (vec![], vec![]));
}

#[test]
fn a_level_that_did_not_ask_for_memory_before_the_step_takes_its_claim_back() {
    let levels = [level(10, 20, 1, 1), level(2_950, 2_960, 1, 3)];
    let file = steps(started(MEMORY, &levels), |file| file);
    let gap = refutes_memory(&file, GapReason::LEVEL);
    assert_eq!((gap.first, gap.last), (Ticks(10), Ticks(2_960)));
    let unpromised = ContractV1 { logical_memory: 0, ..MEMORY };
    assert_eq!(told(&steps(started(unpromised, &levels), |file| file)), (vec![], vec![]));
    // Behind the step it matters as little.
    let levels = [level(10, 20, 3, 3), level(4_500, 4_510, 3, 1)];
    assert_eq!(told(&steps(started(MEMORY, &levels), |file| file)), (vec![], vec![]));
}

fn hole(sequence: u64, records: u64) -> Frame<'static> {
    Frame::Hole(HoleV1 { lane: LaneId(0), sequence, records, reason: GapReason::LEFT_OUT })
}

#[test]
fn steps_that_were_left_out_take_the_claim_of_memory_back() {
    // Between steps.
    let levels = [level(10, 20, 3, 3)];
    let file = steps(started(MEMORY, &levels), |file| file.meta(&[hole(4, 303)]).skip(0, 303));
    let gap = refutes_memory(&file, GapReason::LEFT_OUT);
    assert_eq!((gap.records, gap.lane), (303, Some(LaneId(0))));
    // Where the file begins, and twice.
    let file = started(MEMORY, &levels).meta(&[hole(0, 300)]).skip(0, 300);
    let file = steps(file, |file| file.meta(&[hole(304, 3)]).skip(0, 3));
    assert_eq!(refutes_memory(&file, GapReason::LEFT_OUT).records, 303);
    // Right before the first record that there is.
    let file = Builder::started().meta(&[Frame::Contract(MEMORY), hole(0, 300)]).skip(0, 300);
    let file = file.records(0, &[step(3_000, 3, false), step(3_900, 3, true)]).finish();
    let (gaps, refuted) = told(&file);
    assert_eq!(gaps.iter().map(|gap| gap.records).collect::<Vec<_>>(), [300]);
    assert_eq!(refuted.iter().map(|refuted| refuted.plane).collect::<Vec<_>>(), ["logical_memory"]);
}

#[test]
fn steps_that_were_left_out_behind_it_or_on_a_run_that_promised_nothing_do_not() {
    let levels = [level(10, 20, 3, 3)];
    let unpromised = ContractV1 { logical_memory: 0, ..MEMORY };
    let file = steps(started(unpromised, &levels), |file| file.meta(&[hole(4, 3)]).skip(0, 3));
    assert_eq!(told(&file), (vec![], vec![]));
    let file = steps(started(MEMORY, &levels), |file| file);
    let recording = Recording::open(&file, "test").expect("a header");
    let region = Region::of(&recording, Some(2)).expect("the step");
    let mut part = Vec::new();
    slice(&recording, &region, &mut part).expect("memory");
    let part = Recording::open(&part, "slice").expect("a header");
    assert!(part.gaps().iter().any(|gap| gap.reason == GapReason::SLICED), "{:?}", part.gaps());
    assert!(part.gaps().iter().all(|gap| gap.reason != GapReason::LEFT_OUT), "{:?}", part.gaps());
}

#[test]
fn a_file_that_goes_on_from_another_does_not_know_what_was_live() {
    let levels = [level(10, 20, 3, 3)];
    let start = |sequence| {
        let lane = LaneId(0);
        Frame::LaneStart(LaneStartV1 { lane, sequence, ..LaneStartV1::default() })
    };
    let mut claim = support::lane(0, "main");
    claim.sequence = 303;
    let told_of = |frames: &[Frame<'_>]| {
        let begun = [
            Frame::Run(support::run()),
            Frame::Calibration(support::calibration(1_000, 50_000)),
            Frame::Name(support::name(1, "forward")),
            Frame::Name(support::name(2, "loss")),
            Frame::Contract(MEMORY),
        ];
        let file = Builder::new().meta(&begun).meta(frames).records(u16::MAX, &levels);
        steps(file.skip(0, 303), |file| file)
    };
    let gap = refutes_memory(&told_of(&[start(303), Frame::Lane(claim)]), GapReason::LEFT_OUT);
    assert_eq!((gap.lane, gap.last), (None, Ticks(3_000)));
    // A probe that was recorded before does not begin at 0 either, and has no earlier file.
    assert_eq!(told(&told_of(&[Frame::Lane(claim)])), (vec![], vec![]));
}

#[test]
fn a_file_that_was_removed_takes_the_claim_of_memory_back() {
    let levels = [level(10, 20, 3, 3)];
    let (from, to) = (Ticks(30), Ticks(900));
    let removed = Frame::Removed(RemovedV1 { first: 1, last: 1, files: 1, records: 9, from, to });
    let file = steps(started(MEMORY, &levels).meta(&[removed]), |file| file);
    let gap = refutes_memory(&file, GapReason::LEFT_OUT);
    assert_eq!((gap.first, gap.last, gap.records), (from, to, 9));
}
