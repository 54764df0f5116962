//! A session that captures one step.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tmrun_formats::trace::{SpanKind, TraceStep};
use tmrun_formats::wire::flags;
use tmrun_formats::{Level, SpanId as Id};

use super::ground::Ground;
use super::memory::Sizes;
use super::{SessionClock, SessionError, SpanGuard, SpanId, codes};
use crate::drain::Summary;
use crate::lane::SpanRef;
use crate::recording::{ProfileRun, RecordError};
use crate::span::{SpanShape, Whole};

/// A session that captures one training update or inference invocation into a `.tmrun`.
///
/// It is used by one thread at a time. What it cannot store is counted, and the file says so; see the
/// [module](super) for the whole of it.
#[derive(Debug)]
#[must_use = "a session that is dropped is marked as failed"]
pub struct TraceSession {
    pub(super) ground: Ground,
}

/// How much a session can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionBuilder {
    slots: usize,
    names: usize,
}

impl Default for SessionBuilder {
    fn default() -> Self {
        Self { slots: 1 << 16, names: 1 << 16 }
    }
}

impl SessionBuilder {
    /// Records that may wait to be written, 64 bytes each; the next power of two from 32 to 2^26.
    /// 65,536 without: more than come in a few milliseconds.
    #[must_use]
    pub const fn slots(self, slots: usize) -> Self {
        Self { slots, ..self }
    }

    /// Different labels, tensors, storages and other texts, of 64 bytes each on average; from 1 to
    /// 2^24. 65,536 without. What finds no room is recorded without its name, and counted.
    #[must_use]
    pub const fn names(self, names: usize) -> Self {
        Self { names, ..self }
    }

    /// Opens a session of this size; see [`TraceSession::open`].
    ///
    /// # Errors
    ///
    /// As [`TraceSession::open`].
    pub fn open(
        self,
        path: impl AsRef<Path>,
        run: ProfileRun,
    ) -> Result<TraceSession, SessionError> {
        let run = run.of_session();
        run.check_as_trace().map_err(RecordError::Run)?;
        Ok(TraceSession { ground: Ground::open(path.as_ref(), run, self.sizes())? })
    }

    pub(super) fn sizes(self) -> Sizes {
        let slots = self.slots.clamp(32, 1 << 26).next_power_of_two();
        Sizes { slots, names: self.names.clamp(1, 1 << 24) }
    }
}

impl TraceSession {
    /// Opens a session. Its file is new (see [`ProfileRun::replace`]); the folder is made if it is not
    /// there. Unless the run or TMRUN_LEVEL says otherwise, everything is recorded.
    ///
    /// # Errors
    ///
    /// When the run breaks a rule of its contract, of its identity or of where it comes from (before
    /// the file is made), there is no memory for it, or it cannot be recorded.
    pub fn open(path: impl AsRef<Path>, run: ProfileRun) -> Result<Self, SessionError> {
        SessionBuilder::default().open(path, run)
    }

