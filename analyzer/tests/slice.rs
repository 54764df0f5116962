//! Parts of recordings, as the real recorder writes them.

use std::sync::{Barrier, Mutex};

use tmrun::scan::{Recording, Status};
use tmrun::slice::{Measured, Region, RegionError, slice};
use tmrun_formats::wire::{Alloc, FileHeader, Kind, Scalar, Step};
use tmrun_formats::{GapReason, RunId, StorageId, TensorId, Ticks};
use tmrun_probe_core::{
    Category, DType, Drain, Flush, Level, MemoryFact, ProfileRun, Sink, measured, probe, scalar,
    span,
};

/// A step of each number, in an epoch that lasts longer, with another thread at work beside it, and
/// storage that is live from one to the next.
fn recorded(path: &std::path::Path, run: ProfileRun) -> Vec<u8> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    probe!(static PROBE: lanes = 4, slots = 1 << 12);
    let _alone = ONE_AT_A_TIME.lock();
    let recording = PROBE.record(path, run).expect("it starts");
    let device = PROBE.device("cpu");
    let memory = |storage: u64, bytes: u64| MemoryFact {
        storage: StorageId(storage),
        tensor: TensorId(storage),
        bytes,
        device,
        dtype: DType::F32,
        category: Category::PARAMETER,
        ..MemoryFact::default()
    };
    let weights = PROBE.name("weights");
    PROBE.at(Level::METADATA, |to| to.alloc(weights, &memory(1, 64)));
    PROBE.at(Level::METADATA, |to| to.alloc(weights, &memory(2, 32)));
    let epoch = span!(PROBE, "epoch");
    for number in 1..=5 {
        let meet = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _beside = span!(PROBE, "beside");
                meet.wait();
                scalar!(PROBE, "queue", number as f64);
                meet.wait();
            });
            meet.wait();
            let _step = PROBE.step(number);
            let _forward = span!(PROBE, "forward");
            scalar!(PROBE, "loss", 1.0 / number as f64);
            PROBE.at(Level::METADATA, |to| to.alloc(weights, &memory(100 + number, 8)));
            if number == 3 {
                PROBE.at(Level::METADATA, |to| to.free(weights, &memory(2, 32)));
            }
            meet.wait();
        });
    }
    drop(epoch);
    recording.finish().expect("it ends");
    std::fs::read(path).expect("the file")
}

fn run() -> ProfileRun {
    ProfileRun::training("example", 1, "cpu").level(Level::METADATA)
}

fn part(recording: &Recording<'_>, region: &Region) -> Vec<u8> {
    let mut part = Vec::new();
    slice(recording, region, &mut part).expect("memory can be written");
    part
}

fn scalars(recording: &Recording<'_>) -> Vec<f64> {
    let records = recording.record_chunks().flat_map(|chunk| chunk.records());
    records.filter_map(|record| record.payload::<Scalar>()).map(|scalar| scalar.value).collect()
}

#[test]
fn a_slice_is_a_recording_that_has_its_step_and_what_was_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(&folder.path().join("run.tmrun"), run());
    let whole = Recording::open(&file, "run").expect("a header");
    for number in 1..=5 {
        let region = Region::of(&whole, Some(number)).expect("the step");
        assert_eq!((region.begun, region.ended), (true, true));
        let bytes = part(&whole, &region);
        let slice = Recording::open(&bytes, "slice").expect("a header");
        assert_eq!(slice.verify(), [], "step {number}");
        assert_eq!(slice.status(), Status::Finished);
        assert_eq!(slice.lost().count(), 0, "{:?}", slice.gaps());
        assert!(slice.gaps().iter().any(|gap| gap.reason == GapReason::SLICED));
        assert_eq!(Region::of(&slice, Some(number)), Ok(region.clone()));
        let loss = 1.0 / number as f64;
        assert!(scalars(&slice).contains(&loss));
        assert!(slice.counts().total() < whole.counts().total());

        let allocations = slice.record_chunks().flat_map(|chunk| chunk.records());
        let mut storages: Vec<u64> = allocations
            .filter_map(|record| record.payload::<Alloc>())
            .map(|alloc| alloc.storage.0)
            .collect();
        storages.sort_unstable();
        storages.retain(|&storage| storage <= 100 + number);
        let mut expected: Vec<u64> = (101..=100 + number).collect();
        expected.insert(0, 1);
        if number <= 3 {
            expected.insert(1, 2);
        }
        assert_eq!(storages, expected, "what step {number} finds and allocates");

        // Sliced once more it is the same, byte for byte.
        assert_eq!(part(&slice, &region), bytes);
    }
}

