//! Spans that move between threads, and futures in them.

mod support;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use support::read::{File, NO_LANE, RECORDER, Rec, SCALAR, SPAN, TOO_DEEP};
use support::{Memory, finish, start};
use tmrun_formats::wire::flags::{SPAN_DETACHED, SPAN_SEGMENT};
use tmrun_formats::{ExecutionStep, Level, SpanKind, Ticks};
use tmrun_probe_core::{
    Clock, DetachedSpan, InSpanExt, MAX_DEPTH, Probe, Target, detached, probe, scalar, span,
};

/// A clock that counts its own readings, for all threads together, and remembers for each thread
/// what it read last: so a test knows every time to the tick.
#[derive(Debug)]
enum Told {}

static NOW: AtomicU64 = AtomicU64::new(1000);

thread_local! {
    static LAST: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}

/// What the calling thread's clock read last, and before that.
fn last() -> [u64; 2] {
    LAST.get()
}

impl Clock for Told {
    const NAME: &'static str = "told";

    fn ticks() -> Ticks {
        let now = NOW.fetch_add(1, Ordering::Relaxed);
        LAST.set([now, last()[0]]);
        Ticks(now)
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}

type Small = Probe<Told, 3, 1024, 64>;

/// (lane, id).
type Id = (u16, u64);

fn id_of(span: &Rec) -> Id {
    (span.u16_at(22), span.span_id())
}

fn parent_of(span: &Rec) -> Id {
    (span.u16_at(20), span.u64_at(8))
}

fn times(span: &Rec) -> (u64, u64) {
    (span.ticks, span.u64_at(0))
}

fn named(file: &File, name: &str) -> Vec<Rec> {
    file.of(SPAN).into_iter().filter(|span| file.name(span) == name).collect()
}

fn key<T: Target>(span: &DetachedSpan<T>) -> Id {
    let (lane, id) = span.id().expect("it is recorded");
    (lane.0, id.0)
}

#[test]
fn a_detached_span_is_one_record_wherever_it_ends_and_a_segment_wherever_it_is_entered() {
    probe!(static PROBE: lanes = 3, slots = 256; clock = Told);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    let outer = span!(PROBE, "outer");
    let request = detached!(PROBE, "request", kind = MODULE, step = FORWARD);
    let begun = last()[0];
    let id = key(&request);
    {
        let _first = request.enter();
        scalar!(PROBE, "in the first segment", 1.0);
        let _inner = span!(PROBE, "inner");
    }
    let ended = std::thread::spawn(move || {
        {
            let _second = request.enter();
            let child = detached!(PROBE, "child");
            drop(child);
        }
        drop(request);
        last()[0]
    });
    let ended = ended.join().unwrap();
    let outer_id = outer.id().0;
    drop(outer);
    let (_, file) = finish(drain);
    let [first, second, whole] = named(&file, "request")[..] else { panic!("three records") };
    assert_eq!((whole.flags, id_of(&whole), times(&whole)), (SPAN_DETACHED, id, (begun, ended)));
    assert_eq!(parent_of(&whole), (0, outer_id));
    assert_eq!((whole.lane, whole.u16_at(24)), (1, 1), "by whoever ends it; one was around it");
    for segment in [first, second] {
        assert_eq!((segment.flags, parent_of(&segment)), (SPAN_SEGMENT, id));
        assert_eq!(segment.u16_at(22), segment.lane, "it counts on the lane that it is of");
        let (from, to) = times(&segment);
        assert!(begun < from && from < to && to < ended);
    }
    assert_eq!(
        ((first.lane, first.u16_at(24)), (second.lane, second.u16_at(24))),
        ((0, 1), (1, 0))
    );
    for span in [whole, first, second] {
        assert_eq!(SpanKind(span.payload[27]), SpanKind::MODULE);
        assert_eq!(ExecutionStep(span.payload[26]), ExecutionStep::FORWARD);
        assert_eq!(span.level, 1);
    }
    assert_eq!(file.of(SCALAR)[0].span, first.span);
    assert_eq!(parent_of(&named(&file, "inner")[0]), id_of(&first));
    assert_eq!(parent_of(&named(&file, "child")[0]), id, "in the span itself, which outlives it");
}

#[test]
fn a_span_that_was_not_wanted_never_writes_and_a_segment_asks_again() {
    static PROBE: Small = Small::new();
    let lane = PROBE.view().claim("a").unwrap();
    let before = DetachedSpan::begin(lane, "before the recording");
    assert_eq!(before.id(), None);
    let drain = start(PROBE.view(), Memory::default(), Level::TIMING);
    drop(before.enter());
    drop(before);
    let span = DetachedSpan::begin(PROBE.view().claim("b").unwrap(), "wanted");
    PROBE.view().set_level(Level::PULSE);
    drop(span.enter());
    PROBE.view().set_level(Level::TIMING);
    drop(span.enter());
    PROBE.view().set_level(Level::PULSE);
    drop(span);
    let (_, file) = finish(drain);
    let flags: Vec<u16> = file.of(SPAN).iter().map(|span| span.flags).collect();
    assert_eq!(flags, [SPAN_SEGMENT, SPAN_DETACHED]);
    assert!(file.of(SPAN).iter().all(|span| file.name(span) == "wanted"));
}

#[test]
fn a_segment_deeper_than_the_stack_is_a_gap_and_spares_the_others() {
    probe!(static PROBE: lanes = 1, slots = 512; clock = Told);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    let span = detached!(PROBE, "detached");
    let guards: Vec<_> = (1..MAX_DEPTH).map(|_| span!(PROBE, "deep")).collect();
    let fits = span.enter();
    drop(span.enter());
    drop(span!(PROBE, "too deep as well"));
    drop(fits);
    guards.into_iter().rev().for_each(drop);
    drop(span);
    let (_, file) = finish(drain);
    let too_deep = file.gaps().into_iter().filter(|gap| gap.reason == TOO_DEEP).count();
    assert_eq!((too_deep, named(&file, "detached").len()), (2, 2));
    assert_eq!(named(&file, "deep").iter().filter(|span| parent_of(span) == (0, 0)).count(), 1);
}

#[test]
fn where_no_lane_is_the_begin_the_segment_and_the_end_are_counted() {
    probe!(static PROBE: lanes = 1, slots = 64; clock = Told);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    let span = detached!(PROBE, "of the thread that has the lane");
    std::thread::spawn(move || {
        drop(detached!(PROBE, "nowhere"));
        drop(span.enter());
        drop(span);
    })
    .join()
    .unwrap();
    let (summary, file) = finish(drain);
    assert!(file.of(SPAN).is_empty());
    assert_eq!((file.dropped(RECORDER, NO_LANE), summary.dropped), (3, 3));
}

/// Yields to the executor so many times.
struct Yields(u32);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[test]
fn a_future_that_is_dropped_ends_its_span_and_one_that_is_ready_ends_it_at_once() {
    probe!(static PROBE: lanes = 1, slots = 256; clock = Told);
    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    let context = &mut Context::from_waker(Waker::noop());
    let mut ready = Box::pin(Yields(1).in_span_of(PROBE, "ready"));
    let mut dropped = Box::pin(Yields(5).in_span_of(PROBE, "dropped"));
    assert!(dropped.as_mut().poll(context).is_pending());
    assert!(ready.as_mut().poll(context).is_pending());
    assert!(ready.as_mut().poll(context).is_ready());
    let ended = last()[0];
    drop(dropped);
    let dropped_at = last()[0];
    drop(ready);
    assert_eq!(last()[0], dropped_at, "it had ended");
    let (_, file) = finish(drain);
    let of = |name| named(&file, name);
    assert_eq!((of("ready").len(), of("dropped").len()), (3, 2));
    assert_eq!(times(&of("ready")[2]).1, ended);
    assert_eq!(times(&of("dropped")[1]).1, dropped_at);
}

/// What the test saw of one task.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    span: (u64, u64),
    /// Of every poll.
    segments: Vec<(u64, u64)>,
}

struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    seen: Mutex<Seen>,
    ready: Arc<Ready>,
}

#[derive(Default)]
struct Ready {
    queue: Mutex<(VecDeque<Arc<Task>>, usize)>,
    changed: Condvar,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let ready = Arc::clone(&self.ready);
        ready.queue.lock().unwrap().0.push_back(self);
        ready.changed.notify_one();
    }
}

impl Ready {
    /// The next task that is ready; `None` once all have ended.
    fn next(&self) -> Option<Arc<Task>> {
        let mut queue = self.queue.lock().unwrap();
        loop {
            if let Some(task) = queue.0.pop_front() {
                return Some(task);
            }
            if queue.1 == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap();
        }
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            let waker = Waker::from(Arc::clone(&task));
            let mut place = task.future.lock().unwrap();
            let Some(future) = place.as_mut() else { continue };
            FIRST.set(None);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            let [end, before] = last();
            let mut seen = task.seen.lock().unwrap();
            let start = FIRST.get().expect("the task ran");
            if polled.is_pending() {
                seen.segments.push((start, end));
                continue;
            }
            seen.segments.push((start, before));
            seen.span.1 = end;
            *place = None;
            let mut queue = self.queue.lock().unwrap();
            queue.1 -= 1;
            if queue.1 == 0 {
                self.changed.notify_all();
            }
        }
    }
}

