//! A process that dies in the middle of recording, at a moment of nobody's choice: everything that
//! was stored is in its file and its mapped rings together, once each.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::fs::File as OsFile;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use support::read::File;
use tmrun_formats::LaneId;
use tmrun_formats::rings::{ClockCell, NameImage, RingsHeader, RunArea};
use tmrun_formats::wire::{Chunks, Frame, Frames, Kind, Record, Scalar, Walked};
use tmrun_probe_core::{AutoClock, Overwrite, ProfileRun, probe, scalar, span};

const CHILD: &str = "TMRUN_TEST_CHILD";

probe!(static PROBE: lanes = 3, slots = 1 << 10);
probe!(static NEWEST: lanes = 3, slots = 1 << 8; clock = Overwrite<AutoClock>);

/// A counter that outlives the process: what the child says that it recorded.
struct Count(*const AtomicU64);

impl Count {
    fn open(path: &Path) -> Self {
        let mut options = OsFile::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.set_len(4096).unwrap();
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file of that length; it is never unmapped.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        Self(page.cast())
    }

    fn get(&self) -> &AtomicU64 {
        // SAFETY: the mapping is aligned, zeroed, and lives for ever.
        unsafe { &*self.0 }
    }
}

/// Records until it is killed, or as far as it is told and then ends as it is told.
#[test]
#[ignore = "the child of the other tests"]
fn records_until_it_dies() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let [folder, policy, how] = task.split('|').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let folder = Path::new(folder);
    let count = Count::open(&folder.join("count"));
    let run = ProfileRun::training("dies", 1, "cpu").rings_in(folder.join("rings"));
    let path = folder.join("run.tmrun");
    macro_rules! record {
        ($probe:ident) => {{
            let recording = $probe.record(&path, run).unwrap();
            // Open when it dies.
            let _open =
                std::mem::ManuallyDrop::new((span!($probe, "outer"), span!($probe, "inner")));
            let most = if how == "kill" { u64::MAX } else { 3_000 };
            for i in 0..most {
                scalar!($probe, "value", i as f64);
                count.get().store(i + 1, Ordering::Relaxed);
                if i % 512 == 0 {
                    std::thread::yield_now();
                }
            }
            recording
        }};
    }
    let recording = if policy == "newest" { record!(NEWEST) } else { record!(PROBE) };
    match how {
        "abort" => std::process::abort(),
        "exit" => std::process::exit(7),
        "panic" => {
            std::panic::set_hook(Box::new(|_| std::process::abort()));
            panic!("and the hook aborts");
        }
        _ => drop(recording.finish()),
    }
}

fn child(folder: &Path, policy: &str, how: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "records_until_it_dies", "--ignored"]);
    command.env(CHILD, format!("{}|{policy}|{how}", folder.display())).env_remove("TMRUN_LEVEL");
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The one file in a folder.
fn rings_in(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder.join("rings")).unwrap();
    files.map(|entry| entry.unwrap().path()).collect()
}

/// The values of lane 0 in file and rings together, and how many were published.
fn join(folder: &Path) -> (Vec<u64>, u64, RingsHeader, Vec<u8>) {
    let mut bytes = std::fs::read(folder.join("run.tmrun")).unwrap();
    // The process may have died in the middle of a write.
    let torn = Chunks::new(&bytes).find_map(|walked| match walked {
        Walked::Damage(damage) => Some(damage.offset as usize),
        _ => None,
    });
    bytes.truncate(torn.unwrap_or(bytes.len()));
    let file = File::prefix(&bytes);
    let [path] = &rings_in(folder)[..] else { panic!("one file of rings") };
    let rings = std::fs::read(path).unwrap();
    let header = RingsHeader::decode(&rings).expect("a whole header");
    let lane = header.block(&rings, LaneId(0));
    let value = |bits: u64| f64::from_bits(bits) as u64;
    let drained = file.records.iter().filter(|record| record.lane == 0);
    let next = drained.clone().map(|record| record.position + 1).max().unwrap_or_default();
    let scalars = drained.filter(|record| record.kind == Kind::Scalar as u8);
    let mut values: Vec<_> = scalars.map(|record| value(record.u64_at(0))).collect();
    let (slots, _) = Record::slice(header.ring(&rings, LaneId(0)));
    let oldest = lane.reserved.saturating_sub(slots.len() as u64);
    for position in next.max(oldest)..lane.published {
        let record = &slots[position as usize % slots.len()];
        assert_eq!(record.header().seq, position as u32, "a published slot holds its position");
        match record.payload::<Scalar>() {
            Some(scalar) => values.push(scalar.value as u64),
            None => assert!(matches!(record.kind(), Some(Kind::Gap | Kind::Span))),
        }
    }
    (values, lane.published, header, rings)
}

