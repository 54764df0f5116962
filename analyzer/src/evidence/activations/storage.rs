//! Which storages are which operation's.

use super::super::memory::{Lifetime, Lifetimes, Named};
use super::super::{Groups, Index, Link};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tmrun_formats::trace::{CoverageLevel, MemoryCategory, TraceDocument};

/// The storages of activations that were allocated in the measured region, by operation.
pub(super) struct Storage<'t> {
    lifetimes: &'t Lifetimes,
    by_op: Groups,
    /// How many belong to no single operation.
    pub of_nobody: u64,
    /// Whether one of those was allocated in each span.
    has_strays: Vec<bool>,
    /// The measured span, if it ended.
    measured: Option<(u64, u64)>,
    /// Whether all allocations are declared to be there.
    is_complete: bool,
}

/// What storage an operation costs; nothing that is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub bytes: Option<u64>,
    pub storages: Option<u64>,
    pub live_ns: Option<u64>,
    pub byte_ns: Option<u128>,
    pub retained: Option<u64>,
}

impl<'t> Storage<'t> {
    pub fn of(trace: &TraceDocument<'_>, index: &Index<'_>, lifetimes: &'t Lifetimes) -> Self {
        let links = Links::of(trace, index, lifetimes);
        let mut of_nobody = 0_u64;
        let mut has_strays = vec![false; trace.spans.len()];
        let mut owners = vec![Link::NONE; lifetimes.all.len()];
        for ((place, lifetime), owner) in lifetimes.all.iter().enumerate().zip(&mut owners) {
            let is_activation = lifetime
                .allocation(trace)
                .is_some_and(|event| event.category == MemoryCategory::Activation);
            let is_inside = lifetime.span.of(&index.tree.in_measured).copied().unwrap_or(false);
            if !(is_activation && is_inside) {
                continue;
            }
            *owner = links.owner(place, lifetime);
            if !owner.is_some() {
                of_nobody = of_nobody.saturating_add(1);
                let stray = lifetime.span.get().and_then(|span| has_strays.get_mut(span));
                stray.into_iter().for_each(|stray| *stray = true);
            }
        }
        let owned = owners.iter().enumerate().map(|(lifetime, &owner)| (owner, lifetime));
        let spans = trace.by_id.iter().filter_map(|&span| trace.spans.get(span));
        let mut measured = spans.filter(|span| span.measured && span.duration_ns.is_some());
        Self {
            lifetimes,
            by_op: Groups::new(trace.ops.len(), owned),
            of_nobody,
            has_strays,
            measured: measured.next().map(|span| (span.start_ns, span.end_ns())),
            is_complete: trace.run.capture_contract.logical_memory == CoverageLevel::Complete,
        }
    }

    /// The storages of an operation.
    pub fn of_op(&self, op: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.by_op.of(op)
    }

    /// What storages of an operation in a span cost, inside the measured region. That none were
    /// allocated is known only where all are there and none in the span belongs to nobody.
    pub fn cost(&self, storages: impl ExactSizeIterator<Item = usize>, span: Link) -> Cost {
        let count = storages.len();
        if count == 0 {
            let has_strays = span.of(&self.has_strays).copied().unwrap_or(true);
            let zero = (self.is_complete && !has_strays).then_some(0);
            let byte_ns = zero.map(u128::from);
            return Cost { bytes: zero, storages: zero, live_ns: zero, byte_ns, retained: zero };
        }
        let (mut bytes, mut live_ns, mut byte_ns, mut retained) = (0_u64, 0_u64, 0_u128, 0_u64);
        let (begin, end) = self.measured.unwrap_or_default();
        for lifetime in storages.filter_map(|place| self.lifetimes.all.get(place)) {
            let from = lifetime.start_ns.max(begin);
            let until = lifetime.end_ns.unwrap_or(end).min(end);
            let live = until.saturating_sub(from);
            let of = lifetime.bytes;
            bytes = bytes.saturating_add(of);
            live_ns = live_ns.saturating_add(live);
            byte_ns = byte_ns.saturating_add(u128::from(of).saturating_mul(live.into()));
            if lifetime.start_ns < end && lifetime.end_ns.is_none_or(|at| at > end) {
                retained = retained.saturating_add(of);
            }
        }
        let is_measured = self.measured.is_some();
        Cost {
            bytes: Some(bytes),
            storages: u64::try_from(count).ok(),
            live_ns: is_measured.then_some(live_ns),
            byte_ns: is_measured.then_some(byte_ns),
            retained: is_measured.then_some(retained),
        }
    }
}

