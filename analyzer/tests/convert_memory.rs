//! Memory for conversion does not grow with the recording.

#[path = "convert/make.rs"]
#[allow(dead_code, reason = "shared with the tests of the mapping")]
mod make;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::ThreadPoolBuilder;
use tmrun::convert::{Form, Options, Plan};
use tmrun::scan::Recording;
use tmrun_formats::GradientState;
use tmrun_formats::wire::Record;

use make::{BARE, Done, FULL, gradient, in_step, inputs, more, op, range, rec, tensor};
use support::Builder;

/// Counts what is allocated now, the most that ever was, and how often.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; the counters only watch.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block came from `alloc` above, and so from the system, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that was allocated at once beyond what was before, and how often something was.
fn measured<R>(work: impl FnOnce() -> R) -> (usize, usize, R) {
    let (before, calls) = (NOW.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (peak, CALLS.load(Ordering::Relaxed) - calls, result)
}

const CHUNK: usize = 250;

/// So many records in chunks of 250: steps of a tensor, an operation, a gradient and a range.
fn file(records: usize) -> Vec<u8> {
    let step = in_step(
        1,
        &[
            rec(FULL, 0, &tensor()),
            rec(BARE, 0, &op(2_100, 2)),
            more(0, &inputs([1, 2, 0, 0, 0])),
            gradient(BARE, GradientState::PRESENT, Some(0.5)),
            rec(BARE, 0, &range(0.0, 1.0)),
        ],
    );
    let chunk: Vec<Record> = step.iter().copied().cycle().take(CHUNK).collect();
    let mut file = Builder::new().meta(&make::frames());
    for n in 0..records / CHUNK {
        if n % 1_000 == 999 {
            file = file.index();
        }
        file = file.records(0, &chunk);
    }
    file.done()
}

// One test, because the counters belong to the whole process.
#[test]
fn twenty_times_the_records_need_no_more_memory() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let (small, large) = (file(20_000), file(400_000));
    let convert = |bytes: &[u8], form| {
        pool.install(|| {
            let (scan, _, recording) = measured(|| Recording::open(bytes, "test"));
            let recording = recording.expect("a header");
            let (peak, calls, result) = measured(|| {
                let plan = Plan::of(&recording, Options { form, ..Options::default() })?;
                plan.write(&mut io::sink(), &|_| ())
            });
            result.expect("converted");
            (scan, peak, calls)
        })
    };
    for form in [Form::Document, Form::Lines] {
        convert(&large, form);
        let (few_scan, few, _) = convert(&small, form);
        let (many_scan, many, calls) = convert(&large, form);
        println!("{form:?}: scan {few_scan} and {many_scan}, conversion {few} and {many} bytes");
        assert!(many < few + few / 4, "conversion: {few} and {many} bytes");
        // The scan keeps a few words a chunk.
        let chunks = 380_000 / CHUNK;
        assert!(many_scan < few_scan + chunks * 1_024, "scan: {few_scan} and {many_scan} bytes");
        // Batches and buffers allocate; records do not.
        assert!(calls < 40_000, "{calls} allocations for 400,000 records");
    }
}
