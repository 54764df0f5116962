//! One span, begun and ended, as each recorder does it.

use std::cell::RefCell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candle_graph::instrument::{ProfileRun, TraceSession};
use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::{LocalSpan, Span, SpanContext};
use tmrun_benches::{Case, Cost, Row, Table, measure, pin_others};
use tmrun_formats::wire::FileHeader;
use tmrun_formats::{Level, RunId};
use tmrun_probe_core::{AutoClock, Clock, Drain, Flush, Sink, TmrunLayer, probe, span};
use tracing::Dispatch;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::count::Counted;

const ROUNDS: usize = 101;
const CALLS: u64 = 4000;
/// Rounds of a recorder before each of its rounds that counts, so that it finds the caches as if it
/// were alone in its process: enough to go once around our ring.
const WARMING: usize = 5;
/// Spans in one of what the peer calls a trace or a frame.
const TOGETHER: u64 = 1000;

probe!(static PROBE: lanes = 2, slots = 1 << 14);

/// Throws away what it is given.
pub struct Nowhere;

impl Sink for Nowhere {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        black_box(pieces);
        Ok(())
    }

    fn cut(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}

pub fn header() -> FileHeader {
    let ticks_per_second = AutoClock::ticks_per_second();
    FileHeader { run: RunId([0; 16]), created_ns: 0, ticks_per_second }
}

/// Every record of the probe, until this is dropped.
pub fn start() -> Result<Drain<'static, AutoClock, Nowhere>, crate::Failure> {
    let drain = Drain::start(*PROBE, Nowhere, &header(), &[], Level::MAX);
    drain.map_err(|_| "the probe is being recorded".into())
}

pub fn start_puffin() {
    puffin::set_scopes_on(true);
    puffin::GlobalProfiler::lock().add_sink(Box::new(|frame| drop(black_box(frame))));
}

pub fn start_fastrace() {
    fastrace::set_reporter(Ignore, Config::default());
}

pub fn start_graph(dir: &Path) -> Result<TraceSession, crate::Failure> {
    let run = ProfileRun::training("peers::spans", 1, "cpu");
    Ok(TraceSession::open(dir.join("trace.jsonl"), run)?)
}

/// Our layer, behind a dispatcher of the thread's own: a process has only one of its own.
pub fn our_layer() -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(TmrunLayer::of(PROBE)))
}

pub fn their_layer() -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(Recording))
}

pub fn through(dispatch: &Dispatch, calls: u64) {
    tracing::dispatcher::with_default(dispatch, || tracings(calls));
}

// What is measured, under names that callgrind finds.

