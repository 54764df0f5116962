//! The most storage that was live of a span and what hangs under it, for all spans at once.
//!
//! Lifetimes are laid out so that those of a span and what hangs under it are neighbours: first its
//! own, then those of its lighter children, then those of the child that has most. Following these
//! heaviest children gives a path, along which lifetimes are only added from its lower end to its
//! upper end; no lifetime is in more than log n paths.

use super::super::Index;
use super::super::memory::{Lifetime, Lifetimes};
use rayon::prelude::*;
use tmrun_formats::trace::TraceDocument;

/// What was live of a span and what hangs under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Peak {
    /// The most at one time while the span ran.
    pub bytes: u64,
    /// What of it outlives the span.
    pub residual: u64,
}

/// The peak of each span that has a lifetime or hangs above one; storage is of no span before that
/// begins, as in a valid trace.
pub(super) fn of(
    trace: &TraceDocument<'_>,
    index: &Index<'_>,
    lifetimes: &Lifetimes,
) -> Vec<Option<Peak>> {
    let layout = Layout::of(index, lifetimes, trace.spans.len());
    let heads: Vec<usize> = layout.heads(index).collect();
    let paths = heads.par_iter().map(|&head| layout.path(trace, head));
    let mut peaks = vec![None; trace.spans.len()];
    for (span, peak) in paths.collect::<Vec<_>>().into_iter().flatten() {
        if let Some(slot) = peaks.get_mut(span) {
            *slot = peak;
        }
    }
    peaks
}

/// Lifetimes, those of each subtree side by side.
struct Layout {
    lifetimes: Vec<Lifetime>,
    spans: Vec<Place>,
}

/// Where the lifetimes of a span and what hangs under it are.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    begin: usize,
    length: usize,
    /// The child that has most of them, which come last; not one that has none.
    heaviest: Option<usize>,
}

impl Layout {
    fn of(index: &Index<'_>, lifetimes: &Lifetimes, spans: usize) -> Self {
        let tree = &index.tree;
        let mut own = vec![0_usize; spans];
        let span_of = |lifetime: &Lifetime| {
            lifetime.span.get().filter(|&span| tree.cyclic.get(span) == Some(&false))
        };
        for lifetime in &lifetimes.all {
            let own = span_of(lifetime).and_then(|span| own.get_mut(span));
            own.into_iter().for_each(|own| *own = own.saturating_add(1));
        }
        let mut places: Vec<Place> =
            own.iter().map(|&length| Place { length, ..Place::default() }).collect();
        let parent = |span: usize| tree.parents.get(span).and_then(|parent| parent.get());
        let at = |places: &[Place], span: usize| places.get(span).copied().unwrap_or_default();
        for span in tree.top_down.iter().rev().map(|&span| span as usize) {
            let length = at(&places, span).length;
            let Some(above) = parent(span).filter(|_| length > 0) else { continue };
            let most = at(&places, above).heaviest.map_or(0, |most| at(&places, most).length);
            let Some(above) = places.get_mut(above) else { continue };
            above.length = above.length.saturating_add(length);
            if length > most {
                above.heaviest = Some(span);
            }
        }
        let mut end = 0_usize;
        for span in tree.top_down.iter().map(|&span| span as usize) {
            if parent(span).is_none() {
                let root = places.get_mut(span);
                root.into_iter().for_each(|root| root.begin = end);
                end = end.saturating_add(at(&places, span).length);
            }
            let Place { begin, heaviest, .. } = at(&places, span);
            let mut next = begin.saturating_add(own.get(span).copied().unwrap_or(0));
            let lighter = tree.children.of(span).filter(|&child| Some(child) != heaviest);
            for child in lighter.chain(heaviest) {
                let Some(child) = places.get_mut(child) else { continue };
                child.begin = next;
                next = next.saturating_add(child.length);
            }
        }
        let mut next: Vec<usize> = places.iter().map(|place| place.begin).collect();
        let mut order = vec![None; end];
        for lifetime in &lifetimes.all {
            let Some(next) = span_of(lifetime).and_then(|span| next.get_mut(span)) else {
                continue;
            };
            let slot = order.get_mut(*next);
            slot.into_iter().for_each(|slot| *slot = Some(*lifetime));
            *next = next.saturating_add(1);
        }
        Self { lifetimes: order.into_iter().flatten().collect(), spans: places }
    }

    /// The upper ends of the paths.
    fn heads<'t>(&'t self, index: &'t Index<'_>) -> impl Iterator<Item = usize> + 't {
        let spans = index.tree.top_down.iter().map(|&span| span as usize);
        spans.filter(|&span| {
            let above = index.tree.parents.get(span).and_then(|parent| parent.of(&self.spans));
            self.spans.get(span).is_some_and(|place| place.length > 0)
                && above.is_none_or(|above| above.heaviest != Some(span))
        })
    }

    /// The spans from a head downwards, each with the lifetimes that the next one does not have.
    fn path(&self, trace: &TraceDocument<'_>, head: usize) -> Vec<(usize, Option<Peak>)> {
        let place = |span: usize| self.spans.get(span).copied().unwrap_or_default();
        let Place { begin, length, .. } = place(head);
        let mut end = begin.saturating_add(length);
        let mut profile = Profile::of(self.lifetimes.get(begin..end).unwrap_or(&[]));
        let mut path: Vec<usize> =
            std::iter::successors(Some(head), |&span| place(span).heaviest).collect();
        path.reverse();
        let peaks = path.into_iter().map(|span| {
            let first = place(span).begin;
            (first.saturating_sub(begin)..end.saturating_sub(begin)).for_each(|at| profile.add(at));
            end = first;
            let span_is = trace.spans.get(span);
            let closed = span_is.filter(|span| span.duration_ns.is_some());
            (span, closed.map(|span| profile.until(span.start_ns, span.end_ns())))
        });
        peaks.collect()
    }
}

