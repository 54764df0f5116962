//! A layer for `tracing`, so that code which is instrumented with it reports unchanged.

mod callsites;
mod traced;

use tmrun_formats::wire::Scalar;
use tmrun_formats::{Level, NameId, Planes, Ticks};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef as Span};

use crate::clock::Clock;
use crate::global::Global;
use crate::record::{Recorder, Target};
use callsites::{Callsite, Callsites};
use traced::{Outside, Traced};

/// Records the spans and the numbers of [`tracing`](https://docs.rs/tracing), on the
/// [installed](crate::install) probe or on one of choice. (Feature `tracing`.)
///
/// | in `tracing` | in the recording |
/// | --- | --- |
/// | a span that is entered once | one span, as long as it was entered |
/// | a span that is entered again, as an asynchronous one is at every poll | a [detached span](crate::DetachedSpan) from the first time until it is closed, and a segment for each time |
/// | a numeric field of a span | a scalar `span.field` in the span, when it is first entered |
/// | a numeric field recorded later, or of an event | a scalar `span.field`, `event.field`, at that time |
/// | text, and what is shown as text | nothing |
/// | ERROR, WARN, INFO; DEBUG; TRACE | level 1; 2; 3 |
///
/// An event without a name of its own goes by its target, the module's path. A span is in what is open
/// on its lane; where its parent is open elsewhere or no more, it is in its parent.
///
/// A span's record is written when it is closed: one that is leaked, or closed behind the end of the
/// recording, is missing. The layer pays what `tracing` costs: the subscriber keeps spans in a table and
/// looks them up. What it never does in the steady state is to intern a name.
///
/// ```
/// use tmrun_probe_core::{TmrunLayer, install, probe};
/// use tracing_subscriber::layer::SubscriberExt;
/// probe!(static PROBE: lanes = 4, slots = 1 << 10);
///
/// install(PROBE)?;
/// let subscriber = tracing_subscriber::registry().with(TmrunLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _layer = tracing::info_span!("layer", index = 3).entered();
///     tracing::info!(name: "step", loss = 0.5);
/// });
/// # Ok::<(), tmrun_probe_core::AlreadyInstalled>(())
/// ```
#[derive(Debug)]
pub struct TmrunLayer<T = Global> {
    target: T,
    callsites: Callsites,
}

impl TmrunLayer {
    /// A layer over the installed probe.
    pub fn new() -> Self {
        Self::of(Global)
    }
}

impl Default for TmrunLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Target> TmrunLayer<T> {
    /// A layer over this probe.
    pub fn of(target: T) -> Self {
        Self { target, callsites: Callsites::default() }
    }

    /// Records these numbers, on the calling thread's lane, as of now.
    fn scalars(&self, level: Level, numbers: &[(NameId, f64)]) {
        if numbers.is_empty() {
            return;
        }
        let now = T::Clock::ticks();
        for &(label, value) in numbers {
            if self.target.probe().wants(label, level) {
                self.target.on_lane(Planes::SCALARS, |recorder| {
                    store_scalar(recorder, now, level, label, value);
                });
            }
        }
    }

    /// The numbers that `visit` hands out, with their labels.
    fn numbers(
        &self,
        callsite: &Callsite,
        visit: impl FnOnce(&mut dyn Visit),
    ) -> Vec<(NameId, f64)> {
        let mut numbers = Vec::new();
        visit(&mut Numbers(|field: &Field, value| {
            numbers.push((callsite.label(&self.target.probe(), field), value));
        }));
        numbers
    }
}

fn store_scalar<C: Clock>(
    recorder: Recorder<'_, C>,
    now: Ticks,
    level: Level,
    label: NameId,
    value: f64,
) {
    recorder.store(recorder.header::<Scalar>(now, label, level), &Scalar { value });
}

impl<T, S> Layer<S> for TmrunLayer<T>
where
    T: Target + Send + Sync + 'static,
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if !self.target.is_wanted(callsites::level(metadata)) {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let callsite = self.callsites.get(metadata, &self.target.probe());
        let numbers = self.numbers(callsite, |visitor| attributes.record(visitor));
        span.extensions_mut().replace(Traced::<T>::new(callsite, numbers));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(traced) = extensions.get_mut::<Traced<T>>() else { return };
        let callsite = traced.callsite();
        let numbers = self.numbers(callsite, |visitor| values.record(visitor));
        if let Some(numbers) = traced.keep_until_entered(numbers)
            && self.target.is_wanted(callsite.level())
        {
            self.scalars(callsite.level(), &numbers);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = callsites::level(event.metadata());
        if !self.target.is_wanted(level) {
            return;
        }
        let callsite = self.callsites.get(event.metadata(), &self.target.probe());
        let numbers = self.numbers(callsite, |visitor| event.record(visitor));
        self.scalars(level, &numbers);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let outside = outside::<T, S>(&span);
        let mut extensions = span.extensions_mut();
        let Some(traced) = extensions.get_mut::<Traced<T>>() else { return };
        if let Some(numbers) = traced.enter(&self.target, outside) {
            self.scalars(traced.callsite().level(), &numbers);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let now = T::Clock::ticks();
        let Some(span) = context.span(id) else { return };
        if let Some(traced) = span.extensions_mut().get_mut::<Traced<T>>() {
            traced.exit(&self.target, now);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let traced = span.extensions_mut().remove::<Traced<T>>();
        if let Some(traced) = traced {
            traced.close(&self.target);
        }
    }
}

/// The nearest ancestor that has been entered.
fn outside<T, S>(span: &Span<'_, S>) -> Option<Outside>
where
    T: Target + 'static,
    S: for<'a> LookupSpan<'a>,
{
    span.scope().skip(1).find_map(|span| span.extensions().get::<Traced<T>>()?.outside())
}

/// Hands on every field that is a number.
struct Numbers<F>(F);

impl<F: FnMut(&Field, f64)> Visit for Numbers<F> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0(field, value as f64);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0(field, value as f64);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.0(field, value as f64);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.0(field, value as f64);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0(field, f64::from(u8::from(value)));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn core::fmt::Debug) {}
}
