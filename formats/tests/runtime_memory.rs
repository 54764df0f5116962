//! Reading needs memory in proportion to the input, whatever the input is made of.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use tmrun_formats::runtime::read;

/// Counts what is allocated now and the most that ever was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; the counters only watch.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
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

fn peak_of(text: &str) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let _ = std::hint::black_box(read(text.as_bytes()));
    PEAK.load(Ordering::Relaxed) - before
}

// One test, because the counters belong to the whole process.
#[test]
fn no_input_makes_the_reader_use_much_more_memory_than_it_has_bytes() {
    const COUNT: usize = 100_000;
    let meta = r#"{"kind":"meta","schema":"candle-graph/runtime/3","entrypoint":"","profile":""}"#;
    let run = r#""schema":"candle-graph/runtime/3","run":{"entrypoint":"","profile":""}"#;
    let list = |item: &str| format!("[{}]", vec![item; COUNT].join(","));
    let tensor = |shape: &str| {
        format!(
            r#"{{"kind":"tensor","event_id":"t","shape":{shape},"dtype":"","device":"","contiguous":true,"requires_grad":true}}"#
        )
    };
    let gradients: String = (0..COUNT)
        .map(|id| {
            format!(r#"{{"kind":"gradient","event_id":"{id}","root":"","key":"","state":"zero"}}"#)
                + "\n"
        })
        .collect();
    let inputs = [
        ("unknown objects", format!("{{{run},\n\"x\":{}}}", list(r#"{"a":0}"#))),
        ("unknown numbers in one line", format!("{{{run},\"x\":{}}}", list("0"))),
        ("unknown lists in a meta line", {
            let open = meta.trim_end_matches('}');
            format!("{open},\"x\":{}}}\n", list("[]"))
        }),
        ("a long shape", format!("{meta}\n{}", tensor(&list("0")))),
        ("many inputs", {
            let inputs = list(r#""""#);
            format!(
                "{meta}\n{{\"kind\":\"operation\",\"event_id\":\"o\",\"op\":\"\",\"inputs\":{inputs}}}"
            )
        }),
        ("many features", format!("{{{},\"cfg\":{}}}}}", run.trim_end_matches('}'), list(r#""""#))),
        ("many small records", format!("{meta}\n{gradients}")),
        ("many gaps", {
            let gaps = list(r#"{"class":"","reason":""}"#);
            format!("{{{run},\"gaps\":{gaps}}}")
        }),
        ("empty lines", "\n".repeat(COUNT) + meta),
        ("opening brackets", "[".repeat(COUNT)),
    ];
    for (what, text) in inputs {
        let peak = peak_of(&text);
        assert!(
            peak <= 20 * text.len() + 4096,
            "{what}: {peak} bytes for {} of input, {} times",
            text.len(),
            peak / text.len()
        );
    }
}
