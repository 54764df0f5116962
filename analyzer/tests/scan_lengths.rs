//! Every length in a file, set to anything with its CRCs mended: an error with its offset, and no
//! memory for what is not there.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use support::naive::chunks;
use support::{patch, small};
use tmrun::scan::{Recording, Status};

/// Counts bytes in use, and the most that were.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: Every call goes to the system's allocator unchanged; only counters are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: The caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: The pointer came from `alloc` above with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that opening takes on top of what was there.
fn memory_to_open(file: &[u8]) -> (usize, Status, Vec<u64>) {
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let recording = Recording::open(file, "lengths").expect("a header");
    let findings = recording.verify();
    let offsets = findings.iter().map(|finding| finding.error.offset()).collect();
    (MOST.load(Ordering::Relaxed) - before, recording.status(), offsets)
}

/// The offsets of all frames in the file.
fn frames(file: &[u8]) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    for chunk in chunks(file).iter().filter(|chunk| chunk.kind == 2) {
        let mut at = chunk.offset + 64;
        while at + 8 <= chunk.end && file[at] != 0 {
            frames.push((chunk.offset, at));
            at += 8 + patch::word(file, at + 4) as usize;
        }
    }
    frames
}

// One test in this file: what runs beside it would count too.
#[test]
fn a_length_that_lies_is_an_error_with_its_offset_and_costs_no_memory() {
    let whole = small();
    let (usual, status, _) = memory_to_open(&whole);
    assert_eq!(status, Status::Finished);
    let mut tried = 0;
    let mut hold = |file: &[u8], from: usize, what: &str| {
        let (memory, status, offsets) = memory_to_open(file);
        assert!(memory <= 2 * usual + (64 << 10), "{what}: {memory} bytes instead of {usual}");
        assert!(matches!(status, Status::Damaged | Status::Torn), "{what}: {status:?}");
        let first = *offsets.first().expect("a finding") as usize;
        assert!((from..from + 128).contains(&first), "{what}: found at {first}, not {from}");
        tried += 1;
    };
    for chunk in chunks(&whole) {
        for value in [0, 1, 64, 1 << 31, u32::MAX] {
            for (field, what) in [(16, "payload length"), (20, "records")] {
                let mut file = whole.clone();
                let at = chunk.offset + field;
                // The record count of what has no records is not used; a length of 0 is no lie
                // where nothing is.
                if patch::word(&file, at) == value || (field == 20 && chunk.kind != 1) {
                    continue;
                }
                patch::put_word(&mut file, at, value);
                patch::payload_crc(&mut file, chunk.offset);
                let from = chunk.offset;
                hold(&file, from, &format!("{what} {value} of the chunk at {from}"));
            }
            // Both together, so that they agree.
            let mut file = whole.clone();
            let (len, records) = (value / 64 * 64, value / 64);
            if chunk.kind == 1 && patch::word(&file, chunk.offset + 16) != len {
                patch::put_word(&mut file, chunk.offset + 16, len);
                patch::put_word(&mut file, chunk.offset + 20, records);
                patch::payload_crc(&mut file, chunk.offset);
                hold(&file, chunk.offset, &format!("{len} bytes of records"));
            }
        }
    }
    for (chunk, frame) in frames(&whole) {
        for value in [0, 1, 1 << 31, u32::MAX] {
            let mut file = whole.clone();
            patch::put_word(&mut file, frame + 4, value);
            patch::payload_crc(&mut file, chunk);
            hold(&file, frame, &format!("length {value} of the frame at {frame}"));
        }
    }
    assert!(tried > 100, "{tried}");
}