/// Bytes over time of some lifetimes, to which others are added.
struct Profile<'l> {
    lifetimes: &'l [Lifetime],
    /// The times at which one begins or ends, and whether it begins: ends come first.
    times: Vec<(u64, bool)>,
    /// Where in `times` each lifetime begins and ends; nowhere if it does both at once.
    at: Vec<Option<(usize, usize)>>,
    sums: Sums,
}

impl<'l> Profile<'l> {
    fn of(lifetimes: &'l [Lifetime]) -> Self {
        let mut edges = Vec::with_capacity(lifetimes.len().saturating_mul(2));
        for (place, lifetime) in lifetimes.iter().enumerate() {
            let (begins, ends) = (lifetime.start_ns, lifetime.end_ns.unwrap_or(u64::MAX));
            if begins < ends {
                edges.extend([(begins, true, place), (ends, false, place)]);
            }
        }
        edges.sort_unstable();
        let mut at = vec![None; lifetimes.len()];
        for (edge, &(_, begins, place)) in edges.iter().enumerate() {
            let Some(at) = at.get_mut(place) else { continue };
            *at = match (*at, begins) {
                (Some((begin, _)), false) => Some((begin, edge)),
                _ => Some((edge, edge)),
            };
        }
        let times: Vec<_> = edges.into_iter().map(|(time, begins, _)| (time, begins)).collect();
        Self { lifetimes, at, sums: Sums::zero(times.len()), times }
    }

    fn add(&mut self, lifetime: usize) {
        let at = self.at.get(lifetime).copied().flatten();
        if let (Some((begins, ends)), Some(lifetime)) = (at, self.lifetimes.get(lifetime)) {
            let bytes = i128::from(lifetime.bytes);
            self.sums.set(begins, bytes);
            self.sums.set(ends, bytes.saturating_neg());
        }
    }

    /// The peak of what was added, of a span with these ends.
    fn until(&self, start_ns: u64, end_ns: u64) -> Peak {
        if start_ns == end_ns {
            return Peak::default();
        }
        // What ends when the span does is counted as ended, what begins then as not begun.
        let before = self.times.partition_point(|&edge| edge < (end_ns, true));
        let Sum { all, most } = self.sums.first(before);
        Peak { bytes: at_most(most), residual: at_most(all) }
    }
}

/// Numbers of which the sum of the first ones, and the greatest of such sums, can be asked for while
/// they change: a tree over them, as a list.
struct Sums {
    nodes: Vec<Sum>,
    length: usize,
}

/// The sum of some numbers, and the greatest sum of the first of them, or zero.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    all: i128,
    most: i128,
}

impl Sum {
    fn then(self, next: Self) -> Self {
        let most = self.most.max(self.all.saturating_add(next.most));
        Self { all: self.all.saturating_add(next.all), most }
    }
}

impl Sums {
    fn zero(length: usize) -> Self {
        let length = length.next_power_of_two();
        Self { nodes: vec![Sum::default(); length.saturating_mul(2)], length }
    }

    fn node(&self, node: usize) -> Sum {
        self.nodes.get(node).copied().unwrap_or_default()
    }

    fn set(&mut self, place: usize, value: i128) {
        let mut node = self.length.saturating_add(place);
        let mut sum = Sum { all: value, most: value.max(0) };
        while let Some(slot) = self.nodes.get_mut(node).filter(|_| node > 0) {
            *slot = sum;
            node /= 2;
            let left = node.saturating_mul(2);
            sum = self.node(left).then(self.node(left.saturating_add(1)));
        }
    }

    /// The sum of the first `count`.
    fn first(&self, count: usize) -> Sum {
        let (mut node, mut size, mut left) = (1_usize, self.length, count);
        let mut sum = Sum::default();
        while left > 0 {
            if left >= size {
                return sum.then(self.node(node));
            }
            size /= 2;
            node = node.saturating_mul(2);
            if left >= size {
                sum = sum.then(self.node(node));
                left = left.saturating_sub(size);
                node = node.saturating_add(1);
            }
        }
        sum
    }
}

fn at_most(bytes: i128) -> u64 {
    u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_the_first_are_those_of_adding_them_up() {
        let mut values = [0_i128; 11];
        let mut sums = Sums::zero(values.len());
        for (round, place) in [3, 0, 10, 3, 7, 1, 9, 2, 5, 0].into_iter().enumerate() {
            let value = i128::try_from(round * 7 % 9).unwrap() - 4;
            values[place] = value;
            sums.set(place, value);
            for count in 0..=values.len() {
                let prefixes = (0..=count).map(|count| values[..count].iter().sum::<i128>());
                let Sum { all, most } = sums.first(count);
                assert_eq!(all, values[..count].iter().sum());
                assert_eq!(most, prefixes.max().unwrap(), "{values:?}, {count}");
            }
        }
    }
}
