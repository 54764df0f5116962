//! A probe, and what it recorded.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::sync::{Mutex, PoisonError};

use tmrun_formats::LaneId;
use tmrun_formats::wire::{Chunks, Record, Walked};
use tmrun_probe_core::{AutoClock, Level, ProfileRun, Recorder, probe};

probe!(pub static PROBE: lanes = 16, slots = 1 << 10);

/// Runs `f` while everything is recorded, and returns the records. One at a time: it is one probe.
pub fn recording<R>(f: impl FnOnce() -> R) -> (Vec<Record>, R) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let run = ProfileRun::training("test", 1, "cpu").level(Level::NUMERICS);
    let recording = PROBE.record(&path, run).unwrap();
    let came = f();
    recording.finish().unwrap();
    let file = std::fs::read(&path).unwrap();
    let chunks = Chunks::new(&file).filter_map(|walked| match walked {
        Walked::Chunk(chunk) if chunk.header.lane == LaneId::RECORDER => None,
        Walked::Chunk(chunk) => Some(chunk.records()),
        _ => None,
    });
    (chunks.flatten().copied().collect(), came)
}

/// Records what `f` does and returns the records.
pub fn recorded(f: impl for<'l> FnOnce(Recorder<'l, AutoClock>)) -> Vec<Record> {
    recording(|| PROBE.at(Level::PULSE, f).unwrap()).0
}
