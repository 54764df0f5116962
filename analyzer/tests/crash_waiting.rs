//! A process that dies while its recorder still has something to say: of records that found no lane, of
//! the level and the foci, of what it counted. All of it is in what `tmrun salvage` makes.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use support::dying::{self, Count, rings};
use tempfile::TempDir;
use tmrun::salvage::{Process, Rings, join, salvage};
use tmrun::scan::{Gap, Recording};
use tmrun_formats::rings::{ChangeCell, RingsHeader, WaitingChanges};
use tmrun_formats::wire::LevelChange;
use tmrun_formats::{GapReason, LaneId, Level, LevelSource, NameId, Planes, TensorId, Ticks};
use tmrun_probe_core::{AutoClock, Clock, OpFact, ProfileRun, probe, scalar, span};

/// A clock on which the recorder's thread can be held, as if it got no time.
enum Holding {}

static HOLD: AtomicBool = AtomicBool::new(false);
static IS_HELD: AtomicBool = AtomicBool::new(false);
/// How often the recorder's thread has read the clock.
static LOOKS: AtomicU64 = AtomicU64::new(0);

impl Clock for Holding {
    const NAME: &'static str = "holding";

    fn ticks() -> Ticks {
        if std::thread::current().name() == Some("tmrun recorder") {
            LOOKS.fetch_add(1, Ordering::SeqCst);
            while HOLD.load(Ordering::SeqCst) {
                IS_HELD.store(true, Ordering::SeqCst);
                std::thread::yield_now();
            }
        }
        AutoClock::ticks()
    }

    fn ticks_per_second() -> u64 {
        AutoClock::ticks_per_second()
    }
}

probe!(static PROBE: lanes = 1, slots = 1 << 10, names = 8; clock = Holding);

fn wait(until: impl Fn() -> bool) {
    while !until() {
        std::thread::yield_now();
    }
}

/// Until the recorder has looked at everything that is there now.
fn let_it_look() {
    let looks = LOOKS.load(Ordering::SeqCst);
    wait(|| LOOKS.load(Ordering::SeqCst) > looks + 20);
}

fn hold_it() {
    HOLD.store(true, Ordering::SeqCst);
    wait(|| IS_HELD.load(Ordering::SeqCst));
}

const MISSED: u64 = 10;
const FLOOD: u64 = 70;
/// Names that find no room.
const TOO_MANY: u64 = 20;

#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    let Some(task) = dying::task() else { return };
    let (folder, task) = task.split_once('|').expect("a task");
    let folder = Path::new(folder);
    let count = Count::open(folder);
    let now = |moment| count.of(LaneId(moment)).store(AutoClock::ticks().0, Ordering::SeqCst);
    let run = ProfileRun::training("dies", 1, "cpu").level(Level::NUMERICS);
    let run = run.rings_in(folder.join("rings"));
    let _recording = PROBE.record(folder.join("run.tmrun"), run).expect("it starts");
    scalar!(PROBE, "value", 1.0);
    let_it_look();
    match task {
        "misses" | "misses unseen" => {
            now(0);
            let_it_look();
            if task == "misses unseen" {
                hold_it();
            }
            let missing = || (0..MISSED).for_each(|i| scalar!(PROBE, "value", i as f64));
            std::thread::spawn(missing).join().expect("it ends");
            now(1);
            if task == "misses" {
                let_it_look();
            }
        }
        "changes" | "changes unseen" => {
            if task == "changes unseen" {
                hold_it();
            }
            now(0);
            PROBE.set_level(Level::PULSE);
            PROBE.set_focus("value", Level::METADATA).expect("there is room");
            now(1);
            if task == "changes" {
                let_it_look();
            }
        }
        "flood" => {
            hold_it();
            (0..FLOOD).for_each(|i| PROBE.set_level(Level((i % 2) as u8)));
        }
        _ => {
            for _ in 0..3 {
                let (outer, inner) = (span!(PROBE, "outer"), span!(PROBE, "inner"));
                drop(outer);
                drop(inner);
            }
            let inputs = &[TensorId(1); 100][..];
            let fact = OpFact { inputs, ..OpFact::default() };
            PROBE.at(Level::TIMING, |recorder| recorder.op(NameId::NONE, &fact));
            let free = (0..).take_while(|i| PROBE.name(&format!("name {i}")) != NameId::NONE);
            assert!(free.count() < 8, "the table has an end");
            (1..TOO_MANY).for_each(|i| assert_eq!(PROBE.name(&format!("no {i}")), NameId::NONE));
            let_it_look();
        }
    }
    std::process::abort();
}

/// The two files of a process that died so, and the two moments that it remembered.
struct Left {
    _folder: TempDir,
    drained: Vec<u8>,
    rings: Vec<u8>,
    moments: [Ticks; 2],
}

