//! Lanes: who has them, who had them, and what becomes of the last record of a thread.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};

use support::read::{File, NO_LANE, OVERRUN, RECORDER, SCALAR, SPAN};
use support::{Counting, Memory, finish, poll, start};
use tmrun_formats::wire::Frame;
use tmrun_formats::{Level, NameId, Planes};
use tmrun_probe_core::{Flush, MemoryFact, Probe, ProfileRun, Target, probe, scalar, span};

fn values(file: &File) -> BTreeSet<u64> {
    file.of(SCALAR).iter().map(|record| record.f64_at(0) as u64).collect()
}

#[test]
fn short_lived_threads_in_turn_share_lanes_and_lose_nothing() {
    probe!(static PROBE: lanes = 4, slots = 256; clock = Counting);
    let mut drain = start(*PROBE, Memory::default(), Level::TIMING);
    for i in 0..64_u64 {
        let thread = std::thread::Builder::new().name(format!("worker {i}"));
        let thread = thread.spawn(move || {
            let _step = PROBE.step(i + 1);
            scalar!(PROBE, "value", i as f64);
        });
        thread.unwrap().join().unwrap();
        if i % 15 == 14 {
            drain.poll(Flush::Full).unwrap();
        }
    }
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);
    assert_eq!(values(&file), (0..64).collect());
    // Who recorded what: each claim begins where the claims say, and nobody is left out.
    let claims = file.lanes();
    assert_eq!(claims.len(), 64);
    for record in file.of(SCALAR) {
        let owner = claims
            .iter()
            .filter(|claim| claim.lane.0 == record.lane && claim.sequence <= record.position)
            .max_by_key(|claim| claim.sequence);
        let owner = owner.expect("a record has an owner");
        assert_eq!(owner.name, format!("worker {}", record.f64_at(0) as u64));
        assert!(!cfg!(target_os = "linux") || owner.thread != 0);
    }
}

/// 256 threads at a time, on 16 lanes: whoever finds none is counted.
#[test]
fn thousands_of_short_lived_threads_on_16_lanes_are_stored_or_counted() {
    probe!(static PROBE: lanes = 16, slots = 1024; clock = Counting);
    const THREADS: u64 = if cfg!(miri) { 64 } else { 4096 };
    let mut drain = start(*PROBE, Memory::default(), Level::TIMING);
    for first in (0..THREADS).step_by(256) {
        std::thread::scope(|scope| {
            for i in first..THREADS.min(first + 256) {
                scope.spawn(move || scalar!(PROBE, "value", i as f64));
            }
        });
        drain.poll(Flush::All).unwrap();
    }
    let (summary, file) = finish(drain);
    let stored = values(&file);
    assert_eq!(stored.len(), file.of(SCALAR).len(), "each at most once");
    assert_eq!(stored.len() as u64 + file.dropped(RECORDER, NO_LANE), THREADS);
    assert_eq!(summary.dropped, file.dropped(RECORDER, NO_LANE));
    assert!(file.lanes().iter().all(|claim| claim.lane.0 < 16));
}

