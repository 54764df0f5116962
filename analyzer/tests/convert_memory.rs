//! Memory for a scan, a check, a conversion and a salvage does not grow with the recording, whether its chunks
//! are many or large.

#[path = "convert/make.rs"]
#[allow(dead_code, reason = "shared with the tests of the mapping")]
mod make;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::ThreadPoolBuilder;
use tmrun::convert::{Form, Options, Plan};
use tmrun::salvage::salvage;
use tmrun::scan::Recording;
use tmrun_formats::GradientState;
use tmrun_formats::wire::Record;

use make::{BARE, Done, FULL, gradient, in_step, op, range, rec, tensor};
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

/// So many records, so many a chunk: steps of a tensor, an operation, a gradient and a range. An
/// index now and then.
fn file(records: usize, per_chunk: usize) -> Vec<u8> {
    let step = in_step(
        1,
        &[
            rec(FULL, 0, &tensor()),
            rec(BARE, 0, &op(2_100, 1)),
            gradient(BARE, GradientState::PRESENT, Some(0.5)),
            rec(BARE, 0, &range(0.0, 1.0)),
        ],
    );
    let all: Vec<Record> = step.iter().copied().cycle().take(records).collect();
    let mut file = Builder::new().meta(&make::frames());
    for (n, chunk) in all.chunks(per_chunk).enumerate() {
        if n % 1_000 == 999 {
            file = file.index();
        }
        file = file.records(0, chunk);
    }
    file.done()
}

/// The most that a longer recording may add: a few words for every block of some hundred chunks.
const SLACK: usize = 256 << 10;

/// The peaks of a scan, a check of the index, a conversion and a salvage, and the allocations of the
/// conversion.
fn peaks(bytes: &[u8], form: Form) -> ([usize; 4], usize) {
    let (scan, _, recording) = measured(|| Recording::open(bytes, "test"));
    let recording = recording.expect("a header");
    let (check, _, findings) = measured(|| recording.verify());
    assert_eq!(findings, []);
    let (convert, calls, result) = measured(|| {
        let plan = Plan::of(&recording, Options { form, ..Options::default() })?;
        plan.write(&mut io::sink(), &|_| ())
    });
    result.expect("converted");
    let (salvage, _, result) = measured(|| salvage(&recording, &mut io::sink(), &|_| ()));
    result.expect("salvaged");
    ([scan, check, convert, salvage], calls)
}

// One test, because the counters belong to the whole process.
#[test]
fn twenty_times_the_records_need_no_more_memory() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    // Chunks of one record are many even here: enough for every buffer that there is.
    let small = file(20_000, 1);
    for per_chunk in [1, 250, 20_000] {
        let large = file(400_000, per_chunk);
        for form in [Form::Document, Form::Lines] {
            let peaks = |bytes: &[u8]| pool.install(|| peaks(bytes, form));
            peaks(&small);
            let (few, _) = peaks(&small);
            let (many, calls) = peaks(&large);
            println!("{per_chunk} a chunk, {form:?}: {few:?} and {many:?} bytes, {calls} calls");
            for (few, many) in few.into_iter().zip(many) {
                assert!(many < few + SLACK, "{per_chunk} a chunk, {form:?}: {few} and {many}");
            }
            // Blocks and buffers allocate; chunks and records do not.
            assert!(calls < 40_000, "{calls} allocations for 400,000 records");
        }
    }
}
