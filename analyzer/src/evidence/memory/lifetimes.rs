//! From allocation to free, as places and numbers.

use super::super::{Groups, Index, Link, ranks};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tmrun_formats::trace::{Memory, MemoryAction, TraceDocument};

/// Every life of every storage. What allocates a storage that is live is an alias of it; what frees
/// one that is not is nothing.
///
/// A *position* is a place in [`Storages::by_time`](super::super::index::Storages::by_time).
#[derive(Debug)]
pub struct Lifetimes {
    /// They are, by their beginning, then device, then storage.
    pub all: Vec<Lifetime>,
    /// The lifetime that the event at each position begins, is an alias in, or ends.
    pub at: Vec<Link>,
    /// The positions of each lifetime.
    pub positions: Groups,
}

/// One life of a storage.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// The memory event that allocated it.
    pub event: u32,
    /// The position of that.
    pub begins: u32,
    /// The position of its free; none while it is live.
    pub ends: Link,
    /// Its size.
    pub bytes: u64,
    /// When it was allocated.
    pub start_ns: u64,
    /// When it was freed.
    pub end_ns: Option<u64>,
    /// The span that it was allocated in.
    pub span: Link,
    /// The operation of that span that the allocation names.
    pub named: Named,
}

/// What a name means among the operations of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// There is no name, or none of them has it.
    Nothing,
    /// One of them has it.
    One(u32),
    /// Several have it.
    Several,
}

impl Lifetimes {
    /// Follows every storage through time.
    #[must_use]
    pub fn of(trace: &TraceDocument<'_>, index: &Index<'_>) -> Self {
        let names = Names::of(trace, index);
        let mut live = vec![Link::NONE; index.storages.first.len()];
        let mut all: Vec<Lifetime> = Vec::new();
        let mut at = vec![Link::NONE; trace.memory.len()];
        let by_time = (0..).zip(&index.storages.by_time).zip(&mut at);
        for ((position, &place), at) in by_time {
            let Some(event) = trace.memory.get(place as usize) else { continue };
            let storage = Link::get(link(&index.storages.of_events, place));
            let Some(live) = storage.and_then(|storage| live.get_mut(storage)) else { continue };
            *at = match (event.action, live.is_some()) {
                (MemoryAction::Alloc, true) => *live,
                (MemoryAction::Alloc, false) => {
                    *live = Link::to(all.len());
                    let span = link(&index.memory_spans, place);
                    let named = names.get(span, event.op_name.as_deref());
                    all.push(Lifetime {
                        event: place,
                        begins: position,
                        ends: Link::NONE,
                        bytes: event.bytes,
                        start_ns: event.timestamp_ns,
                        end_ns: None,
                        span,
                        named,
                    });
                    *live
                }
                (MemoryAction::Free, _) => std::mem::replace(live, Link::NONE),
            };
            let ended = at.get().filter(|_| event.action == MemoryAction::Free);
            if let Some(lifetime) = ended.and_then(|ended| all.get_mut(ended)) {
                lifetime.ends = Link::to(position as usize);
                lifetime.end_ns = Some(event.timestamp_ns);
            }
        }
        Self::sorted(trace, all, at)
    }

    /// Puts lifetimes that came by their beginnings in their order: where several begin at one time
    /// device and storage decide, then who came first.
    fn sorted(trace: &TraceDocument<'_>, came: Vec<Lifetime>, mut at: Vec<Link>) -> Self {
        let mut order: Vec<usize> = (0..came.len()).collect();
        let key = |place: &usize| came.get(*place).map(|one| (one.start_ns, one.event));
        order.sort_by(|left, right| match (key(left), key(right)) {
            (Some((left_ns, left)), Some((right_ns, right))) => left_ns
                .cmp(&right_ns)
                .then_with(|| storage(trace, left).cmp(&storage(trace, right))),
            _ => Ordering::Equal,
        });
        let places = ranks::inverse(order.iter().copied(), order.len());
        for link in &mut at {
            if let Some(place) = link.of(&places) {
                *link = Link::to(*place as usize);
            }
        }
        let positions = at.iter().enumerate().map(|(position, &lifetime)| (lifetime, position));
        let positions = Groups::new(order.len(), positions);
        let all = order.into_iter().filter_map(|place| came.get(place).copied()).collect();
        Self { all, at, positions }
    }
}

impl Lifetime {
    /// The event that allocated it.
    #[must_use]
    pub fn allocation<'d, 'a>(&self, trace: &'d TraceDocument<'a>) -> Option<&'d Memory<'a>> {
        trace.memory.get(self.event as usize)
    }
}

fn storage<'d>(trace: &'d TraceDocument<'_>, event: u32) -> Option<(&'d str, &'d str)> {
    trace.memory.get(event as usize).map(|event| (&*event.device, &*event.storage_id))
}

fn link(links: &[Link], place: u32) -> Link {
    links.get(place as usize).copied().unwrap_or(Link::NONE)
}

/// Finds operations by span and name.
struct Names<'d>(HashMap<(Link, &'d str), Named>);

impl<'d> Names<'d> {
    fn of(trace: &'d TraceDocument<'_>, index: &Index<'_>) -> Self {
        let mut names = HashMap::new();
        if trace.memory.iter().any(|event| event.op_name.is_some()) {
            for ((place, op), &span) in (0..).zip(&trace.ops).zip(&index.op_spans) {
                match names.entry((span, &*op.op_name)) {
                    Entry::Vacant(entry) => drop(entry.insert(Named::One(place))),
                    Entry::Occupied(mut entry) => *entry.get_mut() = Named::Several,
                }
            }
        }
        Self(names)
    }

    fn get(&self, span: Link, name: Option<&str>) -> Named {
        let found = name.filter(|_| span.is_some()).and_then(|name| self.0.get(&(span, name)));
        found.copied().unwrap_or(Named::Nothing)
    }
}