    /// How much a session is to hold, to open it by.
    #[must_use]
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.ground.path()
    }

    /// Begins a span within the one that is open.
    pub fn begin_span(&self, name: impl AsRef<str>, kind: SpanKind) -> SpanGuard<'_> {
        self.begin(name.as_ref(), SpanShape::FUNCTION.kind(codes::kind(kind)))
    }

    /// Begins the measured region: the one span whose duration is the step's.
    pub fn begin_measurement(&self, name: impl AsRef<str>) -> SpanGuard<'_> {
        self.begin(name.as_ref(), SpanShape::MEASURED)
    }

    /// Begins a span that is a part of a training step.
    pub fn begin_step_span(
        &self,
        name: impl AsRef<str>,
        step: TraceStep,
        kind: SpanKind,
    ) -> SpanGuard<'_> {
        let shape = SpanShape::FUNCTION.kind(codes::kind(kind)).step(codes::step(step));
        self.begin(name.as_ref(), shape)
    }

    fn begin(&self, name: &str, shape: SpanShape) -> SpanGuard<'_> {
        SpanGuard::open(name, || self.ground.begin(name, shape))
    }

    /// Records host work that ran beside the spans of the session and has ended. It is a span within
    /// no other.
    ///
    /// # Errors
    ///
    /// When it lasts no time or ends later than now.
    pub fn record_completed_host_span(
        &self,
        name: impl AsRef<str>,
        kind: SpanKind,
        start_ns: u64,
        duration_ns: u64,
    ) -> Result<SpanId, SessionError> {
        let end_ns = interval("completed host work", start_ns, duration_ns)?;
        let (ground, now_ns) = (&self.ground, self.elapsed_ns());
        if end_ns > now_ns {
            return Err(SessionError::InTheFuture { end_ns, now_ns });
        }
        let Some(name) = ground.wanted(name.as_ref(), Level::TIMING) else {
            return Ok(SpanId(Id::NONE));
        };
        let block = ground.block();
        let span = SpanRef { lane: block.id(), id: block.take_id_apart::<SessionClock>() };
        let whole = Whole {
            span,
            parent: SpanRef { id: Id::NONE, ..span },
            name,
            start: ground.at(start_ns),
            end: ground.at(end_ns),
            depth: 0,
            shape: SpanShape::FUNCTION.kind(codes::kind(kind)).flagged(flags::SPAN_COMPLETED),
        };
        whole.write::<SessionClock>(block);
        Ok(SpanId(span.id))
    }

    /// Whether records of this level are wanted now of what is called so: who has to compute what it
    /// records asks first. (Without a label the level alone counts.)
    pub fn wants(&self, label: &str, level: Level) -> bool {
        self.ground.wanted(label, level).is_some()
    }

    /// The session's time now: nanoseconds since it was opened.
    pub fn elapsed_ns(&self) -> u64 {
        self.ground.now_ns()
    }

    /// A moment in the session's time.
    ///
    /// # Errors
    ///
    /// When it is before the session began.
    pub fn host_timestamp_ns(&self, instant: Instant) -> Result<u64, SessionError> {
        self.ground.ns_of(instant).ok_or(SessionError::BeforeSession)
    }

    /// Waits until what was recorded so far is written, a tenth of a second at most. (A file that
    /// cannot be written is an error when the session is finished.)
    ///
    /// # Errors
    ///
    /// In a process that was forked from the one that records.
    pub fn flush(&self) -> Result<(), SessionError> {
        self.ground.flush()
    }

    /// Ends a session whose step did what it was to do. Returns its file.
    ///
    /// # Errors
    ///
    /// When the file could not be written to its end, now or earlier, or spans are still open: then
    /// the file says that the run failed.
    pub fn finish(self) -> Result<PathBuf, SessionError> {
        Ok(self.ground.finish(None)?.0)
    }

    /// The same, with what the recording came to.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn finish_with_summary(self) -> Result<(PathBuf, Summary), SessionError> {
        self.ground.finish(None)
    }

    /// Ends a session whose step failed, and says why. Returns its file, which holds what was recorded.
    ///
    /// # Errors
    ///
    /// When the reason is blank, or the file could not be written to its end.
    pub fn finish_failed(self, reason: impl AsRef<str>) -> Result<PathBuf, SessionError> {
        let reason = text("the reason of the failure", reason.as_ref())?;
        Ok(self.ground.finish(Some(reason))?.0)
    }
}

/// Holds that a text says something.
pub(super) fn text<'t>(what: &'static str, text: &'t str) -> Result<&'t str, SessionError> {
    if text.trim().is_empty() { Err(SessionError::Blank { what }) } else { Ok(text) }
}

/// The end of an interval that lasts some time.
pub(super) fn interval(
    what: &'static str,
    start_ns: u64,
    duration_ns: u64,
) -> Result<u64, SessionError> {
    if duration_ns == 0 {
        return Err(SessionError::EmptyInterval { what });
    }
    let too_long = SessionError::IntervalTooLong { what, start_ns, duration_ns };
    start_ns.checked_add(duration_ns).ok_or(too_long)
}
