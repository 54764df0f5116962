//! Recording allocates nothing, at any level, on the thread that records.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use support::read::File;
use tmrun_formats::{EdgeKind, GradientState, NameId, StorageId, TensorId};
use tmrun_probe_core::{
    AutoClock, DeviceMemoryFact, DevicePlace, Level, MemoryFact, OpFact, Phase, ProfileRun, Range,
    Recorder, Stats, TensorFact, measured, probe, scalar, span,
};

struct PerThread;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for PerThread {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: PerThread = PerThread;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

// A small ring, so that much of it is dropped too.
probe!(static PROBE: lanes = 1, slots = 64, names = 64);

const SHAPE: [usize; 12] = [1 << 40, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

fn every_fact(recorder: Recorder<'_, AutoClock>, node: NameId) {
    let inputs = [TensorId(1); 70];
    let shape = Some(&SHAPE[..]);
    recorder.scalar(node, f64::NAN);
    recorder.op(node, &OpFact { shape, inputs: &inputs, ..OpFact::default() });
    let tensor = TensorFact { shape: &SHAPE, ..TensorFact::default() };
    recorder.tensor(node, &tensor);
    recorder.stats(node, &tensor, true, &Stats::default(), Some(&Range::default()));
    recorder.range(node, &Range::default());
    recorder.gradient(node, node, GradientState::PRESENT, Some(1.0));
    let memory = MemoryFact { storage: StorageId(1), shape, ..MemoryFact::default() };
    recorder.alloc(node, &memory);
    recorder.free(node, &memory);
    recorder.device_memory(&DeviceMemoryFact { used: Some(1), ..DeviceMemoryFact::default() });
    recorder.static_edge(node, node, 1);
    recorder.data_edge(TensorId(1), TensorId(2));
    let _ = (EdgeKind::DATA, recorder.now(), recorder.open_step());
}

fn work(update: u64, node: NameId) {
    let _step = PROBE.step_as(update, Phase::TRAIN);
    let _measured = measured!(PROBE, "update");
    let _forward = span!(PROBE, "forward", step = FORWARD);
    {
        let _layer = span!(PROBE, node, kind = MODULE);
        scalar!(PROBE, "loss", update as f64);
    }
    for level in 0..=3 {
        PROBE.at(Level(level), |recorder| every_fact(recorder, node));
    }
    let _ = PROBE.device_at(DevicePlace::Cpu);
}

fn too_deep(depth: u32) {
    if depth > 0 {
        let _deeper = span!(PROBE, "deeper");
        too_deep(depth - 1);
    }
}

#[test]
fn nothing_is_allocated_between_the_first_record_and_the_last_at_any_level() {
    let dir = tempfile::tempdir().unwrap();
    for level in 0..=3 {
        let path = dir.path().join(format!("{level}.tmrun"));
        let run = ProfileRun::training("allocation", 1, "cpu").level(Level(level));
        let recording = PROBE.record(&path, run).unwrap();
        // What is set-up comes first: the lane, the names, the device.
        let node = PROBE.name("node");
        work(1, node);

        let before = allocations();
        for update in 2..200 {
            work(update, node);
        }
        too_deep(200);
        PROBE.set_level(Level(3 - level));
        work(200, node);
        assert_eq!(allocations(), before, "at level {level}");

        let no_lane = std::thread::spawn(move || {
            work(1, node);
            let before = allocations();
            work(2, node);
            allocations() - before
        });
        assert_eq!(no_lane.join().unwrap(), 0, "a thread without a lane, at level {level}");
        assert!(before > 0, "the allocator counts");

        recording.finish().unwrap();
        let file = File::finished(&std::fs::read(&path).unwrap());
        assert!(!file.records.is_empty());
    }
}
