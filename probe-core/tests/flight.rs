//! A process that dies in the middle of recording, at a moment of nobody's choice: everything that
//! was stored is in its file and its mapped rings together, once each.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::path::Path;

use support::dying::{self, LANES, rings};
use support::read::File;
use tmrun_formats::LaneId;
use tmrun_formats::rings::{ClockCell, NameImage, RingsHeader, RunArea};
use tmrun_formats::wire::{Chunks, Frame, Frames, Kind, Record, Scalar, Walked};
use tmrun_probe_core::{ProfileRun, probe, scalar};

#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    if let Some(task) = dying::task() {
        dying::record_until_it_dies(&task);
    }
}

/// Ends the child so, at a moment of nobody's choice. Returns what it says that it recorded.
fn died(folder: &Path, policy: &str, how: &str, moment: u64) -> [u64; LANES.len()] {
    let said = dying::died(dying::test("records_until_it_dies"), folder, policy, how, moment);
    println!("{how}, {policy}: {said:?} records in, asked for {moment}");
    said
}

/// What a process left: file and rings.
struct Left {
    bytes: Vec<u8>,
    header: RingsHeader,
    rings: Vec<u8>,
}

impl Left {
    fn read(folder: &Path) -> Self {
        let mut bytes = std::fs::read(folder.join("run.tmrun")).unwrap();
        // The process may have died in the middle of a write.
        let torn = Chunks::new(&bytes).find_map(|walked| match walked {
            Walked::Damage(damage) => Some(damage.offset as usize),
            _ => None,
        });
        bytes.truncate(torn.unwrap_or(bytes.len()));
        let rings = std::fs::read(rings(folder)).unwrap();
        let header = RingsHeader::decode(&rings).expect("a whole header");
        Self { bytes, header, rings }
    }

    /// The values of a lane in file and rings together.
    fn values(&self, lane: LaneId) -> Vec<u64> {
        let file = File::prefix(&self.bytes);
        let value = |bits: u64| f64::from_bits(bits) as u64;
        let drained = file.records.iter().filter(|record| record.lane == lane.0);
        let next = drained.clone().map(|record| record.position + 1).max().unwrap_or_default();
        let scalars = drained.filter(|record| record.kind == Kind::Scalar as u8);
        let mut values: Vec<_> = scalars.map(|record| value(record.u64_at(0))).collect();
        let (slots, _) = Record::slice(self.header.ring(&self.rings, lane));
        let lane = self.header.block(&self.rings, lane);
        let oldest = lane.reserved.saturating_sub(slots.len() as u64);
        for position in next.max(oldest)..lane.published {
            let record = &slots[position as usize % slots.len()];
            assert_eq!(record.header().seq, position as u32, "a published slot holds its position");
            match record.payload::<Scalar>() {
                Some(scalar) => values.push(scalar.value as u64),
                None => assert!(matches!(record.kind(), Some(Kind::Gap | Kind::Span))),
            }
        }
        assert!(values.is_sorted_by(|a, b| a < b), "each once, in order");
        values
    }

    /// Every record that the process says it recorded is there, or was counted as dropped.
    fn has_what_was(&self, said: [u64; LANES.len()]) {
        for (lane, said) in LANES.into_iter().zip(said) {
            let stored = self.values(lane).len() as u64;
            let (dropped, _) = self.header.block(&self.rings, lane).dropped;
            assert!(
                (said..=said + 1).contains(&(stored + dropped)),
                "{lane:?}: {stored} + {dropped}, {said} said"
            );
        }
    }

    /// The names of the spans that are open on the first lane.
    fn open(&self) -> Vec<String> {
        let lane = self.header.block(&self.rings, LANES[0]);
        lane.open_spans().map(|(_, _, open)| self.named(open.name.0)).collect()
    }

    fn named(&self, wanted: u32) -> String {
        let (header, rings) = (&self.header, &self.rings);
        let entries = header.part(rings, header.entries, header.names * NameImage::SIZE as u64);
        let arena = header.part(rings, header.arena, header.arena_length);
        let mut names = NameImage::table(entries, arena);
        names.find(|name| name.id.0 == wanted).expect("the name is there").text.to_owned()
    }
}

