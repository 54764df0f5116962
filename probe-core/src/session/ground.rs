//! What sessions stand on: a probe of their own, which is being recorded, with the one lane claimed.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tmrun_formats::wire::{Payload, RecordHeader};
use tmrun_formats::{Level, NameId, Ticks};

use super::memory::{Memory, Sizes};
use super::{SessionClock, SessionError, SpanId};
use crate::clock::Clock;
use crate::drain::Summary;
use crate::lane::LaneBlock;
use crate::probe::ProbeRef;
use crate::record::{Lane, Recorder};
use crate::recording::{ProfileRun, Recording};
use crate::span::{SpanGuard, SpanShape};

/// A probe that is being recorded. (Fields are dropped in this order: when the memory goes, no thread
/// drains it and nobody has a lane of it.)
#[derive(Debug)]
pub(super) struct Ground {
    recording: Recording,
    lane: Lane<'static, SessionClock>,
    /// The beginning of the session's time, by the two clocks that it is told in.
    origin: Ticks,
    started: Instant,
    _memory: Memory,
}

impl Ground {
    /// Starts recording into a new file, whose folder is made if it is not there.
    pub(super) fn open(path: &Path, run: ProfileRun, sizes: Sizes) -> Result<Self, SessionError> {
        let Sizes { slots, names } = sizes;
        let no_memory = |source| SessionError::Memory { slots, names, source };
        let memory = Memory::new(sizes).map_err(no_memory)?;
        // SAFETY: the probe is used by what is in this value and dropped before the memory. What is
        // lent of it is lent for no longer than this value is.
        let probe = unsafe { memory.probe() };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let failed = |source| SessionError::Folder { path: folder.to_owned(), source };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let recording = probe.record(path, run)?;
        // The one lane is free: nobody else has this probe.
        let lane = probe.claim(std::thread::current().name().unwrap_or("session"));
        let lane = lane.map_err(|no_lane| crate::RecordError::Thread {
            source: std::io::Error::other(no_lane.to_string()),
        })?;
        let (origin, started) = now();
        Ok(Self { recording, lane, origin, started, _memory: memory })
    }

    pub(super) fn path(&self) -> &Path {
        self.recording.path()
    }

    pub(super) fn probe(&self) -> ProbeRef<'_, SessionClock> {
        self.lane.recorder().probe()
    }

    pub(super) fn recorder(&self) -> Recorder<'_, SessionClock> {
        self.lane.recorder()
    }

    pub(super) fn block(&self) -> &LaneBlock {
        self.recorder().block()
    }

    /// The name of a text; none when the table is full, which is counted.
    pub(super) fn name(&self, text: &str) -> NameId {
        self.probe().name(text)
    }

    /// Whether records of this level are wanted of this node.
    pub(super) fn wants(&self, node: NameId, level: Level) -> bool {
        self.probe().wants(node, level)
    }

    /// The name of a node, if records of this level are wanted of it. Without a text: of none.
    pub(super) fn wanted(&self, node: &str, level: Level) -> Option<NameId> {
        if !self.probe().records(level) {
            return None;
        }
        let name = if node.is_empty() { NameId::NONE } else { self.name(node) };
        Some(name).filter(|name| self.wants(*name, level))
    }

    // --- time -----------------------------------------------------------------------------------

    /// The session's time now.
    pub(super) fn now_ns(&self) -> u64 {
        SessionClock::ticks().since(self.origin)
    }

    /// A moment of the session's time on the recording clock, which counts nanoseconds as well.
    pub(super) const fn at(&self, ns: u64) -> Ticks {
        Ticks(self.origin.0.saturating_add(ns))
    }

    /// An instant in the session's time; `None` before it began.
    pub(super) fn ns_of(&self, instant: Instant) -> Option<u64> {
        let since = instant.checked_duration_since(self.started)?;
        Some(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    // --- recording ------------------------------------------------------------------------------

    /// Holds that a span is one that this session began.
    pub(super) fn check(&self, span: SpanId) -> Result<SpanId, SessionError> {
        let (found, last) = (span.raw(), self.block().spans());
        if found > last { Err(SessionError::UnknownSpan { found, last }) } else { Ok(span) }
    }

    /// The header of a record that belongs to this span, whether or not that is the one that is open.
    pub(super) fn header<P: Payload>(
        &self,
        span: SpanId,
        ticks: Ticks,
        name: NameId,
    ) -> RecordHeader {
        let header = RecordHeader::of::<P>(P::KIND.level());
        RecordHeader { ticks, name, span: span.raw() as u32, ..header }
    }

    /// The span that is open.
    pub(super) fn enclosing(&self) -> SpanId {
        SpanId(self.block().current().id)
    }

    /// Opens a span, if spans of its level are recorded.
    pub(super) fn begin(&self, label: &str, shape: SpanShape) -> SpanGuard<'_, SessionClock> {
        match self.wanted(label, shape.level()) {
            Some(name) => SpanGuard::open(self.block(), name, shape),
            None => SpanGuard::inert(),
        }
    }

    // --- ending ---------------------------------------------------------------------------------

    /// Waits until what was recorded is taken from the ring, a tenth of a second at most.
    pub(super) fn flush(&self) -> Result<(), SessionError> {
        Ok(self.recording.flush(self.block())?)
    }

    /// Ends the recording: the reason is why it failed, if it did.
    pub(super) fn finish(self, reason: Option<&str>) -> Result<(PathBuf, Summary), SessionError> {
        let open = self.block().innermost().1;
        let path = self.path().to_owned();
        let Self { recording, lane, _memory: memory, .. } = self;
        let ended = match reason {
            Some(reason) => recording.finish_failed(reason),
            None if open == 0 => recording.finish(),
            None => recording.finish_failed(&format!("{open} spans were still open at the end")),
        };
        drop(lane);
        drop(memory);
        let summary = ended?;
        match reason {
            None if open > 0 => Err(SessionError::SpansOpen { open }),
            _ => Ok((path, summary)),
        }
    }
}

/// One moment by both clocks: of eight readings the closest. The recording clock is read first, so that
/// an instant is never later in ticks than it was.
fn now() -> (Ticks, Instant) {
    let once = || {
        let (ticks, instant) = (SessionClock::ticks(), Instant::now());
        (SessionClock::ticks().since(ticks), ticks, instant)
    };
    let closest = (0..7).fold(once(), |best, _| {
        let next = once();
        if next.0 < best.0 { next } else { best }
    });
    (closest.1, closest.2)
}