#[test]
fn the_last_record_of_a_thread_that_never_returns_is_in_the_file() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let recording = PROBE.record(&path, ProfileRun::training("never", 1, "cpu")).unwrap();
    let (said, is_said) = mpsc::channel();
    std::thread::spawn(move || {
        let _open = span!(PROBE, "open for ever");
        scalar!(PROBE, "last words", 7.0);
        said.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    is_said.recv().unwrap();
    recording.finish().unwrap();
    let file = File::finished(&std::fs::read(&path).unwrap());
    assert_eq!(values(&file), BTreeSet::from([7]));
    let open = file.frames().into_iter().filter(|frame| matches!(frame, Frame::OpenSpan(_)));
    assert_eq!(open.count(), 1, "and the span that it never left");
}

#[test]
fn claims_that_nobody_looked_at_are_missing_by_their_numbers() {
    static PROBE: Probe<Counting, 1, 64, 64> = Probe::new();
    let view = PROBE.view();
    let drain = start(view, Memory::default(), Level::TIMING);
    for i in 0..40 {
        let lane = view.claim(&format!("owner {i}")).unwrap();
        lane.recorder().scalar(NameId::NONE, f64::from(i));
    }
    let (_, file) = finish(drain);
    let claims: Vec<u64> = file.lanes().iter().map(|claim| claim.claim).collect();
    assert_eq!(claims, (25..40).collect::<Vec<_>>());
    assert_eq!(file.lanes()[0].name, "owner 25");
    assert_eq!(file.lanes()[14].sequence, 39);
}

#[test]
fn threads_that_find_no_lane_are_counted_exactly() {
    probe!(static PROBE: lanes = 2, slots = 1024; clock = Counting);
    const THREADS: u64 = 6;
    let mut drain = start(*PROBE, Memory::default(), Level::METADATA);
    let all_have_tried = &Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for i in 0..THREADS {
            scope.spawn(move || {
                scalar!(PROBE, "first", i as f64);
                all_have_tried.wait();
                {
                    let step = PROBE.step(1);
                    let _batch = step.micro_batch(0);
                    let _span = span!(PROBE, "span");
                    scalar!(PROBE, "second", i as f64);
                }
                PROBE.at(Level::METADATA, |recorder| recorder.scalar(NameId::NONE, 0.0));
                all_have_tried.wait();
            });
        }
    });
    poll(&mut drain);
    let (summary, file) = finish(drain);
    // Each thread: a scalar, two marks of a step and of a micro-batch, a span, two scalars.
    let each = 1 + 4 + 1 + 2;
    assert_eq!(file.records.len() as u64, 2 * each + 2, "the level's record and the gap");
    let gaps = file.gaps();
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].reason, gaps[0].lane), (NO_LANE, RECORDER));
    assert_eq!((gaps[0].records, gaps[0].groups), (4 * each, 4 * each));
    assert_eq!(summary.dropped, 4 * each);
    let planes = Planes(gaps[0].planes);
    assert!(planes.contains(Planes::HOST_TIME.union(Planes::SCALARS).union(Planes::TENSORS)));
    assert!(!planes.contains(Planes::STATISTICS), "nobody asked for level 3");
    let ticks: Vec<u64> = file.stored(0).iter().map(|record| record.ticks).collect();
    assert!(gaps[0].first < *ticks.first().unwrap(), "from before the first");
    assert!(gaps[0].last > *ticks.last().unwrap(), "until after the last");
}

#[test]
fn what_finds_no_lane_may_be_of_every_plane_that_is_asked_for() {
    probe!(static PROBE: lanes = 1, slots = 64; clock = Counting);
    for (level, focus) in [(Level::METADATA, None), (Level::PULSE, Some(Level::METADATA))] {
        let drain = start(*PROBE, Memory::default(), level);
        if let Some(focus) = focus {
            PROBE.set_focus("encoder.*", focus).unwrap();
        }
        let only = PROBE.claim("only").unwrap();
        std::thread::spawn(|| {
            let fact = MemoryFact { bytes: 64, ..MemoryFact::default() };
            PROBE.at(Level::PULSE, |to| to.alloc(NameId::NONE, &fact));
        })
        .join()
        .unwrap();
        drop(only);
        let (_, file) = finish(drain);
        let gaps = file.gaps();
        assert_eq!((gaps.len(), gaps[0].reason, gaps[0].records), (1, NO_LANE, 1));
        let planes = Planes(gaps[0].planes);
        let asked = Planes::LOGICAL_MEMORY.union(Planes::OPERATIONS).union(Planes::SCALARS);
        assert!(planes.contains(asked), "at level {level:?} and focus {focus:?}");
        assert!(!planes.contains(Planes::STATISTICS), "nobody asked for level 3");
    }
}

