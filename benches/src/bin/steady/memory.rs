//! What the process allocates, on whichever thread, what it has, and what it wrote.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often anything was allocated.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// KiB of memory that are no file's, from the page tables: the counters in `status` are off by what
/// each core has not handed in yet.
pub(crate) fn anonymous() -> io::Result<u64> {
    number("/proc/self/smaps_rollup", "Anonymous:")
}

/// Bytes that all threads together have written to files.
pub(crate) fn written() -> io::Result<u64> {
    number("/proc/self/io", "wchar:")
}

/// A number that the system tells. Allocates nothing.
fn number(path: &str, label: &str) -> io::Result<u64> {
    let mut text = [0; 4096];
    let len = File::open(path)?.read(&mut text)?;
    let text = str::from_utf8(text.get(..len).unwrap_or_default()).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(label));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("the system tells it in no way that is known"))
}
