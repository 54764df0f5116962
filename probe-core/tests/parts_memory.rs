//! What the recorder allocates does not grow with the number of files of a recording.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tmrun_probe_core::{ProfileRun, probe, scalar};

/// Bytes that are allocated, and the most there were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

probe!(static PROBE: lanes = 1, slots = 1 << 12);

/// Records until the recording has so many files; what was allocated at most, and the files.
fn record(folder: &std::path::Path, files: u32) -> (usize, usize) {
    let path = folder.join("run.tmrun");
    let last = folder.join(format!("run.{files:04}.tmrun"));
    let run = ProfileRun::training("memory", 1, "cpu").max_file(1 << 20).keep_last(2);
    let recording = PROBE.record(&path, run).unwrap();
    while !last.exists() {
        for i in 0..10_000 {
            scalar!(PROBE, "value", f64::from(i));
        }
    }
    recording.finish().unwrap();
    let most = MOST.swap(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
    (most, std::fs::read_dir(folder).unwrap().count())
}

#[test]
fn what_is_allocated_does_not_grow_with_the_number_of_files() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (few, kept) = record(folders[0].path(), 4);
    assert_eq!(kept, 2);
    let (many, kept) = record(folders[1].path(), 60);
    assert_eq!(kept, 2);
    assert!(many < few + 16 * 1024, "{few} bytes at most with 4 files, {many} with 60");
}
