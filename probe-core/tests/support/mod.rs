//! What the tests share: a sink into memory, a clock that counts, and a reader of their own.
#![allow(dead_code, reason = "every test binary uses a part of it")]

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod dying;
pub mod read;
#[cfg(target_os = "linux")]
pub mod small_disk;

use std::sync::atomic::{AtomicU64, Ordering};

use tmrun_formats::wire::{FileHeader, Frame, TerminalV1};
use tmrun_formats::{Level, RunId, Ticks};
use tmrun_probe_core::{Clock, Drain, Flush, ProbeRef, Sink, Start, Summary};

/// A clock that counts its own readings, for all tests of the binary together.
#[derive(Debug)]
pub enum Counting {}

static NOW: AtomicU64 = AtomicU64::new(1000);

impl Clock for Counting {
    const NAME: &'static str = "counting";

    fn ticks() -> Ticks {
        Ticks(NOW.fetch_add(1, Ordering::Relaxed))
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}

/// A sink into memory, which may fail at a write of choice.
#[derive(Debug, Default)]
pub struct Memory {
    pub bytes: Vec<u8>,
    /// Writes that were asked for.
    pub writes: usize,
    /// The write that fails, from 0 on, after half of its bytes,
    pub fails_at: Option<usize>,
    /// and how many of those behind it do.
    pub fails_on: usize,
    /// How often the sink was to be cut,
    pub cuts: usize,
    /// and how often, at first, it cannot be.
    pub cuts_fail: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

impl Memory {
    /// Fails at this write and at all behind it.
    pub fn failing_at(write: usize) -> Self {
        Self { fails_at: Some(write), fails_on: usize::MAX, ..Self::default() }
    }

    /// Fails once.
    pub fn failing_once_at(write: usize) -> Self {
        Self { fails_at: Some(write), ..Self::default() }
    }
}

impl Sink for Memory {
    type Error = Broken;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Broken> {
        let fails = self
            .fails_at
            .is_some_and(|at| (at..=at.saturating_add(self.fails_on)).contains(&self.writes));
        self.writes += 1;
        let all = pieces.concat();
        let taken = if fails { all.len() / 2 } else { all.len() };
        self.bytes.extend_from_slice(&all[..taken]);
        if fails { Err(Broken) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> Result<(), Broken> {
        self.cuts += 1;
        assert!(len <= self.bytes.len() as u64, "a cut does not lengthen");
        if self.cuts <= self.cuts_fail {
            return Err(Broken);
        }
        self.bytes.truncate(len as usize);
        Ok(())
    }
}

pub const HEADER: FileHeader =
    FileHeader { run: RunId([7; 16]), created_ns: 1, ticks_per_second: 1_000_000_000 };

/// Starts recording `probe` into `sink`.
pub fn start<'p, C: Clock, S: Sink>(
    probe: ProbeRef<'p, C>,
    sink: S,
    level: Level,
) -> Drain<'p, C, S> {
    match Drain::start(probe, sink, &HEADER, &[], level) {
        Ok(drain) => drain,
        Err(Start::Unavailable(busy)) => panic!("{busy}"),
        Err(Start::Sink(_)) => panic!("the sink failed"),
    }
}

pub const TERMINAL: Frame<'static> =
    Frame::Terminal(TerminalV1 { complete: true, reason: None, ticks: Ticks(0) });

/// Finishes a recording into memory and reads it back.
pub fn finish<C: Clock>(drain: Drain<'_, C, Memory>) -> (Summary, read::File) {
    let (summary, sink) = drain.finish(&[TERMINAL]);
    let sink = sink.expect("the sink takes everything");
    let file = read::File::finished(&sink.bytes);
    assert_eq!(summary.bytes, sink.bytes.len() as u64);
    assert_eq!(summary.records, file.records.len() as u64);
    (summary, file)
}

/// Polls everything, and panics when the sink fails.
pub fn poll<C: Clock, S: Sink>(drain: &mut Drain<'_, C, S>) -> u64 {
    match drain.poll(Flush::All) {
        Ok(polled) => polled.records,
        Err(_) => panic!("the sink failed"),
    }
}
