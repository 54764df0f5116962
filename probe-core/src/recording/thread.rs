//! A recording to a file: how it starts, and how it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tmrun_formats::wire::{CalibrationV1, FileHeader, Frame, ItemV1};

use super::file::{FileSink, create as new_file, emptied};
use super::flight::{self, Flight};
use super::rotate::{Rotation, Told};
use super::worker::{End, Worker};
use super::{ProfileRun, RecordError, cost, host};
use crate::calibrate::{Calibration, bracket};
use crate::clock::{Clock, host_ns};
use crate::drain::{Drain, Hold, Summary};
use crate::lane::LaneBlock;
use crate::probe::ProbeRef;

/// A running recording. Finish it: one that is dropped is marked as failed.
#[derive(Debug)]
#[must_use = "a recording that is dropped is marked as failed"]
pub struct Recording {
    thread: Option<JoinHandle<Result<Summary, RecordError>>>,
    end: Arc<Mutex<Option<End>>>,
    path: PathBuf,
    rings: Option<PathBuf>,
    /// The process that records; a child of it has this value too.
    process: u32,
}

impl<C: Clock> ProbeRef<'static, C> {
    /// Starts recording this probe into a new file, on a thread of its own.
    ///
    /// # Errors
    ///
    /// When the probe is being recorded already, the file exists or cannot be created, the run
    /// promises what cannot be kept, TMRUN_LEVEL is no level, a focus is none, or no thread can be
    /// had.
    pub fn record(
        &self,
        path: impl AsRef<Path>,
        run: ProfileRun,
    ) -> Result<Recording, RecordError> {
        let path = path.as_ref().to_owned();
        run.check_promises().map_err(RecordError::Run)?;
        let (level, foci) = run.asked_for()?;
        let foci = foci.iter().map(|(pattern, level)| (pattern.as_str(), *level));
        let foci = self.foci(foci).map_err(RecordError::Focus)?;
        // The probe first: the file may be the one that it is being recorded into.
        let hold = Hold::take(*self).map_err(RecordError::Unavailable)?;
        let create = |source| RecordError::Create { path: path.clone(), source };
        let (file, is_new) = new_file(&path, run.replace).map_err(create)?;
        let made = NewFile(Some(path.as_path()).filter(|_| is_new));

        let nominal = C::ticks_per_second();
        let id = host::new_run_id();
        let header = FileHeader { run: id, created_ns: host::unix_ns(), ticks_per_second: nominal };
        let first = bracket(C::ticks, host_ns);
        let recording_cost = cost::measure::<C>();
        let rings = run.flight.then(|| flight::place(run.rings_in.as_deref(), id)).transpose()?;
        #[cfg(target_os = "linux")]
        super::fork::watch(*self);
        let ring_slots = self.ring_slots() as u64;
        let told = Told { run, id, ring_slots, rings: rings.clone(), cost: recording_cost, first };
        let (mut drain, flight) = told.with_frames::<C, _>(|frames| {
            let rings = rings.clone();
            let rings = rings.map(|rings| map_rings(*self, rings, &path, &header, &frames, first));
            let flight = NewRings(rings.transpose()?);
            // Behind the rings: without them there is no recording, and an old one stays.
            let file = FileSink(emptied(file).map_err(create)?);
            let drain = Drain::start_held(hold, file, &header, &frames, level, &foci);
            Ok((drain.map_err(create)?, flight))
        })?;
        drain.set_cost(recording_cost);
        *drain.look() = told.run.retain.look::<C>(told.run.capture_step);
        let parts = told.run.retain.has_parts();
        let rotation = parts.then(|| Rotation::start(told, &path, &mut drain));
        let rotation = rotation.transpose().map_err(create)?;

        let end = Arc::new(Mutex::new(None));
        let calibration = Calibration::start(first);
        let (its_end, its_path) = (Arc::clone(&end), path.clone());
        let thread = std::thread::Builder::new()
            .name("tmrun recorder".to_owned())
            .spawn(move || {
                let flight = flight.keep();
                Worker::new(drain, its_end, its_path, calibration, flight, rotation).run()
            })
            .map_err(|source| RecordError::Thread { source })?;
        made.keep();
        Ok(Recording { thread: Some(thread), end, path, rings, process: std::process::id() })
    }
}

/// Maps the rings to a file that describes the run, and names the file that they are drained into.
fn map_rings<C: Clock>(
    probe: ProbeRef<'static, C>,
    rings: PathBuf,
    path: &Path,
    header: &FileHeader,
    frames: &[Frame<'_>],
    first: CalibrationV1,
) -> Result<Flight, RecordError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_string_lossy();
    // Behind the run: what finds no room is left out from the last on.
    let mut frames = frames.to_vec();
    frames.insert(1, Frame::RecordingFile(ItemV1 { text: &text }));
    Flight::map(probe, rings, header, &frames, first)
}

/// A file that was made for a recording which has not started: removed if it does not. (A file that
/// was there before stays.)
struct NewFile<'p>(Option<&'p Path>);

impl NewFile<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // When even this fails, the error that is being returned names the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Rings that were mapped for a recording which has not started: their file is removed if it does not.
struct NewRings(Option<Flight>);

impl NewRings {
    fn keep(mut self) -> Option<Flight> {
        self.0.take()
    }
}

impl Drop for NewRings {
    fn drop(&mut self) {
        if let Some(flight) = self.0.take() {
            flight.finished();
        }
    }
}

impl Recording {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that the rings are mapped to, with [`ProfileRun::flight_recorder`].
    pub fn rings(&self) -> Option<&Path> {
        self.rings.as_deref()
    }

    /// Waits until what is stored on this lane now is taken from its ring.
    pub(crate) fn flush(&self, lane: &LaneBlock) -> Result<(), RecordError> {
        if self.process != std::process::id() {
            return Err(RecordError::Forked { path: self.path.clone() });
        }
        let head = lane.observe_head();
        let is_running = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while lane.taken() < head && is_running() {
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Ends a run that did what it was to do: writes what is pending and no more.
    ///
    /// # Errors
    ///
    /// When the file could not be written to its end, now or earlier. When the recorder's thread
    /// panicked (of the application's code it calls the [`Clock`]): nothing was recorded from then on,
    /// and what was not in the file by then is in the [mapped rings](Self::rings), if there are any.
    /// (That these could not be given another reading of the clock is no error: they are only read
    /// where a recording has no end.)
    pub fn finish(mut self) -> Result<Summary, RecordError> {
        self.end(None)
    }

    /// Ends a run that did not, and says why.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn finish_failed(mut self, reason: &str) -> Result<Summary, RecordError> {
        self.end(Some(reason.to_owned()))
    }

    fn end(&mut self, reason: Option<String>) -> Result<Summary, RecordError> {
        let Some(thread) = self.thread.take() else { return Ok(Summary::default()) };
        if self.process != std::process::id() {
            // The thread is the parent's, and so are the file and whatever the lock holds.
            core::mem::forget(thread);
            return Err(RecordError::Forked { path: self.path.clone() });
        }
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(End { reason });
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| {
            let mut text = "it panicked; the file ends where it was".to_owned();
            if let Some(rings) = &self.rings {
                let rings = rings.display();
                text +=
                    &format!(", and what came behind is in {rings}: `tmrun salvage` joins them");
            }
            Err(RecordError::Thread { source: io::Error::other(text) })
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            "the thread that recorded panicked"
        } else {
            "the recording was dropped without being finished"
        };
        // Nobody is left to hear of an error here; the file's missing end tells of it.
        let _ = self.end(Some(reason.to_owned()));
    }
}