#[test]
fn a_killed_process_leaves_every_record_that_it_stored() {
    for moment in dying::moments().take(40) {
        let dir = tempfile::tempdir().unwrap();
        let said = died(dir.path(), "drop", "kill", moment);
        let left = Left::read(dir.path());
        left.has_what_was(said);
        assert_eq!(left.open(), ["outer", "inner"]);
        assert_eq!(left.header.block(&left.rings, LANES[0]).claims, 1);
    }
}

#[test]
fn a_process_that_ends_without_finishing_leaves_its_rings_however_it_ends() {
    for how in ["abort", "exit", "hook"] {
        for moment in dying::moments().take(8) {
            let dir = tempfile::tempdir().unwrap();
            let said = died(dir.path(), "drop", how, moment);
            let left = Left::read(dir.path());
            left.has_what_was(said);
            assert_eq!(left.open(), ["outer", "inner"], "{how}");
            let (header, rings) = (&left.header, &left.rings);
            let area = header.part(rings, header.run_area, RunArea::SIZE);
            let frames = Frames::new(RunArea::frames(area).expect("whole"), 0);
            let frames = frames.map_while(Result::ok).map_while(|raw| raw.decode().ok());
            let frames: Vec<_> = frames.collect();
            assert!(matches!(frames[0], Frame::Run(run) if run.run == header.run
                && run.rings.is_some_and(|path| path.ends_with(".rings"))));
            assert!(frames.iter().any(|frame| matches!(frame, Frame::RecordingFile(file)
                if Path::new(file.text) == dir.path().join("run.tmrun"))));
            let cells = header.part(rings, header.clock, ClockCell::SIZE * ClockCell::COUNT);
            assert!(ClockCell::read(cells).next().is_some(), "a reading of the clock");
        }
    }
}

#[test]
fn a_process_that_keeps_the_newest_leaves_a_whole_ring_of_them() {
    for how in ["kill", "abort"] {
        for moment in dying::moments().take(20) {
            let dir = tempfile::tempdir().unwrap();
            let said = died(dir.path(), "newest", how, moment);
            let left = Left::read(dir.path());
            for (lane, said) in LANES.into_iter().zip(said) {
                let block = left.header.block(&left.rings, lane);
                let published = block.published;
                assert!((said..=said + 1).contains(&published), "nothing is dropped: {published}");
                let torn = block.reserved - published;
                assert!(torn <= 1, "only the slot in flight");
                let kept = (left.header.slots - torn).min(published);
                let last: Vec<_> = (published - kept..published).collect();
                let values = left.values(lane);
                assert_eq!(values[values.len() - kept as usize..], last, "the last ring is whole");
            }
        }
    }
}

#[test]
fn a_finished_recording_leaves_no_rings() {
    probe!(static ONCE: lanes = 2, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let run = ProfileRun::training("once", 1, "cpu").rings_in(dir.path().join("rings"));
    let recording = ONCE.record(&path, run).unwrap();
    assert!(rings(dir.path()).is_file());
    for i in 0..3_000 {
        scalar!(ONCE, "value", f64::from(i));
    }
    recording.finish().unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("rings")).unwrap().count(), 0);
    let file = File::finished(&std::fs::read(&path).unwrap());
    let scalars = file.records.iter().filter(|record| record.kind == Kind::Scalar as u8).count();
    let dropped = file.totals(0).map_or(0, |totals| totals.dropped_records);
    assert_eq!(scalars as u64 + dropped, 3_000);
}

#[test]
fn a_probe_is_mapped_again_and_again() {
    probe!(static AGAIN: lanes = 2, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let path = dir.path().join(format!("{round}.tmrun"));
        let run = ProfileRun::training("again", 1, "cpu").rings_in(dir.path().join("rings"));
        let recording = AGAIN.record(&path, run).unwrap();
        assert!(recording.rings().is_some_and(Path::is_file));
        for i in 0..20 {
            scalar!(AGAIN, "value", f64::from(i));
        }
        recording.finish().unwrap();
        let file = File::finished(&std::fs::read(&path).unwrap());
        assert_eq!(file.records.iter().filter(|record| record.lane == 0).count(), 20, "{round}");
    }
}