impl Left {
    fn by(task: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let count = Count::open(path);
        let program = dying::test("records_until_it_dies");
        let status = dying::child(program, &format!("{}|{task}", path.display())).wait();
        assert_eq!(status.expect("it is dead").code(), None, "{task}: it ends as it should");
        let drained = std::fs::read(path.join("run.tmrun")).expect("it is left");
        let rings = std::fs::read(rings(path)).expect("they are left");
        let moments = [0, 1].map(|at| Ticks(count.of(LaneId(at)).load(Ordering::SeqCst)));
        Self { _folder: folder, drained, rings, moments }
    }

    fn with<R>(&self, look: impl FnOnce(&Recording<'_>) -> R) -> R {
        let drained = Recording::open_damaged(&self.drained, "drained", &|_| ()).expect("a header");
        let rings = Rings::open(&self.rings).expect("a header");
        let (mut joined, mut whole) = (Vec::new(), Vec::new());
        join(Some(&drained), &rings, Process::Gone, &mut joined).expect("memory takes it");
        let joined = Recording::open_damaged(&joined, "joined", &|_| ()).expect("a header");
        salvage(&joined, &mut whole, &|_| ()).expect("memory takes it");
        let whole = Recording::open(&whole, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        look(&whole)
    }

    /// The bytes of the changes that wait.
    fn changes(&mut self) -> &mut [u8] {
        let header = RingsHeader::decode(&self.rings).expect("a header");
        let (at, size) = (header.changes as usize, WaitingChanges::SIZE as usize);
        &mut self.rings[at..at + size]
    }
}

#[test]
fn records_that_found_no_lane_have_their_planes_and_their_time_after_a_crash() {
    for task in ["misses", "misses unseen"] {
        let left = Left::by(task);
        let [before, behind] = left.moments;
        left.with(|whole| {
            let lost: Vec<&Gap> = whole.lost().collect();
            let [gap] = lost[..] else { panic!("{task}: {lost:?}") };
            assert_eq!((gap.reason, gap.lane), (GapReason::NO_LANE, None));
            assert_eq!((gap.records, gap.groups), (MISSED, MISSED), "{task}");
            assert_eq!(gap.planes, Planes::SCALARS, "{task}");
            assert!(before <= gap.first, "{task}: it was looked at since: {gap:?} {before:?}");
            assert!(gap.first <= behind && gap.first <= gap.last, "{task}: {gap:?} {behind:?}");
            // Where nobody looked any more, the last moment that is known may be before them.
            assert!(task != "misses" || gap.last >= behind, "{task}: {gap:?} {behind:?}");
        });
    }
}

#[test]
fn a_moment_that_cannot_be_is_not_believed() {
    let mut left = Left::by("misses");
    let header = RingsHeader::decode(&left.rings).expect("a header");
    let since = header.no_lane as usize + tmrun_formats::rings::MissedImage::SINCE;
    for scribble in [0, 1 << 62, u64::MAX] {
        for at in [since, since + 8] {
            let word: [u8; 8] = left.rings[at..at + 8].try_into().expect("eight");
            left.rings[at..at + 8].copy_from_slice(&u64::to_le_bytes(scribble));
            left.with(|whole| {
                let gap = whole.lost().next().expect("they are lost");
                let end = whole.span().expect("records").1.max(left.moments[1]);
                assert!(gap.first <= left.moments[1], "{scribble:#x}: {gap:?}");
                assert!(gap.last.0 < 2 * end.0, "{scribble:#x}: {gap:?}");
            });
            left.rings[at..at + 8].copy_from_slice(&word);
        }
    }
}

/// The changes of the level behind the one that states it, and those of the foci.
fn changes(whole: &Recording<'_>) -> (Vec<LevelChange>, Vec<(String, LevelChange)>) {
    let text = |name| whole.names().text(name).unwrap_or_default().to_owned();
    let foci = whole.levels().foci().iter().map(|focus| (text(focus.pattern), focus.change));
    (whole.levels().changes()[1..].to_vec(), foci.collect())
}

#[test]
fn a_change_of_the_level_or_a_focus_right_before_a_crash_is_in_the_result_once() {
    for task in ["changes", "changes unseen"] {
        let left = Left::by(task);
        let [before, behind] = left.moments;
        left.with(|whole| {
            let (levels, foci) = changes(whole);
            let [level] = levels[..] else { panic!("{task}: {levels:?}") };
            let [(pattern, focus)] = &foci[..] else { panic!("{task}: {foci:?}") };
            assert_eq!((level.old, level.new), (Level::NUMERICS, Level::PULSE), "{task}");
            assert_eq!((focus.old, focus.new), (Level::PULSE, Level::METADATA), "{task}");
            assert_eq!((level.source, &**pattern), (LevelSource::APPLICATION, "value"));
            assert!(before <= level.asked && level.asked <= level.armed, "{task}: {level:?}");
            assert!(level.armed <= focus.asked && focus.armed <= behind, "{task}: {focus:?}");
            assert_eq!(whole.lost().count(), 0, "{task}");
            assert_eq!(whole.levels().last(), Some(Level::PULSE));
        });
    }
}

#[test]
fn a_change_that_is_a_record_and_still_waits_is_in_the_result_once() {
    let mut left = Left::by("changes");
    // The process died before it could say that they are records.
    left.changes()[WaitingChanges::TAKEN..][..8].fill(0);
    left.with(|whole| {
        let (levels, foci) = changes(whole);
        assert_eq!((levels.len(), foci.len()), (1, 1), "{levels:?} {foci:?}");
        assert_eq!(whole.lost().count(), 0);
    });
}

#[test]
fn a_change_that_was_being_made_counts_from_when_it_was_asked_to_the_end() {
    let mut left = Left::by("changes unseen");
    let words = left.changes()[WaitingChanges::CELLS..].chunks_exact_mut(ChangeCell::SIZE);
    let armed = words.map(|cell| &mut cell[8 * ChangeCell::ARMED..][..8]);
    armed.for_each(|armed| armed.fill(0));
    left.with(|whole| {
        let (levels, _) = changes(whole);
        let end = whole.meta().terminal.expect("it says how it ended").ticks;
        assert!(levels[0].asked <= levels[0].armed && levels[0].armed >= end, "{levels:?}");
        assert_eq!(whole.levels().last(), Some(Level::PULSE));
    });
}

#[test]
fn changes_that_found_no_room_are_counted() {
    Left::by("flood").with(|whole| {
        assert_eq!(changes(whole).0.len() as u64, ChangeCell::COUNT as u64);
        let lost: Vec<&Gap> = whole.lost().collect();
        let [gap] = lost[..] else { panic!("{lost:?}") };
        assert_eq!((gap.reason, gap.lane), (GapReason::OVERRUN, Some(LaneId::RECORDER)));
        assert_eq!((gap.records, gap.planes), (FLOOD - ChangeCell::COUNT as u64, Planes::RECORDER));
    });
}

#[test]
fn a_change_of_which_a_byte_is_another_is_counted_and_never_believed() {
    let whole = Left::by("changes unseen");
    let sound = whole.with(changes);
    // The level that the recording starts with is change 0, and is a record.
    let cells =
        WaitingChanges::CELLS + ChangeCell::SIZE..WaitingChanges::CELLS + 3 * ChangeCell::SIZE;
    for at in cells {
        let (cell, word) =
            ((at - WaitingChanges::CELLS) / 32, (at - WaitingChanges::CELLS) % 32 / 8);
        if word == ChangeCell::ARMED {
            continue;
        }
        let (_folder, rings) = (tempfile::tempdir().expect("a folder"), whole.rings.clone());
        let (drained, moments) = (whole.drained.clone(), whole.moments);
        let mut left = Left { _folder, drained, rings, moments };
        left.changes()[at] ^= 0x11;
        left.with(|whole| {
            let (levels, foci) = changes(whole);
            assert_eq!((levels.len(), foci.len()), if cell == 1 { (0, 1) } else { (1, 0) });
            assert!(levels.iter().all(|level| sound.0.contains(level)));
            assert!(foci.iter().all(|focus| sound.1.contains(focus)));
            let lost: Vec<&Gap> = whole.lost().collect();
            let [gap] = lost[..] else { panic!("byte {at}: {lost:?}") };
            assert_eq!((gap.reason, gap.records), (GapReason::CORRUPT, 1));
        });
    }
    // How many there are is no number of a recorder's.
    for (at, by) in [(WaitingChanges::TAKEN + 7, 0x80), (WaitingChanges::STORED + 7, 0x80)] {
        let mut left = Left::by("changes unseen");
        left.changes()[at] ^= by;
        left.with(|whole| {
            assert!(changes(whole).0.is_empty());
            let gap = whole.lost().next().expect("nobody knows what");
            assert_eq!((gap.reason, gap.records), (GapReason::CORRUPT, 0));
        });
    }
}

#[test]
fn what_was_counted_is_in_the_totals_after_a_crash() {
    Left::by("counts").with(|whole| {
        let lane = whole.lanes().get(LaneId(0)).and_then(|lane| lane.totals).expect("its totals");
        assert_eq!((lane.truncated, lane.out_of_order), (1, 3));
        assert!((1..=1 << 10).contains(&lane.high_water), "{lane:?}");
        let cost = whole.meta().cost.expect("what recording costs");
        assert_eq!(cost.unnamed, TOO_MANY);
        assert!(cost.record > 0, "{cost:?}");
    });
}
