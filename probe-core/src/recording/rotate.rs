//! A recording that goes on in another file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tmrun_formats::wire::{CalibrationV1, FileHeader, Frame, RecorderCostV1};
use tmrun_formats::{RunId, Ticks};

use super::file::{FileSink, create, emptied};
use super::parts::Parts;
use super::{ProfileRun, host};
use crate::clock::Clock;
use crate::drain::{Drain, Summary};

/// A file that cannot be made, or a sink that fails, is tried again after so long.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// What all files of a recording say.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) run: ProfileRun,
    pub(super) id: RunId,
    pub(super) ring_slots: u64,
    pub(super) rings: Option<PathBuf>,
    pub(super) cost: RecorderCostV1,
    /// The first reading of the clock: all files have one origin of time.
    pub(super) first: CalibrationV1,
}

impl Told {
    /// Hands the frames that a file begins with to `write`.
    pub(super) fn with_frames<C: Clock, R>(&self, write: impl FnOnce(Vec<Frame<'_>>) -> R) -> R {
        let clock = (C::name(), C::is_invariant());
        self.run.with_frames(self.id, clock, self.ring_slots, self.rings.as_deref(), |frames| {
            let mut frames = frames.to_vec();
            frames.push(Frame::RecorderCost(self.cost));
            frames.push(Frame::Calibration(self.first));
            write(frames)
        })
    }
}

/// The files of a recording, as the recorder's thread goes from one to the next.
#[derive(Debug)]
pub(super) struct Rotation {
    told: Told,
    parts: Parts,
    /// When the next file could not be made.
    failed: Option<Instant>,
    /// What the file that is written begins with is not all in it.
    headless: bool,
}

/// What could not be made, and why.
pub(super) type Failed = (PathBuf, io::Error);

impl Rotation {
    /// Begins with the first file, and says in it that it is the first.
    pub(super) fn start<C: Clock>(
        told: Told,
        path: &Path,
        drain: &mut Drain<'static, C, FileSink>,
    ) -> io::Result<Self> {
        let parts = Parts::new::<C>(told.run.retain.clone(), path.to_owned());
        drain.write_frames(&[Frame::Part(parts.which(1).part(None))])?;
        Ok(Self { told, parts, failed: None, headless: false })
    }

    /// The file that is written.
    pub(super) fn path(&self) -> PathBuf {
        self.parts.path(self.parts.number)
    }

    /// Goes on in the next file if this one is full, and removes what is not to stay. A file that
    /// cannot be made is tried again later, and this one goes on meanwhile.
    pub(super) fn turn<C: Clock>(
        &mut self,
        drain: &mut Drain<'static, C, FileSink>,
        reading: impl FnOnce() -> CalibrationV1,
    ) -> Result<(), Failed> {
        self.see(drain);
        let waits = self.failed.is_some_and(|failed| failed.elapsed() < RETRY);
        if waits || drain.is_failing() || !self.parts.is_due(drain.file().bytes) {
            return Ok(());
        }
        let next = self.parts.number.saturating_add(1);
        let path = self.parts.path(next);
        let made = create(&path, self.told.run.replace).and_then(|(file, _)| emptied(file));
        let file = made.map_err(|error| {
            self.failed = Some(Instant::now());
            (path.clone(), error)
        })?;
        self.failed = None;
        // Before the last records of this file are taken: what is waited for may come behind them.
        let now = C::ticks();
        let gone_on = self.go_on(drain, file, next, now, reading());
        self.headless = drain.is_failing();
        let removed = self.remove(drain, now);
        gone_on.and(removed).map_err(|error| (path, error))
    }

    fn go_on<C: Clock>(
        &mut self,
        drain: &mut Drain<'static, C, FileSink>,
        file: File,
        next: u64,
        now: Ticks,
        reading: CalibrationV1,
    ) -> io::Result<()> {
        let header = FileHeader {
            run: self.told.id,
            created_ns: host::unix_ns(),
            ticks_per_second: C::ticks_per_second(),
        };
        let before = drain.earlier_records();
        let parts = &self.parts;
        let gone_on = self.told.with_frames::<C, _>(|frames| {
            // They need not live as long as the run does.
            let mut frames: Vec<Frame<'_>> = frames;
            frames.push(Frame::Calibration(reading));
            let (this, next_name) = (parts.which(parts.number), parts.name(next));
            let end = [Frame::Calibration(reading), Frame::Part(this.part(Some(&next_name)))];
            let next = parts.which(next);
            drain.next_file(FileSink(file), &header, &end, &frames, next.part(None))
        });
        // What was taken was of the file that has ended.
        self.see(drain);
        self.parts.ended(drain.earlier_records().saturating_sub(before), now, C::ticks());
        gone_on
    }

    /// Whether what is waited for has happened.
    fn see<C: Clock>(&mut self, drain: &mut Drain<'static, C, FileSink>) {
        if drain.look().watch.take_fired() {
            self.parts.pin();
        }
    }

    /// Removes what is not to stay, and says so: every later file says of those that are gone.
    fn remove<C: Clock>(
        &mut self,
        drain: &mut Drain<'static, C, FileSink>,
        now: Ticks,
    ) -> io::Result<()> {
        let removed = self.parts.remove(!self.headless, now);
        drain.removed(removed);
        let told = self.parts.removed().chunks(16).map(|stretches| {
            let frames: Vec<_> = stretches.iter().copied().map(Frame::Removed).collect();
            drain.write_frames(&frames)
        });
        let told = told.fold(Ok(()), Result::and);
        told.and(self.parts.error.take().map_or(Ok(()), Err))
    }

    /// The sink works again: what the file begins with is written, if it is not there.
    pub(super) fn again<C: Clock>(
        &mut self,
        drain: &mut Drain<'static, C, FileSink>,
    ) -> io::Result<()> {
        if self.headless {
            let which = self.parts.which(self.parts.number);
            let part = which.part(None);
            self.told.with_frames::<C, _>(|frames| drain.begin_file(&frames, part))?;
            self.headless = drain.is_failing();
        }
        self.remove(drain, C::ticks())
    }

    /// The recording has ended: a file that could not even be begun is removed.
    pub(super) fn finished(&self, summary: &Summary) {
        if summary.bytes == 0 && self.parts.number > 1 {
            let _ = std::fs::remove_file(self.path());
        }
    }
}
