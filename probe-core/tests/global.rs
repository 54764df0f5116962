//! The installed probe, in the one process that it is installed in. (A test binary of one test: what
//! comes before the installation and what comes behind it are its parts.)

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};

use support::read::{File, NO_LANE, SCALAR, SPAN};
use support::{Memory, finish, start};
use tmrun_formats::wire::Frame;
use tmrun_formats::wire::flags::{SPAN_DETACHED, SPAN_SEGMENT};
use tmrun_probe_core::{
    AlreadyInstalled, AutoClock, Drain, Global, InSpanExt, Level, NameId, Site, Target, TmrunLayer,
    install, measured, probe, record_scalar, scalar, span,
};
use tracing_subscriber::layer::SubscriberExt;

probe!(static PROBE: lanes = 6, slots = 1 << 12, max_level = 2);
probe!(static OTHER: lanes = 1, slots = 64);

/// As a library's function.
fn forward(value: f64) {
    let _span = span!("library", kind = MODULE);
    scalar!("value", value);
}

fn recording() -> Drain<'static, AutoClock, Memory> {
    start(*PROBE, Memory::default(), Level::NUMERICS)
}

fn names(file: &File, kind: u8) -> Vec<String> {
    file.of(kind).iter().map(|record| file.name(record)).collect()
}

fn values(file: &File) -> Vec<u64> {
    file.of(SCALAR).iter().map(|record| record.f64_at(0) as u64).collect()
}

#[test]
fn before_and_behind_the_installation() {
    nothing_is_recorded_and_nothing_is_named_before();
    sites_that_race_the_installation_record_everything_behind_it();
    a_second_installation_is_an_error();
    library_and_program_nest_on_one_lane();
    no_site_above_the_probes_level_is_armed_or_known();
    a_thread_that_ends_gives_back_its_lane_and_forgets_it();
    a_thread_without_a_lane_is_counted();
    the_installed_probe_is_a_target();
    a_future_in_a_span_is_one_of_the_installed_probe();
    what_is_traced_is_recorded_by_the_installed_probe();
}

/// As a library's task, which waits once.
fn polled(value: f64) {
    let mut waited = false;
    let task = std::future::poll_fn(move |_| {
        scalar!("in the task", value);
        if std::mem::replace(&mut waited, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    });
    let mut task = pin!(task.in_span("task"));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(context).is_pending());
    assert!(task.as_mut().poll(context).is_ready());
}

/// As a library that knows `tracing` and nothing else.
fn traced(layer: TmrunLayer, loss: f64) {
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _outer = tracing::info_span!("outer").entered();
        let _inner = tracing::debug_span!("inner").entered();
        tracing::info!(name: "event", loss);
    });
}

fn nothing_is_recorded_and_nothing_is_named_before() {
    let drain = recording();
    forward(1.0);
    let mut evaluated = false;
    Global.at(Level::PULSE, |_| evaluated = true);
    assert!(!evaluated && !Global.is_wanted(Level::PULSE));
    assert_eq!(Global.name("library"), NameId::NONE, "a name is one of the installed probe");
    drop(Global.step(1));
    polled(1.0);
    traced(TmrunLayer::new(), 1.0);
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);
    assert_eq!((file.of(SCALAR).len(), file.of(SPAN).len()), (0, 0));
    assert!(file.names().is_empty());
}

