//! The tree of spans, also where it is none.

use super::super::{Groups, Link};
use rayon::prelude::*;
use std::collections::HashMap;
use tmrun_formats::trace::{Span, TraceDocument};

/// Finds spans by id.
pub(super) struct Ids<'d> {
    spans: &'d [Span<'d>],
    by_id: HashMap<&'d str, Link>,
}

impl<'d> Ids<'d> {
    pub(super) fn of(spans: &'d [Span<'_>]) -> Self {
        let ids = spans.iter().enumerate().map(|(span, Span { id, .. })| (&**id, Link::to(span)));
        Self { spans, by_id: ids.collect() }
    }

    /// The span of this id.
    pub(super) fn get(&self, id: &str) -> Link {
        self.by_id.get(id).copied().unwrap_or(Link::NONE)
    }

    /// The span of each event. Neighbours often name the same one, which is then not looked up.
    pub(super) fn resolve<T: Sync>(
        &self,
        events: &[T],
        id: impl Fn(&T) -> &str + Sync,
    ) -> Vec<Link> {
        const AT_LEAST: usize = 4096;
        let resolve = |last: &mut Link, event: &T| {
            let id = id(event);
            if last.of(self.spans).is_none_or(|span| span.id != id) {
                *last = self.get(id);
            }
            *last
        };
        events.par_iter().with_min_len(AT_LEAST).map_init(|| Link::NONE, resolve).collect()
    }
}

/// How spans hang together. Lists of spans are in the order of their ids as bytes, as
/// [`TraceDocument::by_id`] is.
#[derive(Debug)]
pub struct Tree {
    /// Each span's parent; none of a root, and of a span whose parent is not in the trace.
    pub parents: Vec<Link>,
    /// Each span's children.
    pub children: Groups,
    /// Spans without a parent's id.
    pub roots: Vec<u32>,
    /// Spans of the measured region; a valid trace has one.
    pub measured: Vec<u32>,
    /// Whether each span is a measured one or below one.
    pub in_measured: Vec<bool>,
    /// Every span behind its parent. Those of which following the parents never ends are left out:
    /// they are on a cycle or below one.
    pub top_down: Vec<u32>,
    /// Whether each span is left out there.
    pub cyclic: Vec<bool>,
}

impl Tree {
    pub(super) fn of(trace: &TraceDocument<'_>, ids: &Ids<'_>) -> Self {
        let spans = &trace.spans;
        let parents = spans.par_iter().with_min_len(4096);
        let parents =
            parents.map(|span| span.parent.as_deref().map_or(Link::NONE, |id| ids.get(id)));
        let parents: Vec<Link> = parents.collect();
        let by_id = |keep: &dyn Fn(usize) -> bool| -> Vec<u32> {
            let kept = trace.by_id.iter().copied().filter(|&span| keep(span));
            kept.filter_map(|span| u32::try_from(span).ok()).collect()
        };
        let is = |span: usize, what: fn(&Span<'_>) -> bool| spans.get(span).is_some_and(what);
        let parent = |span: usize| parents.get(span).copied().unwrap_or(Link::NONE);
        let children = trace.by_id.iter().map(|&span| (parent(span), span));
        let children = Groups::new(spans.len(), children);
        let roots = by_id(&|span| is(span, |span| span.parent.is_none()));
        let measured = by_id(&|span| is(span, |span| span.measured));
        let top_down = reached(&children, by_id(&|span| !parent(span).is_some()), spans.len()).0;
        let (_, in_measured) = reached(&children, measured.clone(), spans.len());
        let mut cyclic = vec![true; spans.len()];
        for &span in &top_down {
            if let Some(cyclic) = cyclic.get_mut(span as usize) {
                *cyclic = false;
            }
        }
        Self { parents, children, roots, measured, in_measured, top_down, cyclic }
    }
}

/// The spans at and below the first ones, each once and behind its parent, and whether each span is
/// among them.
fn reached(children: &Groups, first: Vec<u32>, spans: usize) -> (Vec<u32>, Vec<bool>) {
    let mut is_reached = vec![false; spans];
    let mut reach = |span: usize| {
        is_reached.get_mut(span).is_some_and(|reached| !std::mem::replace(reached, true))
    };
    let mut order: Vec<u32> = first.into_iter().filter(|&span| reach(span as usize)).collect();
    let mut next = 0_usize;
    while let Some(&span) = order.get(next) {
        let below = children.of(span as usize).filter(|&child| reach(child));
        order.extend(below.filter_map(|child| u32::try_from(child).ok()));
        next = next.saturating_add(1);
    }
    (order, is_reached)
}
