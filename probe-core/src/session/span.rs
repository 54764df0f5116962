//! Spans of a session.

use tmrun_formats::Ticks;

use super::SessionClock;
#[cfg(feature = "nvtx")]
use super::nvtx;
use crate::clock::Clock;

/// A span of a session, for what is recorded of it, also when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub(super) tmrun_formats::SpanId);

impl SpanId {
    /// Its number in the session, from 1; 0 of a span that is not recorded, because the level does
    /// not ask for it.
    pub const fn raw(self) -> u64 {
        self.0.0
    }
}

/// An open span of a session. It ends when the guard is dropped.
#[must_use = "a span ends when its guard is dropped"]
#[derive(Debug)]
pub struct SpanGuard<'s> {
    // Dropped in this order: the range of the other tool is around ours.
    guard: crate::span::SpanGuard<'s, SessionClock>,
    #[cfg(feature = "nvtx")]
    _range: Option<nvtx::Range>,
    begun: Ticks,
}

impl<'s> SpanGuard<'s> {
    /// The guard of a span that `open` opens.
    pub(super) fn open(
        label: &str,
        open: impl FnOnce() -> crate::span::SpanGuard<'s, SessionClock>,
    ) -> Self {
        #[cfg(feature = "nvtx")]
        let _range = nvtx::Range::push(label);
        #[cfg(not(feature = "nvtx"))]
        let _ = label;
        let guard = open();
        let begun = guard.start().unwrap_or_else(SessionClock::ticks);
        Self {
            guard,
            #[cfg(feature = "nvtx")]
            _range,
            begun,
        }
    }

    /// The span's identity.
    pub fn id(&self) -> SpanId {
        SpanId(self.guard.id())
    }

    /// How long it has been open.
    pub fn elapsed_ns(&self) -> u64 {
        SessionClock::ticks().since(self.begun)
    }
}