#[test]
fn the_last_record_of_a_thread_is_in_the_file_however_it_ends() {
    probe!(static PROBE: lanes = 1, slots = 64; clock = Counting);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    std::thread::spawn(|| scalar!(PROBE, "returns", 1.0)).join().unwrap();
    let panicked = std::thread::spawn(|| {
        let _span = span!(PROBE, "panics");
        scalar!(PROBE, "before the panic", 2.0);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.join().is_err());
    std::thread::spawn(|| {
        thread_local! {
            static LATE: Late = const { Late };
        }
        // Its destructor runs when the thread's lane may have been given back already.
        LATE.with(|_| scalar!(PROBE, "early", 3.0));
    })
    .join()
    .unwrap();
    let (summary, file) = finish(drain);
    assert!(values(&file).is_superset(&BTreeSet::from([1, 2, 3])));
    let names: Vec<_> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    assert_eq!(names, ["panics"]);
    let late = file.of(SCALAR).iter().filter(|record| file.name(record) == "late").count() as u64;
    assert_eq!(late + file.dropped(RECORDER, NO_LANE), 1, "stored or counted");
    let given_back = GIVEN_BACK.load(Ordering::Relaxed);
    assert_eq!(late, u64::from(!given_back), "a lane that was given back is not recorded on");
    assert_eq!(summary.dropped, file.dropped(RECORDER, NO_LANE));

    struct Late;
    static GIVEN_BACK: AtomicBool = AtomicBool::new(false);

    impl Drop for Late {
        fn drop(&mut self) {
            let another = PROBE.claim("another");
            GIVEN_BACK.store(another.is_ok(), Ordering::Relaxed);
            scalar!(PROBE, "late", 4.0);
        }
    }
}

#[test]
fn a_guard_that_outlives_its_threads_hold_keeps_the_lane_from_being_given_away() {
    use std::cell::RefCell;
    use tmrun_probe_core::{SpanGuard, StepGuard};
    probe!(static PROBE: lanes = 2, slots = 64; clock = Counting);
    type Guards = (StepGuard<'static, Counting>, SpanGuard<'static, Counting>);
    thread_local! {
        // Made before the lane, so its destructor runs after the one that gives the lane back.
        static GUARDS: RefCell<Option<Guards>> = const { RefCell::new(None) };
    }
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    std::thread::spawn(|| {
        GUARDS.with(|guards| {
            let mut guards = guards.borrow_mut();
            *guards = Some((PROBE.step(1), span!(PROBE, "outlives")));
        });
    })
    .join()
    .unwrap();
    std::thread::spawn(|| scalar!(PROBE, "another's", 1.0)).join().unwrap();
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);
    let lane_of = |kind: u8| file.of(kind)[0].lane;
    assert_eq!(file.of(SPAN).len(), 1, "its record is there");
    assert_eq!(file.of(support::read::STEP).len(), 2);
    if lane_of(SPAN) == lane_of(SCALAR) {
        // The destructors ran the other way round: then the lane was given back with no guard alive.
        let claims = file.lanes();
        assert!(claims[1].sequence > file.of(SPAN)[0].position);
    }
}

#[test]
fn a_lane_goes_on_where_it_was_on_another_thread() {
    static PROBE: Probe<Counting, 1, 64, 64> = Probe::new();
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    let lane = PROBE.view().claim("moves").unwrap();
    lane.recorder().scalar(NameId::NONE, 1.0);
    let lane = std::thread::spawn(move || {
        lane.recorder().scalar(NameId::NONE, 2.0);
        drop(lane.step(3));
        lane
    });
    let lane = lane.join().unwrap();
    lane.recorder().scalar(NameId::NONE, 3.0);
    drop(lane);
    let (_, file) = finish(drain);
    let stored: Vec<u64> = file.of(SCALAR).iter().map(|record| record.f64_at(0) as u64).collect();
    assert_eq!((stored, file.lanes().len()), (vec![1, 2, 3], 1));
}

#[test]
fn threads_that_outlive_the_end_neither_stop_it_nor_get_into_it() {
    probe!(static PROBE: lanes = 2, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let recording = PROBE.record(&path, ProfileRun::training("outlive", 1, "cpu")).unwrap();
    let (ready, is_ready) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _outer = span!(PROBE, "outer");
        drop(span!(PROBE, "in time"));
        ready.send(()).unwrap();
        ended.recv().unwrap();
        for _ in 0..200 {
            scalar!(PROBE, "after the end", 1.0);
        }
    });
    is_ready.recv().unwrap();
    let summary = recording.finish().unwrap();
    end.send(()).unwrap();
    thread.join().unwrap();
    let file = File::finished(&std::fs::read(&path).unwrap());
    let names: Vec<_> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    assert_eq!((names, summary.dropped), (vec!["in time".to_owned()], 0));
    assert_eq!(PROBE.after_finish(), 1, "the outer span alone: the sites were disarmed");
    assert_eq!(file.dropped(0, OVERRUN), 0);
    std::thread::spawn(|| PROBE.claim("free again").unwrap()).join().unwrap();
}