thread_local! {
    /// The clock's last reading when the task began to run: that of the segment's start.
    static FIRST: Cell<Option<u64>> = const { Cell::new(None) };
}

#[test]
fn a_thousand_tasks_on_four_workers_have_exact_parents_and_durations() {
    probe!(static PROBE: lanes = 5, slots = 1 << 15, names = 64; clock = Told);
    const TASKS: u32 = if cfg!(miri) { 20 } else { 1000 };

    let drain = start(*PROBE, Memory::default(), Level::TIMING);
    let ready = Arc::new(Ready::default());
    ready.queue.lock().unwrap().1 = TASKS as usize;
    let mut tasks = BTreeMap::new();
    let mut spawners = BTreeMap::new();
    for number in 0..TASKS {
        let spawner = span!(PROBE, "spawner");
        let work = async move {
            for _ in 0..=number % 5 {
                FIRST.set(Some(last()[0]));
                {
                    let _inner = span!(PROBE, "inner");
                    scalar!(PROBE, "task", f64::from(number));
                }
                Yields(1).await;
            }
            FIRST.set(Some(last()[0]));
        };
        let task = detached!(PROBE, "task");
        let (id, began) = (key(&task), last()[0]);
        let task = Arc::new(Task {
            future: Mutex::new(Some(Box::pin(work.within(task)))),
            seen: Mutex::new(Seen { span: (began, 0), segments: Vec::new() }),
            ready: Arc::clone(&ready),
        });
        tasks.insert(id, Arc::clone(&task));
        spawners.insert(id, (0, spawner.id().0));
        task.wake();
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ready.work());
        }
    });
    let (summary, file) = finish(drain);
    assert_eq!(summary.dropped, 0);

    let (whole, segments): (Vec<Rec>, Vec<Rec>) =
        named(&file, "task").into_iter().partition(|span| span.flags == SPAN_DETACHED);
    assert_eq!(whole.len(), TASKS as usize);
    let mut found: BTreeMap<Id, Seen> = BTreeMap::new();
    for span in &whole {
        assert_eq!(parent_of(span), spawners[&id_of(span)]);
        found.entry(id_of(span)).or_default().span = times(span);
    }
    for segment in &segments {
        assert_eq!(segment.flags, SPAN_SEGMENT);
        let (span, (from, to)) =
            (&mut *found.get_mut(&parent_of(segment)).unwrap(), times(segment));
        assert!(span.span.0 < from && from < to && to < span.span.1, "inside of its span");
        span.segments.push((from, to));
    }
    for (id, task) in &tasks {
        let seen = std::mem::take(&mut *task.seen.lock().unwrap());
        let found = found.get_mut(id).unwrap();
        found.segments.sort_unstable();
        assert_eq!(*found, seen, "of the task {id:?}: to the tick");
    }
    let by_id: BTreeMap<Id, &Rec> = segments.iter().map(|span| (id_of(span), span)).collect();
    let inner = named(&file, "inner");
    assert_eq!(inner.len(), segments.len() - whole.len(), "one in each poll but the last");
    let inner_ids: BTreeMap<Id, &Rec> = inner.iter().map(|span| (id_of(span), span)).collect();
    assert_eq!(inner_ids.len(), inner.len(), "ids are unique");
    for span in &inner {
        let segment = by_id[&parent_of(span)];
        assert!(segment.ticks < span.ticks && times(span).1 < times(segment).1);
    }
    // What a record says and where it is agree: all scalars of a task are in segments of one span.
    let mut of_task: BTreeMap<u64, Id> = BTreeMap::new();
    for scalar in file.of(SCALAR) {
        let span = inner_ids[&(scalar.lane, u64::from(scalar.span))];
        let task = parent_of(by_id[&parent_of(span)]);
        assert_eq!(*of_task.entry(scalar.f64_at(0) as u64).or_insert(task), task);
    }
    assert_eq!(of_task.len(), TASKS as usize);
}