#[test]
fn groups_of_a_slice_keep_their_positions_and_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(&folder.path().join("run.tmrun"), run());
    let whole = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&whole, Some(4)).expect("the step");
    let bytes = part(&whole, &region);
    let slice = Recording::open(&bytes, "slice").expect("a header");
    let placed = |recording: &Recording<'_>| {
        let mut placed = Vec::new();
        for chunk in recording.record_chunks() {
            let mut state = chunk.step();
            for (record, position) in chunk.records().iter().zip(chunk.first_sequence()..) {
                state = state.behind(record, chunk.lane());
                placed.push((chunk.lane(), position, record.words(), state));
            }
        }
        placed.sort_by_key(|&(lane, position, ..)| (lane, position));
        placed
    };
    let of_whole = placed(&whole);
    let of_slice = placed(&slice);
    assert!(!of_slice.is_empty());
    for one in &of_slice {
        assert!(of_whole.contains(one), "{one:?}");
    }
    let missing: Vec<_> = of_whole.iter().filter(|one| !of_slice.contains(one)).collect();
    for (_, _, words, _) in missing {
        let record = tmrun_formats::wire::Record::from_words(*words);
        let (first, last) = record.edges();
        assert!(!region.overlaps(first, last), "{record:?} is of the step and was left out");
    }
}

#[test]
fn what_is_no_one_invocation_is_refused_and_the_message_says_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(&folder.path().join("run.tmrun"), run().warmup_steps(2));
    let whole = Recording::open(&file, "run.tmrun").expect("a header");
    let refused = |step| Region::of(&whole, step).expect_err("no region");
    assert!(matches!(refused(Some(9)), RegionError::NoStep { found: Some((1, 5)), .. }));
    assert!(refused(Some(9)).to_string().contains("run.tmrun: no record is of step 9"));
    assert!(matches!(refused(Some(2)), RegionError::WarmUp { warmup: 2, .. }));
    assert!(matches!(refused(Some(0)), RegionError::WarmUp { .. }));
    assert!(matches!(refused(None), RegionError::NotOneRegion { regions: 0, .. }));
    assert!(refused(None).to_string().contains("steps 1 to 5: choose one with --step"));
    assert!(Region::of(&whole, Some(3)).is_ok());
}

#[test]
fn without_a_step_the_only_measured_span_is_the_region() {
    probe!(static PROBE: lanes = 2, slots = 256);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let recording = PROBE.record(&path, run()).expect("it starts");
    scalar!(PROBE, "before", 1.0);
    {
        let _region = measured!(PROBE, "region");
        scalar!(PROBE, "within", 2.0);
    }
    scalar!(PROBE, "behind", 3.0);
    scalar!(PROBE, "far behind", 4.0);
    // Without steps all of it would be of one invocation.
    drop(PROBE.step(1));
    recording.finish().expect("it ends");
    let file = std::fs::read(&path).expect("the file");
    let whole = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&whole, None).expect("one region");
    assert!(matches!(region.measured, Measured::Span(..)));
    let bytes = part(&whole, &region);
    let slice = Recording::open(&bytes, "slice").expect("a header");
    assert_eq!(slice.verify(), []);
    // With the neighbours on both sides.
    assert_eq!(scalars(&slice), [1.0, 2.0, 3.0]);
}

#[test]
fn what_is_lost_within_the_step_is_lost_in_its_slice_and_nothing_else_is() {
    probe!(static PROBE: lanes = 1, slots = 32);
    let header = FileHeader { run: RunId([1; 16]), created_ns: 1, ticks_per_second: 1_000 };
    let Ok(mut drain) = Drain::start(*PROBE, Memory::default(), &header, &[], Level::TIMING) else {
        panic!("nothing else records this probe")
    };
    for number in 1..=3 {
        {
            let _step = PROBE.step(number);
            for i in 0..if number == 2 { 200 } else { 4 } {
                scalar!(PROBE, "loss", f64::from(i));
            }
        }
        drain.poll(Flush::All).expect("memory");
        // What is lost is told of before the next record; with it the moment at which that ended.
        scalar!(PROBE, "between", 0.0);
        drain.poll(Flush::All).expect("memory");
    }
    let (_, sink) = drain.finish(&[]);
    let file = sink.expect("memory").0;
    let whole = Recording::open(&file, "run").expect("a header");
    let lost = |recording: &Recording<'_>| -> u64 { recording.lost().map(|gap| gap.records).sum() };
    assert!(lost(&whole) > 0, "200,000 records do not fit 32 slots");
    for (number, expected) in [(1, 0), (2, lost(&whole)), (3, 0)] {
        let region = Region::of(&whole, Some(number)).expect("the step");
        let bytes = part(&whole, &region);
        let slice = Recording::open(&bytes, "slice").expect("a header");
        assert_eq!(slice.verify(), []);
        assert_eq!(lost(&slice), expected, "step {number}: {:?}", slice.gaps());
    }
}

#[test]
fn step_marks_are_where_the_region_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(&folder.path().join("run.tmrun"), run());
    let whole = Recording::open(&file, "run").expect("a header");
    let region = Region::of(&whole, Some(2)).expect("the step");
    let marks = whole.record_chunks().flat_map(|chunk| chunk.records());
    let marks: Vec<Ticks> = marks
        .filter(|record| record.kind() == Some(Kind::Step))
        .filter(|record| record.payload::<Step>().is_some_and(|step| step.number == 2))
        .map(|record| record.header().ticks)
        .collect();
    assert_eq!(marks, [region.first, region.last]);
    assert_eq!(region.extent, (region.first, region.last));
}

/// A sink into memory.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Sink for Memory {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        pieces.iter().for_each(|piece| self.0.extend_from_slice(piece));
        Ok(())
    }

    fn cut(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}
