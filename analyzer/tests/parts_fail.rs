//! The next file of a recording cannot be made, or not be written: the loop goes on, every record is
//! in a file or counted, and what is in the files holds.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tmrun::scan::{Recording, Status};
use tmrun_formats::wire::{FileHeader, Frame, PartV1, Scalar, TerminalV1};
use tmrun_formats::{GapReason, NameId, RunId, Ticks};
use tmrun_probe_core::{
    AutoClock, Drain, Flush, Level, Probe, ProfileRun, RecordError, Sink, probe, scalar,
};

// Rings that hold all that is recorded: nothing is dropped.
probe!(static BLOCKED: lanes = 1, slots = 1 << 15);
probe!(static FULL: lanes = 1, slots = 1 << 15);

/// A mebibyte of records, and some more.
const A_FILE: u32 = 1 << 14;

/// Waits until a file reads like this.
fn wait_until(path: &Path, holds: impl Fn(&Recording<'_>) -> bool) {
    let is_time = || {
        let bytes = fs::read(path).unwrap_or_default();
        Recording::open_damaged(&bytes, "file", &|_| ()).is_ok_and(|recording| holds(&recording))
    };
    while !is_time() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A file that holds, as far as it goes: its values, and the records that the sink lost before and in
/// it.
fn read(bytes: &[u8]) -> (Vec<f64>, u64, Status) {
    let recording = Recording::open(bytes, "file").expect("a header");
    assert_eq!(recording.verify(), []);
    let lost = recording.lost().map(|gap| {
        assert_eq!(gap.reason, GapReason::SINK_FAILED);
        gap.records
    });
    let chunks = recording.record_chunks();
    let records = chunks.flat_map(|chunk| chunk.records().to_vec());
    let values = records.filter_map(|record| Some(record.payload::<Scalar>()?.value));
    (values.collect(), lost.sum(), recording.status())
}

#[test]
fn while_the_next_file_cannot_be_made_this_one_goes_on_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["run.tmrun", "run.0002.tmrun"].map(|name| folder.path().join(name));
    fs::write(&second, "somebody's").expect("it is written");
    let run = ProfileRun::training("blocked", 1, "cpu").max_file(1 << 20);
    let recording = BLOCKED.record(&first, run).expect("it starts");
    for i in 0..2 * A_FILE {
        scalar!(BLOCKED, "value", f64::from(i));
    }
    // All of it is in the first, which did not end.
    wait_until(&first, |first| first.counts().total() > u64::from(2 * A_FILE));
    assert_eq!(fs::read(&second).expect("it is there"), b"somebody's");
    fs::remove_file(&second).expect("it is there");
    // And in time another is made.
    wait_until(&second, |second| second.meta().part.is_some());
    scalar!(BLOCKED, "value", -1.0);
    let error = recording.finish().expect_err("it says that there was something");
    let RecordError::Write { path, source, summary } = error else { panic!("{error}") };
    assert_eq!((path, source.kind()), (second.clone(), std::io::ErrorKind::AlreadyExists));
    assert_eq!((summary.dropped, summary.sink_failed), (0, 0));
    let files = [first, second].map(|path| read(&fs::read(path).expect("it is there")));
    assert!(files.iter().all(|file| (file.1, file.2) == (0, Status::Finished)));
    assert_eq!(files[0].0.len() as u32, 2 * A_FILE);
    assert_eq!(files[1].0, [-1.0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_next_file_on_a_full_disk_leaves_the_first_one_whole_and_the_rest_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["run.tmrun", "run.0002.tmrun"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink("/dev/full", &second).expect("a link");
    let run = ProfileRun::training("full", 1, "cpu").max_file(1 << 20).keep_last(1).replace(true);
    let recording = FULL.record(&first, run).expect("it starts");
    for i in 0..A_FILE {
        scalar!(FULL, "value", f64::from(i));
    }
    wait_until(&first, |first| first.trailer().is_some());
    for _ in 0..1000 {
        scalar!(FULL, "value", -1.0);
    }
    let error = recording.finish().expect_err("it says so");
    let RecordError::Write { path, summary, .. } = error else { panic!("{error}") };
    assert_eq!(path, second);
    assert!(!second.exists(), "nothing was ever in it");
    // The first is not among the last one, and stays: the next has never begun.
    let bytes = fs::read(&first).expect("it is there");
    let (values, lost, status) = read(&bytes);
    assert_eq!((lost, status), (0, Status::Finished));
    assert!(Recording::open(&bytes, "first").is_ok_and(|first| first.goes_on()));
    assert_eq!(values.len() as u64 + 1, summary.records, "with the record of the level");
    assert_eq!(summary.dropped, summary.sink_failed);
    // Both files have a record of the level.
    assert_eq!(summary.records + summary.sink_failed, u64::from(A_FILE) + 1002);
    assert_eq!(summary.left_out, 0);
}

/// The files of a recording in memory, of which one write fails, or all from one on.
#[derive(Default)]
struct Disk {
    writes: Cell<usize>,
    fails: Cell<Option<(usize, bool)>>,
}

struct File {
    disk: Rc<Disk>,
    bytes: Rc<RefCell<Vec<u8>>>,
}

#[derive(Debug)]
struct Full;

impl Sink for File {
    type Error = Full;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Full> {
        let write = self.disk.writes.replace(self.disk.writes.get() + 1);
        let fails = (self.disk.fails.get())
            .is_some_and(|(at, once)| if once { write == at } else { write >= at });
        let all = pieces.concat();
        let taken = if fails { all.len() / 2 } else { all.len() };
        self.bytes.borrow_mut().extend_from_slice(&all[..taken]);
        if fails { Err(Full) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> Result<(), Full> {
        self.bytes.borrow_mut().truncate(usize::try_from(len).expect("it fits"));
        Ok(())
    }
}

/// What a recording into two files came to.
struct Came {
    /// Records that are in a file, and those that the sink lost.
    records: u64,
    lost: u64,
    /// It went on in the second file.
    went_on: bool,
    files: [Vec<u8>; 2],
    writes: usize,
}

/// Records 3 × 20 scalars on each of two lanes into two files, and tries a sink that fails again, as
/// the recorder does.
fn record(fails: Option<(usize, bool)>) -> Option<Came> {
    let probe = Box::new(Probe::<AutoClock, 2, 64, 64>::new());
    let view = probe.view();
    let lanes = [view.claim("a").expect("a lane"), view.claim("b").expect("a lane")];
    let disk = Rc::new(Disk::default());
    disk.fails.set(fails);
    let bytes = [Rc::default(), Rc::default()];
    let sink = |at: usize| File { disk: Rc::clone(&disk), bytes: Rc::clone(&bytes[at]) };
    let header = FileHeader { run: RunId([7; 16]), created_ns: 1, ticks_per_second: 1_000_000_000 };
    let mut drain = Drain::start(view, sink(0), &header, &[], Level::TIMING).ok()?;
    let record = || {
        for lane in &lanes {
            (0..20).for_each(|i| lane.recorder().scalar(NameId::NONE, f64::from(i)));
        }
    };
    let part = |number, previous, next| PartV1 {
        number,
        previous,
        next,
        no_lane_records: 0,
        no_lane_groups: 0,
    };
    record();
    let _ = drain.poll(Flush::All);
    let _ = drain.retry();
    let went_on = !drain.is_failing();
    let (end, second) = (part(1, None, Some("2")), part(2, Some("1"), None));
    let _ = drain.next_file(sink(1), &header, &[Frame::Part(end)], &[], second);
    let mut headless = drain.is_failing();
    for _ in 0..2 {
        record();
        let _ = drain.poll(Flush::All);
        let _ = drain.retry();
        if headless && !drain.is_failing() {
            headless = drain.begin_file(&[], second).is_err();
        }
    }
    let terminal = TerminalV1 { complete: true, reason: None, ticks: Ticks(u64::MAX) };
    let (summary, _) = drain.finish(&[Frame::Terminal(terminal)]);
    assert_eq!(summary.dropped, summary.sink_failed);
    let (records, lost) = (summary.records, summary.sink_failed);
    let files = bytes.map(|bytes| bytes.take());
    Some(Came { records, lost, went_on, files, writes: disk.writes.get() })
}

#[test]
fn whichever_write_fails_around_the_going_on_every_record_is_in_a_file_or_counted() {
    let whole = record(None).expect("it starts");
    assert_eq!((whole.records, whole.lost), (122, 0), "with a record of the level in each file");
    for once in [true, false] {
        for at in 1..whole.writes {
            let came = record(Some((at, once))).expect("its header is written");
            let context = format!("write {at}, once {once}");
            assert!(came.went_on || !once, "it is tried again: {context}");
            let all = whole.records - u64::from(!came.went_on);
            assert_eq!(came.records + came.lost, all, "{context}");
            let files: Vec<_> = came.files.iter().filter(|file| !file.is_empty()).collect();
            let files: Vec<_> = files.into_iter().map(|file| read(file)).collect();
            let told: u64 = files.iter().map(|file| file.1).sum();
            if once {
                assert_eq!(told, came.lost, "the files say what is missing: {context}");
            } else {
                assert!(told <= came.lost, "{context}");
            }
            let values: u64 = files.iter().map(|file| file.0.len() as u64).sum();
            // But for the records of the level.
            assert!((values..=values + 2).contains(&came.records), "{context}");
        }
    }
}
