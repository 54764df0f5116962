//! A page of the mapped rings that another process scribbles on while it is recorded to: evidence is
//! spoiled, and nothing else.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use support::read::{File, SCALAR, SPAN};
use tmrun_formats::rings::RingsHeader;
use tmrun_probe_core::{AutoClock, Overwrite, ProfileRun, StaticProbe, probe, scalar, span};

probe!(static DROPPING: lanes = 3, slots = 1 << 10);
probe!(static NEWEST: lanes = 3, slots = 1 << 10; clock = Overwrite<AutoClock>);

/// Spans of every way to begin and to end, and a number.
fn work<P: StaticProbe>(probe: P, turns: u64) {
    for i in 0..turns {
        let _outer = span!(probe, "outer");
        let first = span!(probe, "first");
        let second = span!(probe, "second");
        if i % 3 == 0 {
            drop(first); // not the innermost
            let _third = span!(probe, "third");
            drop(second);
        }
        scalar!(probe, "value", i as f64);
    }
}

fn scribbled_on<P: StaticProbe>(
    probe: P,
    record: impl Fn(&std::path::Path, ProfileRun) -> tmrun_probe_core::Recording,
) {
    let dir = tempfile::tempdir().unwrap();
    let run = ProfileRun::training("scribbled", 1, "cpu").rings_in(dir.path().join("rings"));
    let recording = record(&dir.path().join("scribbled.tmrun"), run);
    let mut options = std::fs::OpenOptions::new();
    let rings = options.read(true).write(true).open(recording.rings().unwrap()).unwrap();
    let header = std::fs::read(recording.rings().unwrap()).unwrap();
    let header = RingsHeader::decode(&header).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 0x9E37_79B9_7F4A_7C15_u64;
            let mut next = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random
            };
            // What the lanes show lies at the end of this: most of the words go there.
            let (from, blocks, to) = (header.no_lane, header.blocks, header.rings);
            while !done.load(Ordering::Relaxed) {
                let from = if next().is_multiple_of(4) { from } else { blocks };
                let at = from + next() % (to - from) / 8 * 8;
                let word = [next(), next() % 64, 0, 1 << 32, u64::MAX][next() as usize % 5];
                rings.write_all_at(&word.to_le_bytes(), at).unwrap();
            }
        });
        let workers = [(); 2].map(|()| scope.spawn(|| work(probe, 100_000)));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    // Well or not: what the file says may be wrong. It ends.
    let _ = recording.finish();

    // What the producers work with is as it was: each thread has a lane of its own, where all is exact.
    let path = dir.path().join("after.tmrun");
    let recording = record(&path, ProfileRun::training("after", 1, "cpu"));
    std::thread::scope(|scope| {
        let workers = [(); 3].map(|()| scope.spawn(|| work(probe, 30)));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    assert_eq!(recording.finish().unwrap().dropped, 0);
    let file = File::finished(&std::fs::read(&path).unwrap());
    assert_eq!(file.of(SPAN).len(), 3 * (30 * 3 + 10));
    assert_eq!(file.of(SCALAR).len(), 3 * 30);
    let names = |name: &str| file.of(SPAN).iter().filter(|span| file.name(span) == name).count();
    assert_eq!((names("outer"), names("third")), (90, 30));
    assert!(file.of(SPAN).iter().all(|span| (file.name(span) == "outer") == (span.u64_at(8) == 0)));
}

#[test]
fn rings_that_are_scribbled_on_spoil_evidence_and_nothing_else() {
    scribbled_on(DROPPING, |path, run| DROPPING.record(path, run).unwrap());
}

#[test]
fn so_do_rings_that_keep_the_newest() {
    scribbled_on(NEWEST, |path, run| NEWEST.record(path, run).unwrap());
}
