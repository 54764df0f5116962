//! Runs that the real recorder recorded.
#![allow(dead_code, reason = "every test uses some of it")]

use std::path::Path;
use std::sync::{Barrier, Mutex};

use tmrun_formats::{StorageId, TensorId};
use tmrun_probe_core::{
    Category, Clock, DType, GradientState, Level, MemoryFact, NameId, OpFact, ProfileRun, Range,
    Stats, TensorFact, probe, scalar, span,
};

probe!(static PROBE: lanes = 4, slots = 1 << 12);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The steps of [`recorded`].
pub const STEPS: u64 = 4;

/// What a run is.
pub fn run() -> ProfileRun {
    ProfileRun::training("example::update", 1, "cpu").level(Level::MAX)
}

/// A few steps in an epoch that does not end before the recording does, with another thread at work
/// beside them.
pub fn recorded(path: &Path) -> Vec<u8> {
    let _alone = ONE_AT_A_TIME.lock();
    let recording = PROBE.record(path, run()).expect("it starts");
    alloc(1, 64);
    let epoch = span!(PROBE, "epoch");
    for number in 1..=STEPS {
        let meet = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _beside = span!(PROBE, "beside");
                let _other = PROBE.step(1000 + number);
                meet.wait();
                scalar!(PROBE, "queue", number as f64);
                meet.wait();
            });
            meet.wait();
            step(number);
            meet.wait();
        });
    }
    recording.finish().expect("it ends");
    drop(epoch);
    std::fs::read(path).expect("the file")
}

/// A run that ends within its second step.
pub fn failed(path: &Path) -> Vec<u8> {
    let _alone = ONE_AT_A_TIME.lock();
    let recording = PROBE.record(path, run()).expect("it starts");
    step(1);
    let open = PROBE.step(2);
    let forward = span!(PROBE, "forward", step = FORWARD);
    scalar!(PROBE, "loss", f64::NAN);
    recording.finish_failed("the loss is not finite").expect("it ends");
    drop((forward, open));
    std::fs::read(path).expect("the file")
}

fn step(number: u64) {
    let _step = PROBE.step(number);
    let forward = span!(PROBE, "forward", step = FORWARD);
    for i in 0..2 {
        let _module = span!(PROBE, "layer", kind = MODULE);
        op(10 * number + i);
    }
    stats("forward.out", 10 * number + 1);
    alloc(100 + number, 8);
    drop(forward);
    let _backward = span!(PROBE, "backward", step = BACKWARD);
    scalar!(PROBE, "loss", 1.0 / number as f64);
    let root = PROBE.name("model");
    PROBE.at(Level::METADATA, |to| {
        to.gradient(root, PROBE.name("weight"), GradientState::PRESENT, Some(0.5));
        to.gradient(root, PROBE.name("frozen"), GradientState::MISSING, None);
    });
}

fn op(tensor: u64) {
    let start = tmrun_probe_core::AutoClock::ticks();
    let fact = OpFact {
        op: PROBE.name("matmul"),
        start,
        end: tmrun_probe_core::AutoClock::ticks(),
        output: TensorId(tensor),
        storage: StorageId(tensor),
        shape: Some(&[2, 3]),
        dtype: DType::F32,
        device: PROBE.device("cpu"),
        category: Category::ACTIVATION,
        inputs: &[TensorId(1), TensorId(tensor - 1)],
        input_bytes: Some(48),
    };
    PROBE.at(Level::TIMING, |to| to.op(PROBE.name("layer"), &fact));
}

fn stats(label: &str, tensor: u64) {
    let fact = TensorFact {
        tensor: TensorId(tensor),
        storage: StorageId(tensor),
        shape: &[2, 3],
        dtype: DType::F32,
        device: PROBE.device("cpu"),
        category: Category::ACTIVATION,
        contiguous: Some(true),
        requires_grad: false,
    };
    let stats = Stats { count: 6, nan: 1, inf: 1, rms: 0.5, abs_max: 1.5, mean: -0.25 };
    let range = Range { min: -1.5, max: 1.0, positive_inf: 1, ..Range::default() };
    PROBE.at(Level::NUMERICS, |to| {
        to.stats(PROBE.name(label), &fact, true, &stats, Some(&range));
    });
}

fn alloc(storage: u64, bytes: u64) {
    let fact = MemoryFact {
        storage: StorageId(storage),
        tensor: TensorId(storage),
        bytes,
        op: NameId::NONE,
        shape: None,
        dtype: DType::F32,
        device: PROBE.device("cpu"),
        category: Category::PARAMETER,
    };
    PROBE.at(Level::METADATA, |to| to.alloc(PROBE.name("weights"), &fact));
}
