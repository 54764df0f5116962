//! Spans: one record for each, written when it ends.

use core::marker::PhantomData;

use tmrun_formats::wire::{Gap, RecordHeader, Span};
use tmrun_formats::{ExecutionStep, GapReason, Level, NameId, Planes, SpanId, SpanKind};

use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::record::{Recorder, Target};
use crate::site::Site;

/// What a span's site knows about it. All of it is constant at the site, and folds away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanShape {
    /// What the span stands for.
    pub kind: SpanKind,
    /// The part of a training step that it covers.
    pub step: ExecutionStep,
    /// See [`flags`](tmrun_formats::wire::flags).
    pub flags: u16,
}

impl SpanShape {
    /// A span of code.
    pub const FUNCTION: Self = Self { kind: SpanKind::FUNCTION, step: ExecutionStep(0), flags: 0 };
    /// The measured region: the one span whose duration is the run's.
    pub const MEASURED: Self = Self {
        kind: SpanKind::FUNCTION,
        step: ExecutionStep(0),
        flags: tmrun_formats::wire::flags::SPAN_MEASURED,
    };

    /// The same, standing for something else.
    pub const fn kind(self, kind: SpanKind) -> Self {
        Self { kind, ..self }
    }

    /// The same, as a part of the training step.
    pub const fn step(self, step: ExecutionStep) -> Self {
        Self { step, ..self }
    }
}

/// An open span. Its record is written when the guard is dropped. A guard that was armed when it
/// opened always writes; one that was not never does.
///
/// It stays on the thread that opened it:
///
/// ```compile_fail,E0277
/// # use tmrun_probe_core::{probe, span};
/// probe!(static PROBE: lanes = 1, slots = 64);
/// let guard = span!(PROBE, "here");
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "a span ends when its guard is dropped"]
pub struct SpanGuard<'l, C: Clock> {
    // Few fields, and none that the open-span stack has: they live in registers.
    block: Option<&'l LaneBlock>,
    start: tmrun_formats::Ticks,
    depth: u32,
    level: Level,
    shape: SpanShape,
    /// Stays on its thread, as the lane does.
    here: PhantomData<*const C>,
}

impl<'l, C: Clock> SpanGuard<'l, C> {
    #[inline(always)]
    const fn inert() -> Self {
        Self {
            block: None,
            start: tmrun_formats::Ticks(0),
            depth: 0,
            level: Level(0),
            shape: SpanShape::FUNCTION,
            here: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn open(
        recorder: Recorder<'l, C>,
        name: NameId,
        level: Level,
        shape: SpanShape,
    ) -> Self {
        let block = recorder.block();
        match block.enter(name, C::ticks) {
            Some(entered) => Self {
                block: Some(block),
                start: entered.start,
                depth: entered.depth,
                level,
                shape,
                here: PhantomData,
            },
            None => {
                too_deep(recorder, name);
                Self::inert()
            }
        }
    }

    /// The span's id on its lane; none when it is not recorded.
    pub fn id(&self) -> SpanId {
        self.block.map_or(SpanId::NONE, |block| block.open_id(self.depth))
    }
}

/// A span deeper than the stack: a gap of one record says so.
#[cold]
#[inline(never)]
fn too_deep<C: Clock>(recorder: Recorder<'_, C>, name: NameId) {
    let now = C::ticks();
    let gap = Gap {
        first: now,
        last: now,
        records: 1,
        groups: 1,
        planes: Planes::HOST_TIME,
        lane: recorder.block().id(),
        reason: GapReason::TOO_DEEP,
    };
    recorder.store(recorder.header::<Gap>(now, name, Level::PULSE), &gap);
}

impl<C: Clock> Drop for SpanGuard<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(block) = self.block else { return };
        let end = C::ticks();
        let (id, name, parent) = block.leave(self.depth);
        let header = RecordHeader {
            ticks: self.start,
            name,
            span: id.0 as u32,
            flags: self.shape.flags,
            ..RecordHeader::of::<Span>(self.level)
        };
        let span = Span {
            end,
            parent,
            own_high: (id.0 >> 32) as u32,
            parent_lane: block.id(),
            own_lane: block.id(),
            depth: self.depth as u16 - 1,
            step: self.shape.step,
            kind: self.shape.kind,
        };
        if let Some(mut store) = block.reserve(1, self.start, Planes::HOST_TIME) {
            store.put(header, &span);
            store.publish();
        }
    }
}

impl<C: Clock> core::fmt::Debug for SpanGuard<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SpanGuard").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What [`span!`](crate::span) expands to: a span named by its site, or by `node`.
#[doc(hidden)]
#[inline(always)]
pub fn open_span<'t, T: Target>(
    target: &'t T,
    site: &'static Site,
    node: Option<NameId>,
    shape: SpanShape,
) -> SpanGuard<'t, T::Clock> {
    if site.level() > T::MAX_LEVEL || !target.is_armed(site) {
        return SpanGuard::inert();
    }
    // SAFETY: the guard counts in the lane's depth for as long as it lives.
    match unsafe { target.here() } {
        Some(recorder) => {
            SpanGuard::open(recorder, node.unwrap_or_else(|| site.name_id()), site.level(), shape)
        }
        None => {
            target.probe().shared.no_lane.count(1, Planes::HOST_TIME);
            SpanGuard::inert()
        }
    }
}
