//! What becomes of one span of `tracing`.

use core::marker::PhantomData;

use tmrun_formats::wire::flags;
use tmrun_formats::{LaneId, NameId, Planes, Ticks};

use super::callsites::Callsite;
use crate::clock::Clock;
use crate::detached::Begun;
use crate::lane::{Ended as _, Entered, SpanRef};
use crate::record::{Recorder, Target};
use crate::span::{SpanShape, Whole, too_deep};

/// A span of `tracing` that is recorded on the probe `T`.
///
/// Whether it is a span of a lane or a detached one shows when it is entered for the second time. So
/// the first time is a span of the lane, whose record waits; then that becomes a segment of a detached
/// span, or, if the span is closed first, the span itself.
#[derive(Debug)]
pub(super) struct Traced<T> {
    callsite: &'static Callsite,
    /// Numbers that came before it was entered.
    numbers: Vec<(NameId, f64)>,
    first: Option<First>,
    /// What it is once it was entered again.
    detached: Option<Begun>,
    /// The times that it is entered and not left, in order.
    open: Vec<Open>,
    target: PhantomData<fn() -> T>,
}

/// The first time.
#[derive(Debug, Clone, Copy)]
struct First {
    /// The end is not known before it is left.
    part: Whole,
    /// What the whole is in, which a part of a detached span does not outlive.
    outside: SpanRef,
    left: bool,
}

/// A time that it was entered and not left.
#[derive(Debug)]
struct Open {
    thread: usize,
    /// Where it was put on its lane, if it was.
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    lane: LaneId,
    entered: Entered,
    first: bool,
}

/// A span that another is in by its parents, and whether it is open on the calling thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    span: SpanRef,
    open_here: bool,
}

/// A number of the calling thread, which no other thread has at the same time.
fn thread() -> usize {
    std::thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| core::ptr::from_ref(place).addr())
}

impl<T: Target> Traced<T> {
    pub(super) fn new(callsite: &'static Callsite, numbers: Vec<(NameId, f64)>) -> Self {
        let (first, detached, open, target) = (None, None, Vec::new(), PhantomData);
        Self { callsite, numbers, first, detached, open, target }
    }

    pub(super) fn callsite(&self) -> &'static Callsite {
        self.callsite
    }

    fn shape(&self) -> SpanShape {
        SpanShape::FUNCTION.at(self.callsite.level())
    }

    /// Which span it is, once it was entered.
    pub(super) fn outside(&self) -> Option<Outside> {
        let span =
            self.detached.map(|begun| begun.span).or(self.first.map(|first| first.part.span));
        let here = thread();
        let open_here = self.open.iter().any(|open| open.thread == here && open.place.is_some());
        Some(Outside { span: span?, open_here })
    }

    /// Keeps these numbers, or hands them back once they have a span to be in.
    pub(super) fn keep_until_entered(
        &mut self,
        numbers: Vec<(NameId, f64)>,
    ) -> Option<Vec<(NameId, f64)>> {
        if self.first.is_some() {
            return Some(numbers);
        }
        self.numbers.extend(numbers);
        None
    }

    /// The calling thread enters it. Hands out the numbers that waited for it.
    pub(super) fn enter(
        &mut self,
        target: &T,
        outside: Option<Outside>,
    ) -> Option<Vec<(NameId, f64)>> {
        let wanted = target.is_wanted(self.callsite.level())
            && target.probe().wants(self.callsite.name(), self.callsite.level());
        let place = if wanted {
            let place = target.on_lane(Planes::HOST_TIME, |recorder| match self.first {
                None => self.enter_first(recorder, outside),
                Some(first) => self.enter_again(recorder, &first),
            });
            place.flatten()
        } else {
            None
        };
        self.open.push(Open { thread: thread(), place });
        place.filter(|place| place.first).map(|_| core::mem::take(&mut self.numbers))
    }

    fn enter_first<C: Clock>(
        &mut self,
        recorder: Recorder<'_, C>,
        outside: Option<Outside>,
    ) -> Option<Place> {
        let (block, name) = (recorder.block(), self.callsite.name());
        let lane = block.id();
        let (around, _) = block.innermost();
        let parent = block.current();
        let elsewhere = outside.filter(|outside| !outside.open_here).map(|outside| outside.span);
        let Some(entered) = block.enter::<C>(name, None) else {
            too_deep::<C>(block, name);
            return None;
        };
        let part = Whole {
            span: SpanRef { lane, id: block.current().id },
            parent: elsewhere.unwrap_or(parent),
            name,
            start: entered.start,
            end: entered.start,
            depth: entered.depth as u16 - 1,
            shape: self.shape(),
        };
        self.first = Some(First { part, outside: elsewhere.unwrap_or(around), left: false });
        Some(Place { lane, entered, first: true })
    }

    fn enter_again<C: Clock>(&mut self, recorder: Recorder<'_, C>, first: &First) -> Option<Place> {
        let block = recorder.block();
        let begun = self.detached.unwrap_or_else(|| {
            let Whole { name, start, depth, shape, .. } = first.part;
            let span = SpanRef { lane: block.id(), id: block.take_id_apart::<C>() };
            let begun = Begun { span, parent: first.outside, name, start, depth, shape };
            if first.left {
                segment(&first.part, &begun).write::<C>(block);
            }
            begun
        });
        self.detached = Some(begun);
        let Some(entered) = block.enter::<C>(begun.name, Some(begun.span)) else {
            too_deep::<C>(block, begun.name);
            return None;
        };
        Some(Place { lane: block.id(), entered, first: false })
    }

    /// The calling thread leaves it, at this moment.
    pub(super) fn exit(&mut self, target: &T, now: Ticks) {
        let here = thread();
        let Some(at) = self.open.iter().rposition(|open| open.thread == here) else { return };
        let Some(place) = self.open.remove(at).place else { return };
        target.on_lane(Planes::HOST_TIME, |recorder| self.leave(recorder, place, now));
    }

    fn leave<C: Clock>(&mut self, recorder: Recorder<'_, C>, place: Place, now: Ticks) {
        let block = recorder.block();
        let Some(first) = self.first.as_mut().filter(|_| block.id() == place.lane) else { return };
        let known = block.known(place.entered.depth);
        let part = if place.first {
            first.part.end = now;
            first.left = true;
            Some(first.part)
        } else {
            known.map(|known| Whole {
                span: SpanRef { lane: place.lane, id: known.id() },
                start: place.entered.start,
                end: now,
                depth: place.entered.depth as u16 - 1,
                ..first.part
            })
        };
        if let (Some(part), Some(begun)) = (&part, &self.detached) {
            segment(part, begun).write::<C>(block);
        }
        block.leave(place.entered.depth);
    }

    /// It is closed.
    pub(super) fn close(self, target: &T) {
        let Some(first) = self.first.filter(|first| first.left) else { return };
        target.on_lane(Planes::HOST_TIME, |recorder| match &self.detached {
            Some(begun) => begun.end(recorder),
            None => first.part.write::<T::Clock>(recorder.block()),
        });
    }
}

/// The record of a part, now that it is known to be one.
fn segment(part: &Whole, of: &Begun) -> Whole {
    Whole { parent: of.span, shape: part.shape.flagged(flags::SPAN_SEGMENT), ..*part }
}
