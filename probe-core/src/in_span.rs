//! Futures in spans.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::detached::DetachedSpan;
#[cfg(all(feature = "std", not(all(loom, test))))]
use crate::global::Global;
use crate::record::Target;

/// Puts a future in a span.
///
/// ```
/// use tmrun_probe_core::{InSpanExt, detached, install, probe};
/// probe!(static PROBE: lanes = 4, slots = 1 << 10);
///
/// async fn decode() -> u32 {
///     7
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::task::{Context, Poll, Waker};
/// # let (folder, run) = (tempfile::tempdir()?, tmrun_probe_core::ProfileRun::inference("doc", 1, "cpu"));
/// # let recording = PROBE.record(folder.path().join("run.tmrun"), run)?;
/// install(PROBE)?;
/// let task = decode().in_span("decode");
/// let of_the_program = decode().in_span_of(PROBE, "decode");
/// let named_once = decode().within(detached!("decode", kind = MODULE));
/// # for future in [Box::pin(task) as std::pin::Pin<Box<dyn Future<Output = u32>>>, Box::pin(of_the_program), Box::pin(named_once)] {
/// #     assert_eq!({ future }.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(7));
/// # }
/// # // Of each the span and its one segment; and the level.
/// # assert_eq!(recording.finish()?.records, 3 * 2 + 1);
/// # Ok(())
/// # }
/// ```
pub trait InSpanExt: Future + Sized {
    /// This future in a span of the [installed](crate::install) probe. The span begins here, in the
    /// span that is open, and ends when the future is ready or is dropped; each poll is a segment of
    /// it. The name is interned on each call: in a hot loop use [`within`](Self::within) and
    /// [`detached!`](crate::detached).
    #[cfg(all(feature = "std", not(all(loom, test))))]
    fn in_span(self, name: &str) -> InSpan<Self, Global> {
        self.in_span_of(Global, name)
    }

    /// The same on a probe of choice.
    fn in_span_of<T: Target>(self, target: T, name: &str) -> InSpan<Self, T> {
        self.within(DetachedSpan::begin(target, name))
    }

    /// This future in a span that has begun. It ends when the future is ready or is dropped.
    fn within<T: Target>(self, span: DetachedSpan<T>) -> InSpan<Self, T> {
        InSpan { future: self, span: Some(span) }
    }
}

impl<F: Future> InSpanExt for F {}

/// A future in a span: see [`InSpanExt`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct InSpan<F, T: Target> {
    // Before the span: what the future records as it is dropped is not behind the span's end.
    future: F,
    span: Option<DetachedSpan<T>>,
}

impl<F: Future, T: Target + Unpin> Future for InSpan<F, T> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is not moved out of the pinned value, here or anywhere; `span`, which is
        // assigned to, is not pinned with it (and could not tell: `T` is `Unpin`).
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above: it stays where it is until it is dropped, with the value around it.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let polled = {
            let _segment = this.span.as_ref().map(DetachedSpan::enter);
            future.poll(context)
        };
        if polled.is_ready() {
            this.span = None;
        }
        polled
    }
}