#[inline(never)]
#[unsafe(no_mangle)]
pub fn clock_twice(calls: u64) {
    for i in 0..calls {
        black_box(AutoClock::quick_ticks());
        black_box(i);
        black_box(AutoClock::quick_ticks());
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn ours(calls: u64) {
    for i in 0..calls {
        let _span = span!(PROBE, "span");
        black_box(i);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn puffins(calls: u64) {
    for _ in 0..calls.div_ceil(TOGETHER) {
        puffin::GlobalProfiler::lock().new_frame();
        for i in 0..TOGETHER {
            puffin::profile_scope!("span");
            black_box(i);
        }
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn fastraces(calls: u64) {
    for _ in 0..calls.div_ceil(TOGETHER) {
        let root = Span::root("root", SpanContext::random());
        let _parent = root.set_local_parent();
        for i in 0..TOGETHER {
            let _span = LocalSpan::enter_with_local_parent("span");
            black_box(i);
        }
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn tracings(calls: u64) {
    for i in 0..calls {
        let _span = tracing::info_span!("span").entered();
        black_box(i);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn graphs(session: &TraceSession, calls: u64) {
    for i in 0..calls {
        let _span = session.begin_span("span", candle_graph::trace::SpanKind::Function);
        black_box(i);
    }
}

struct Ignore;

impl Reporter for Ignore {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans);
    }
}

/// A layer that records what a span is: when it was entered and left, and which one it was.
struct Recording;

thread_local! {
    static RECORDED: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Recording {
    fn record(id: &tracing::Id) {
        RECORDED.with_borrow_mut(|recorded| {
            if recorded.len() >= 1 << 14 {
                recorded.clear();
            }
            recorded.push((id.into_u64(), AutoClock::ticks().0));
        });
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Recording {
    fn on_enter(&self, id: &tracing::Id, _: Context<'_, S>) {
        Self::record(id);
    }

    fn on_exit(&self, id: &tracing::Id, _: Context<'_, S>) {
        Self::record(id);
    }
}

const RULER: &str = "two clock reads";

/// Peers that are Rust, and Tracy when it is compiled in.
pub fn rows(table: &mut Table) -> Result<(), crate::Failure> {
    let drain = RefCell::new(start()?);
    let empty = || {
        let Ok(_) = drain.borrow_mut().poll(Flush::All);
    };

    start_puffin();
    start_fastrace();
    // Its collector's thread is not to be measured.
    pin_others(1)?;
    let dir = tempfile::tempdir_in(memory_folder())?;
    let session = start_graph(dir.path())?;

    // Before there is a subscriber in the process.
    let cases = [
        Case::new(RULER, clock_twice),
        Case::new("ours", ours).then(empty),
        Case::new("puffin", puffins),
        Case::new("fastrace", fastraces).then(|| std::thread::sleep(Duration::from_millis(1))),
        Case::new("tracing, no subscriber", tracings),
        Case::new("candle-graph", |calls| graphs(&session, calls)),
    ]
    .map(|case| case.warmed(WARMING));
    let [two, ours_alone, puffin, fastrace, silent, graph] = measure(cases, ROUNDS, CALLS);
    let row = Row::cost("span (in the peers' process)", ours_alone, RULER, two);
    table.push(row.counted(Counted::Ours.instructions()));
    let mut peer = |name: &str, cost: Cost, counted: Counted| {
        let row = Row::cost(format!("{name}: a span"), cost, RULER, two);
        table.push(row.counted(counted.instructions()));
    };
    peer("puffin 0.20, a frame every 1000", puffin, Counted::Puffin);
    peer("fastrace 0.7.19, a trace every 1000", fastrace, Counted::Fastrace);
    peer("tracing 0.1.44, no subscriber", silent, Counted::Tracing);
    peer("candle-graph 0.10.1 TraceSession", graph, Counted::CandleGraph);
    let row = Row::cost("our span", ours_alone, "candle-graph's span", graph);
    table.push(row.asked(1.0 / 20.0, 1.0 / 12.0));
    for (name, cost) in [("puffin's span", puffin), ("fastrace's span", fastrace)] {
        table.push(Row::cost("our span", ours_alone, name, cost));
    }

    let (with_ours, with_theirs) = (our_layer(), their_layer());
    let cases = [
        Case::new(RULER, clock_twice),
        Case::new("ours", ours).then(empty),
        Case::new("tracing, ours", |calls| through(&with_ours, calls)).then(empty),
        Case::new("tracing, theirs", |calls| through(&with_theirs, calls)),
    ]
    .map(|case| case.warmed(WARMING));
    let [two, beside, layer, recording] = measure(cases, ROUNDS, CALLS);
    let name = "tracing 0.1.44, a layer that notes id and time: a span";
    let row = Row::cost(name, recording, RULER, two);
    table.push(row.counted(Counted::TheirLayer.instructions()));
    let row = Row::cost("tracing 0.1.44, our layer: a span", layer, RULER, two);
    table.push(row.counted(Counted::OurLayer.instructions()));
    table.push(Row::cost("our span", beside, "tracing's recorded span", recording));
    table.push(Row::cost("our layer's span", layer, "tracing's recorded span", recording));
    tracy(table, &empty)
}

#[cfg(feature = "tracy")]
fn tracy(table: &mut Table, empty: &dyn Fn()) -> Result<(), crate::Failure> {
    let drained = match crate::tracy::Drained::start() {
        Ok(drained) => drained,
        Err(error) => {
            table.miss("Tracy", error);
            return Ok(());
        }
    };
    // Until the server has what there is.
    let rest = || std::thread::sleep(Duration::from_millis(2));
    let cases = [
        Case::new(RULER, clock_twice),
        Case::new("ours", ours).then(empty),
        Case::new("C++", |calls| drained.zones(calls)).then(rest),
        Case::new("tracy-client", |calls| drained.spans(calls)).then(rest),
        Case::new("tracy-client, client at hand", |calls| drained.spans_by_client(calls))
            .then(rest),
    ]
    .map(|case| case.warmed(WARMING));
    let [two, ours, zones, spans, by_client] = measure(cases, ROUNDS, CALLS);
    let named = [
        ("Tracy 0.14.1 C++ ZoneScopedN, drained: a span", zones, Counted::Zones),
        ("tracy-client 0.19.0 span!, drained: a span", spans, Counted::Spans),
        ("tracy-client 0.19.0 Client::span, drained: a span", by_client, Counted::SpansByClient),
    ];
    for (name, cost, counted) in named {
        table.push(Row::cost(name, cost, RULER, two).counted(counted.instructions()));
    }
    table.push(Row::cost("our span", ours, "Tracy C++'s, drained", zones).asked(0.85, 1.0));
    table.push(Row::cost("our span", ours, "tracy-client's, drained", spans).asked(0.5, 0.65));
    Ok(())
}

#[cfg(not(feature = "tracy"))]
fn tracy(table: &mut Table, _: &dyn Fn()) -> Result<(), crate::Failure> {
    table.lack("Tracy, C++ and tracy-client", "no C++ compiler here");
    Ok(())
}

/// A folder in memory where there is one.
pub fn memory_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