/// Threads reach sites over and over while the probe is installed: from the moment that the
/// installation is done no thread loses a record, whether it or another reached the site before.
fn sites_that_race_the_installation_record_everything_behind_it() {
    const SITES: usize = 128;
    const READERS: u64 = 4;
    static SITES_OF_A_LIBRARY: [Site; SITES] =
        [const { Site::new("raced", tmrun_probe_core::Kind::Scalar, Level::PULSE, "", 0) }; SITES];
    static DONE: AtomicBool = AtomicBool::new(false);

    let drain = recording();
    let together = Arc::new(Barrier::new(READERS as usize + 1));
    let readers = (0..READERS as usize).map(|reader| {
        let together = Arc::clone(&together);
        std::thread::spawn(move || {
            together.wait();
            loop {
                let behind = DONE.load(Ordering::Acquire);
                for site in SITES_OF_A_LIBRARY.iter().cycle().skip(reader * 31).take(SITES) {
                    record_scalar(&Global, site, || f64::from(u8::from(behind)));
                }
                if behind {
                    break;
                }
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    together.wait();
    install(PROBE).unwrap();
    DONE.store(true, Ordering::Release);
    // (The end of a scope does not wait for its threads to give back their lanes.)
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    let (summary, file) = finish(drain);
    let behind = values(&file).iter().filter(|&&value| value == 1).count() as u64;
    assert_eq!((behind, summary.dropped), (READERS * SITES as u64, 0));
    let known = file.frames().into_iter().filter(|frame| matches!(frame, Frame::Site(_))).count();
    assert!(known >= SITES, "{known}: the file describes each of them");
}

fn a_second_installation_is_an_error() {
    assert_eq!(install(OTHER), Err(AlreadyInstalled));
    assert_eq!(install(PROBE), Err(AlreadyInstalled));
}

fn library_and_program_nest_on_one_lane() {
    let drain = recording();
    {
        let _outer = measured!(PROBE, "program");
        forward(2.0);
        let _library = measured!("measured by the library");
        let _inner = span!(PROBE, "called back");
    }
    let (_, file) = finish(drain);
    assert_eq!(
        names(&file, SPAN),
        ["library", "called back", "measured by the library", "program"]
    );
    let spans = file.of(SPAN);
    assert!(spans.iter().all(|span| span.lane == spans[0].lane));
    let parents: Vec<u64> = spans.iter().map(|span| span.u64_at(8)).collect();
    let id = |at: usize| spans[at].span_id();
    assert_eq!(parents, [id(3), id(2), id(3), 0]);
    assert_eq!(file.of(SCALAR)[0].span, spans[0].span);
    assert_eq!(values(&file), [2]);
}

fn no_site_above_the_probes_level_is_armed_or_known() {
    static ABOVE: Site = Site::new("above", tmrun_probe_core::Kind::Scalar, Level::NUMERICS, "", 0);
    static AT: Site = Site::new("at", tmrun_probe_core::Kind::Scalar, Level::METADATA, "", 0);
    let drain = recording();
    for _ in 0..3 {
        record_scalar(&Global, &ABOVE, || panic!("the program has compiled it out"));
        record_scalar(&Global, &AT, || 3.0);
    }
    assert!(Global.is_wanted(Level::METADATA) && !Global.is_wanted(Level::NUMERICS));
    assert_eq!(Global.at(Level::NUMERICS, |_| ()), None);
    let (_, file) = finish(drain);
    assert_eq!(values(&file), [3, 3, 3]);
    assert!(file.names().values().all(|name| name.text != "above"));
}

fn a_thread_that_ends_gives_back_its_lane_and_forgets_it() {
    /// Records as its thread ends, before or after the lane is given back.
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            scalar!("late", 2.0);
        }
    }
    thread_local! {
        static LATE: Late = const { Late };
    }
    let drain = recording();
    for _ in 0..32 {
        std::thread::spawn(|| {
            LATE.with(|_| scalar!("first", 1.0));
            scalar!(PROBE, "second", 1.0);
        })
        .join()
        .unwrap();
    }
    let (summary, file) = finish(drain);
    let lost = file.dropped(support::read::RECORDER, NO_LANE);
    assert_eq!(lost, summary.dropped);
    assert_eq!(values(&file).len() as u64 + lost, 3 * 32, "stored or counted");
    let lanes: std::collections::BTreeSet<u16> =
        file.of(SCALAR).iter().map(|record| record.lane).collect();
    assert_eq!(lanes.len(), 1, "one thread after the other has the same lane");
}

fn a_thread_without_a_lane_is_counted() {
    const THREADS: u64 = 8; // on 6 lanes, one of which is this thread's
    scalar!("has a lane", 0.0);
    let drain = recording();
    let together = &Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                forward(4.0);
                together.wait();
            });
        }
    });
    let (summary, file) = finish(drain);
    assert_eq!(values(&file).len() as u64, 5);
    assert_eq!(file.dropped(support::read::RECORDER, NO_LANE), 2 * (THREADS - 5));
    assert_eq!(summary.dropped, 2 * (THREADS - 5));
}

fn the_installed_probe_is_a_target() {
    let drain = recording();
    let node = Global.name("encoder.layers.3");
    {
        let step = Global.step(7);
        assert_eq!(step.number(), 7);
        let _span = span!(Global, node, kind = MODULE);
        Global.at(Level::PULSE, |recorder| {
            assert_eq!(recorder.open_step(), 7);
            recorder.scalar(node, 5.0);
        });
    }
    let (_, file) = finish(drain);
    assert_eq!(names(&file, SPAN), ["encoder.layers.3"]);
    assert_eq!(values(&file), [5]);
    assert_eq!(Global.probe().lanes(), PROBE.lanes());
}

fn a_future_in_a_span_is_one_of_the_installed_probe() {
    let drain = recording();
    {
        let _program = span!(PROBE, "program");
        polled(6.0);
    }
    let (_, file) = finish(drain);
    assert_eq!(names(&file, SPAN), ["task", "task", "task", "program"]);
    let spans = file.of(SPAN);
    let [first, second, whole, program] = spans[..] else { panic!("two polls") };
    assert_eq!([first, second].map(|poll| poll.flags & SPAN_SEGMENT), [SPAN_SEGMENT; 2]);
    assert_eq!(whole.flags & SPAN_DETACHED, SPAN_DETACHED);
    let parents = [first, second, whole].map(|span| span.u64_at(8));
    assert_eq!(parents, [whole.span_id(), whole.span_id(), program.span_id()]);
    assert!(whole.ticks <= first.ticks && second.u64_at(0) <= whole.u64_at(0));
    assert_eq!(values(&file), [6, 6]);
    let inside: Vec<_> = file.of(SCALAR).iter().map(|scalar| scalar.span).collect();
    assert_eq!(inside, [first.span, second.span]);
}

fn what_is_traced_is_recorded_by_the_installed_probe() {
    for layer in [TmrunLayer::new(), TmrunLayer::default()] {
        let drain = recording();
        {
            let _program = span!(PROBE, "program");
            traced(layer, 7.0);
        }
        let (_, file) = finish(drain);
        assert_eq!(names(&file, SPAN), ["inner", "outer", "program"]);
        let spans = file.of(SPAN);
        let parents: Vec<u64> = spans.iter().map(|span| span.u64_at(8)).collect();
        assert_eq!(parents, [spans[1].span_id(), spans[2].span_id(), 0]);
        assert!(spans.iter().all(|span| span.lane == spans[0].lane));
        assert_eq!((names(&file, SCALAR), values(&file)), (vec!["event.loss".to_owned()], vec![7]));
        assert_eq!(file.of(SCALAR)[0].span, spans[0].span);
    }
}