fn named(header: &RingsHeader, rings: &[u8], wanted: u32) -> String {
    let entries = header.part(rings, header.entries, header.names * NameImage::SIZE as u64);
    let arena = header.part(rings, header.arena, header.arena_length);
    let mut names = NameImage::table(entries, arena);
    names.find(|name| name.id.0 == wanted).expect("the name is there").text.to_owned()
}

#[test]
fn a_killed_process_leaves_every_record_that_it_stored() {
    for round in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let count = Count::open(&dir.path().join("count"));
        let mut child = child(dir.path(), "drop", "kill");
        // A moment that nobody chose: some hundred to some hundred thousand records in.
        let moment = 100 << (round % 11);
        while count.get().load(Ordering::Relaxed) < moment {
            assert!(child.try_wait().unwrap().is_none(), "it records for ever");
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        let said = count.get().load(Ordering::Relaxed);
        let (values, _, header, rings) = join(dir.path());
        let dropped = header.block(&rings, LaneId(0)).dropped.0;
        let stored = values.len() as u64;
        assert!(
            (said..=said + 1).contains(&(stored + dropped)),
            "{stored} + {dropped}, {said} said"
        );
        assert!(values.is_sorted_by(|a, b| a < b), "each once, in order");
        let lane = header.block(&rings, LaneId(0));
        let open: Vec<_> = lane.open_spans().map(|(_, _, open)| open.name.0).collect();
        let open: Vec<_> = open.into_iter().map(|name| named(&header, &rings, name)).collect();
        assert_eq!(open, ["outer", "inner"]);
        assert_eq!(lane.claims, 1);
    }
}

#[test]
fn a_process_that_ends_without_finishing_leaves_its_rings_however_it_ends() {
    for how in ["abort", "exit", "panic"] {
        let dir = tempfile::tempdir().unwrap();
        let status = child(dir.path(), "drop", how).wait().unwrap();
        assert!(!status.success(), "{how}");
        let (values, published, header, rings) = join(dir.path());
        let dropped = header.block(&rings, LaneId(0)).dropped.0;
        assert_eq!(values.len() as u64 + dropped, 3_000, "{how}");
        assert!(published >= values.len() as u64, "{how}");
        let area = header.part(&rings, header.run_area, RunArea::SIZE);
        let frames = Frames::new(RunArea::frames(area).expect("whole"), 0).map_while(Result::ok);
        let frames: Vec<_> = frames.map_while(|raw| raw.decode().ok()).collect();
        assert!(matches!(frames[0], Frame::Run(run) if run.run == header.run
            && run.rings.is_some_and(|path| path.ends_with(".rings"))));
        assert!(frames.iter().any(|frame| matches!(frame,
            Frame::RecordingFile(file) if Path::new(file.text) == dir.path().join("run.tmrun"))));
        let cells = header.part(&rings, header.clock, ClockCell::SIZE * ClockCell::COUNT);
        assert_eq!(ClockCell::read(cells).next().expect("the first reading").number, 1);
    }
}

#[test]
fn a_process_that_keeps_the_newest_leaves_a_whole_ring_of_them() {
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let count = Count::open(&dir.path().join("count"));
        let mut child = child(dir.path(), "newest", "kill");
        while count.get().load(Ordering::Relaxed) < 1_000 << (round % 7) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let said = count.get().load(Ordering::Relaxed);
        let (values, published, header, rings) = join(dir.path());
        assert!((said..=said + 1).contains(&published), "nothing is dropped: {published}, {said}");
        assert!(values.is_sorted_by(|a, b| a < b), "each once, in order");
        let torn = header.block(&rings, LaneId(0)).reserved - published;
        assert!(torn <= 1, "only the slot in flight");
        let kept = (header.slots - torn).min(published);
        let last: Vec<_> = (published - kept..published).collect();
        assert_eq!(values[values.len() - kept as usize..], last, "the last ring is whole");
    }
}

#[test]
fn a_finished_recording_leaves_no_rings() {
    let dir = tempfile::tempdir().unwrap();
    assert!(child(dir.path(), "drop", "finish").wait().unwrap().success());
    assert!(rings_in(dir.path()).is_empty());
    let file = File::finished(&std::fs::read(dir.path().join("run.tmrun")).unwrap());
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
