//! Sites beside the same code without them, for `tests/generated_code.rs`, which compiles this file
//! and reads what the compiler made of it. Nothing runs it.

use tmrun_probe_core::{Level, measured, probe, scalar, span};

probe!(static IDLE: lanes = 1, slots = 64);
probe!(static CAPPED: lanes = 1, slots = 64, max_level = 0);

unsafe extern "Rust" {
    /// Whatever the application does: the compiler knows nothing of it.
    safe fn work();
}

/// No site.
#[unsafe(no_mangle)]
pub fn loop_alone(times: u64) {
    for _ in 0..times {
        work();
    }
}

/// A site that records nothing now, and might later.
#[unsafe(no_mangle)]
pub fn loop_disarmed(times: u64) {
    for _ in 0..times {
        let _span = span!(IDLE, "disarmed");
        work();
    }
}

/// A library's, likewise.
#[unsafe(no_mangle)]
pub fn loop_disarmed_library(times: u64) {
    for _ in 0..times {
        let _span = span!("disarmed");
        work();
    }
}

/// The measured region, likewise.
#[unsafe(no_mangle)]
pub fn loop_disarmed_measured(times: u64) {
    for _ in 0..times {
        let _span = measured!(IDLE, "disarmed");
        work();
    }
}

/// One number, likewise.
#[unsafe(no_mangle)]
pub fn loop_disarmed_scalar(times: u64) {
    for _ in 0..times {
        scalar!(IDLE, "disarmed", 1.0);
        work();
    }
}

/// A step with a micro-batch, likewise, and what a closure records in it.
#[unsafe(no_mangle)]
pub fn loop_disarmed_step(times: u64) {
    for i in 0..times {
        let step = IDLE.step(i);
        let _micro_batch = step.micro_batch(1);
        IDLE.at(Level::NUMERICS, |recorder| recorder.scalar(IDLE.name("value"), i as f64));
        work();
    }
}

/// Sites above the level that is compiled in.
#[unsafe(no_mangle)]
pub fn loop_compiled_out(times: u64) {
    for i in 0..times {
        let _outer = span!(CAPPED, "outer");
        let _inner = span!(CAPPED, "inner", kind = MODULE);
        CAPPED.at(Level::NUMERICS, |recorder| recorder.scalar(CAPPED.name("value"), i as f64));
        work();
    }
}

/// No site, and nothing but a call.
#[unsafe(no_mangle)]
pub fn call_alone() {
    work();
}

/// One that records nothing now, and nothing but a call.
#[unsafe(no_mangle)]
pub fn call_disarmed() {
    let _span = span!(IDLE, "disarmed");
    work();
}

/// One that is compiled out, and nothing but a call.
#[unsafe(no_mangle)]
pub fn call_compiled_out() {
    let _span = span!(CAPPED, "capped");
    work();
}