/// How storages are linked to operations of their span: by the tensors that lie in them, and by the
/// name of the operation.
struct Links<'t, 'd, 'a> {
    trace: &'t TraceDocument<'a>,
    index: &'t Index<'d>,
    lifetimes: &'t Lifetimes,
    /// The operations that put a tensor out, by span and tensor.
    by_output: HashMap<(Link, Link), Named>,
}

impl<'t, 'd, 'a> Links<'t, 'd, 'a> {
    fn of(trace: &'t TraceDocument<'a>, index: &'t Index<'d>, lifetimes: &'t Lifetimes) -> Self {
        let mut by_output = HashMap::new();
        let outputs = (0..).zip(index.op_spans.iter().zip(&index.tensors.of_outputs));
        let wanted = outputs.filter(|(_, (span, output))| {
            !lifetimes.all.is_empty() && span.is_some() && output.is_some()
        });
        for (op, (&span, &output)) in wanted {
            match by_output.entry((span, output)) {
                Entry::Vacant(entry) => drop(entry.insert(Named::One(op))),
                Entry::Occupied(mut entry) => *entry.get_mut() = Named::Several,
            }
        }
        Self { trace, index, lifetimes, by_output }
    }

    /// The only operation that puts out one of the storage's tensors, unless the name is another's;
    /// else the only one of that name, unless the tensors are others'.
    fn owner(&self, place: usize, lifetime: &Lifetime) -> Link {
        let tensors = self.tensors(place);
        let by_output =
            tensors.iter().filter_map(|&tensor| self.by_output.get(&(lifetime.span, tensor)));
        let by_output = by_output.fold(Named::Nothing, |found, &more| match found {
            Named::Nothing => more,
            Named::One(_) | Named::Several => Named::Several,
        });
        let owner = match (by_output, lifetime.named) {
            (Named::One(op), Named::Nothing) | (Named::Nothing, Named::One(op)) => op,
            (Named::One(op), Named::Several) if self.is_named(op, lifetime) => op,
            (Named::One(output), Named::One(named)) if output == named => named,
            (Named::Several, Named::One(op)) if self.puts_out(op, &tensors) => op,
            _ => return Link::NONE,
        };
        Link::to(owner as usize)
    }

    /// The tensors that lay in a storage, each once.
    fn tensors(&self, lifetime: usize) -> Vec<Link> {
        let by_time = &self.index.storages.by_time;
        let positions = self.lifetimes.positions.of(lifetime);
        let events = positions.filter_map(|position| by_time.get(position));
        let tensors = events.filter_map(|&event| self.index.tensors.of_memory.get(event as usize));
        let mut tensors: Vec<Link> = tensors.copied().collect();
        tensors.sort_unstable();
        tensors.dedup();
        tensors
    }

    fn is_named(&self, op: u32, lifetime: &Lifetime) -> bool {
        let name = self.trace.ops.get(op as usize).map(|op| &*op.op_name);
        name == lifetime.allocation(self.trace).and_then(|event| event.op_name.as_deref())
    }

    fn puts_out(&self, op: u32, tensors: &[Link]) -> bool {
        let output = self.index.tensors.of_outputs.get(op as usize);
        output.is_some_and(|output| tensors.binary_search(output).is_ok())
    }
}
