//! Texts as numbers that are in the same order.

use std::collections::HashMap;
use std::hash::Hash;
use tmrun_formats::trace::TraceDocument;

/// Keys that often come again, and the place of each in their order.
pub(super) struct Ranks<K> {
    /// The keys, sorted, each once.
    pub keys: Vec<K>,
    /// Where each one that came is in `keys`.
    pub of: Vec<u32>,
}

impl<K: Copy + Ord + Hash> Ranks<K> {
    pub fn new(keys: impl IntoIterator<Item = K>) -> Self {
        let mut numbers = HashMap::new();
        let mut seen = Vec::new();
        let mut last: Option<(K, u32)> = None;
        let number = |key| match last {
            Some((same, number)) if same == key => number,
            _ => {
                let number = *numbers.entry(key).or_insert_with(|| {
                    seen.push(key);
                    u32::try_from(seen.len()).unwrap_or(u32::MAX).saturating_sub(1)
                });
                last = Some((key, number));
                number
            }
        };
        let mut of: Vec<u32> = keys.into_iter().map(number).collect();
        let mut order: Vec<(K, u32)> = seen.into_iter().zip(0..).collect();
        order.sort_unstable();
        let ranks = inverse(order.iter().map(|&(_, number)| number as usize), order.len());
        of.iter_mut().for_each(|number| *number = rank(&ranks, *number as usize));
        Self { keys: order.into_iter().map(|(key, _)| key).collect(), of }
    }
}

/// The place of each span in [`TraceDocument::by_id`].
pub(super) fn of_spans(trace: &TraceDocument<'_>) -> Vec<u32> {
    inverse(trace.by_id.iter().copied(), trace.spans.len())
}

/// Where each of `length` members stands in an order of all of them.
pub(super) fn inverse(order: impl Iterator<Item = usize>, length: usize) -> Vec<u32> {
    let mut places = vec![0; length];
    for (place, member) in (0..).zip(order) {
        if let Some(slot) = places.get_mut(member) {
            *slot = place;
        }
    }
    places
}

/// The place of a member; the first one of a member that is not there.
pub(super) fn rank(places: &[u32], member: usize) -> u32 {
    places.get(member).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_once_and_everyone_knows_its_place() {
        let ranks = Ranks::new(["b", "b", "a", "c", "a"]);
        assert_eq!((ranks.keys, ranks.of), (vec!["a", "b", "c"], vec![1, 1, 0, 2, 0]));
        assert!(Ranks::<&str>::new([]).keys.is_empty());
    }
}
