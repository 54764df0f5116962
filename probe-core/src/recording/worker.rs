//! The recorder's thread.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tmrun_formats::wire::{Frame, TerminalV1};

use super::RecordError;
use super::file::FileSink;
use super::flight::Flight;
use super::rotate::{RETRY, Rotation};
use crate::calibrate::{Calibration, bracket};
use crate::clock::{Clock, host_ns};
use crate::drain::{Drain, Flush, Summary};

/// The pause between two looks at the lanes while records come: short enough that a ring of the
/// default size cannot fill meanwhile, and long enough that the head lines, which the producers store
/// to, are not fetched all the time.
const PAUSE: Duration = Duration::from_micros(50);
/// The pause once nothing has come for [`QUIET`]: a waiting process need not be woken so often.
const QUIET_PAUSE: Duration = Duration::from_millis(1);
const QUIET: Duration = Duration::from_millis(200);
/// The oldest record that is not in the file.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
const CALIBRATE_EVERY: Duration = Duration::from_secs(1);

type FileDrain<C> = Drain<'static, C, FileSink>;

/// How the run ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) reason: Option<String>,
}

/// What the thread owns.
pub(super) struct Worker<C: Clock> {
    drain: FileDrain<C>,
    end: Arc<Mutex<Option<End>>>,
    path: PathBuf,
    calibration: Calibration,
    /// The mapped rings. Their file is removed when everything is in the recording's and in no other
    /// case: where this thread ends by a panic (of the application's clock, say), they hold what it has
    /// not written.
    flight: Option<Flight>,
    rotation: Option<Rotation>,
    /// The first error of a file of the recording, and which one that is.
    error: Option<(PathBuf, io::Error)>,
    /// When a sink that fails was last tried.
    tried: Instant,
}

impl<C: Clock> Worker<C> {
    pub(super) fn new(
        drain: FileDrain<C>,
        end: Arc<Mutex<Option<End>>>,
        path: PathBuf,
        calibration: Calibration,
        flight: Option<Flight>,
        rotation: Option<Rotation>,
    ) -> Self {
        let tried = Instant::now();
        Self { drain, end, path, calibration, flight, rotation, error: None, tried }
    }

    pub(super) fn run(mut self) -> Result<Summary, RecordError> {
        let start = Instant::now();
        let (mut flushed, mut calibrated, mut came) = (start, start, start);
        loop {
            let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(end) = end {
                return self.finish(&end);
            }
            let all = flushed.elapsed() >= FLUSH_EVERY;
            let polled = self.drain.poll(if all { Flush::All } else { Flush::Full });
            let polled = self.keep_error(polled).unwrap_or_default();
            if all {
                flushed = Instant::now();
            }
            if calibrated.elapsed() >= CALIBRATE_EVERY {
                calibrated = Instant::now();
                self.calibrate();
            }
            self.turn();
            if polled.waiting > 0 {
                came = Instant::now();
            }
            let quiet = came.elapsed() >= QUIET;
            std::thread::park_timeout(if quiet { QUIET_PAUSE } else { PAUSE });
        }
    }

    /// Goes on in another file, or where a sink that failed left off, when it is time to.
    fn turn(&mut self) {
        if let Some(rotation) = &mut self.rotation {
            let reading = || self.calibration.next(bracket(C::ticks, host_ns));
            if let Err(failed) = rotation.turn(&mut self.drain, reading) {
                self.error.get_or_insert(failed);
            }
        }
        if self.drain.is_failing() && self.tried.elapsed() >= RETRY {
            self.tried = Instant::now();
            // That it fails is known.
            let _ = self.retry();
        }
    }

    fn retry(&mut self) -> io::Result<()> {
        self.drain.retry()?;
        match &mut self.rotation {
            Some(rotation) if !self.drain.is_failing() => rotation.again(&mut self.drain),
            _ => Ok(()),
        }
    }

    fn calibrate(&mut self) {
        let sample = self.calibration.next(bracket(C::ticks, host_ns));
        let written = self.drain.write_frames(&[Frame::Calibration(sample)]);
        self.keep_error(written);
        if let Some(flight) = &mut self.flight {
            // The recording lacks nothing without it. If the process should die, what the rings then
            // hold is placed in time by the readings that are there.
            let _ = flight.reading(sample);
        }
    }

    /// Remembers the first error; the drain goes on, and counts.
    fn keep_error<T>(&mut self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let path = self.rotation.as_ref().map(Rotation::path);
                self.error.get_or_insert((path.unwrap_or_else(|| self.path.clone()), error));
                None
            }
        }
    }

    fn finish(mut self, end: &End) -> Result<Summary, RecordError> {
        let last = self.calibration.next(bracket(C::ticks, host_ns));
        let reason = end.reason.as_deref();
        let terminal = TerminalV1 { complete: reason.is_none(), reason, ticks: C::ticks() };
        let frames = [Frame::Calibration(last), Frame::Terminal(terminal)];
        if self.drain.is_failing() {
            let _ = self.retry();
        }
        let (summary, finished) = self.drain.finish(&frames);
        let path = self.rotation.as_ref().map_or(self.path, Rotation::path);
        if let Some(rotation) = &self.rotation {
            rotation.finished(&summary);
        }
        match self.error.or(finished.err().map(|source| (path, source))) {
            None => {
                if let Some(flight) = self.flight {
                    flight.finished();
                }
                Ok(summary)
            }
            Some((path, source)) => Err(RecordError::Write { path, source, summary }),
        }
    }
}
