//! Stretches of time, of which those that overlap another one are found without looking at all of them.

use tmrun_formats::Ticks;

/// From, and to.
pub(crate) type Stretch = (Ticks, Ticks);

/// Whether two stretches have some time in common, or the first is a part of the second.
pub(super) fn overlap((first, last): Stretch, (from, to): Stretch) -> bool {
    (first < to && last > from) || from <= first && last <= to
}

/// The stretch that both are in.
pub(super) fn hull((a, b): Stretch, (c, d): Stretch) -> Stretch {
    (a.min(c), b.max(d))
}

/// Some stretches.
#[derive(Debug, Default)]
pub(super) struct Stretches(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    stretch: Stretch,
    /// The end of the one that ends last of this and all that begin before.
    latest: Ticks,
    latest_half: u128,
}

impl FromIterator<Stretch> for Stretches {
    fn from_iter<I: IntoIterator<Item = Stretch>>(stretches: I) -> Self {
        let entry =
            |stretch: Stretch| Entry { stretch, latest: stretch.1, latest_half: halves(stretch).1 };
        let mut all: Vec<_> = stretches.into_iter().map(entry).collect();
        all.sort_unstable_by_key(|entry| halves(entry.stretch));
        let mut latest = (0, Ticks(0));
        for entry in &mut all {
            latest = latest.max((entry.latest_half, entry.latest));
            (entry.latest_half, entry.latest) = latest;
        }
        Self(all)
    }
}

impl Stretches {
    /// From the first to the last moment of those that overlap this one.
    pub(super) fn overlapping(&self, (from, to): Stretch) -> Option<Stretch> {
        self.ending_behind(from, (from, to))
    }

    /// The same of those that end behind a moment, or are one and not before it.
    pub(super) fn ending_behind(&self, moment: Ticks, (from, to): Stretch) -> Option<Stretch> {
        let (from, to) = (twice(from.max(moment)), twice(to));
        let begun = self.0.partition_point(|entry| halves(entry.stretch).0 <= to);
        let first = self.0.partition_point(|entry| entry.latest_half < from);
        let begun = self.0.get(first..begun)?;
        Some((begun.first()?.stretch.0, begun.last()?.latest))
    }
}

/// How many of some stretches overlap another one.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    firsts: Vec<u128>,
    lasts: Vec<u128>,
}

impl FromIterator<Stretch> for Tally {
    fn from_iter<I: IntoIterator<Item = Stretch>>(stretches: I) -> Self {
        let (mut firsts, mut lasts): (Vec<_>, Vec<_>) = stretches.into_iter().map(halves).unzip();
        firsts.sort_unstable();
        lasts.sort_unstable();
        Self { firsts, lasts }
    }
}

impl Tally {
    /// Those that have begun by the end, less those that had ended before the beginning.
    pub(crate) fn overlapping(&self, (from, to): Stretch) -> usize {
        let begun = self.firsts.partition_point(|&first| first <= twice(to));
        begun.saturating_sub(self.lasts.partition_point(|&last| last < twice(from)))
    }
}

const fn twice(at: Ticks) -> u128 {
    (at.0 as u128) << 1
}

/// The first and the last half tick that are within a stretch: of one without a length its moment, of
/// another what lies between its ends.
fn halves((first, last): Stretch) -> (u128, u128) {
    let is_moment = first == last;
    if is_moment {
        (twice(first), twice(first))
    } else {
        (twice(first).saturating_add(1), twice(last).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_what_a_look_at_all_of_them_finds() {
        let all = |count: u64| {
            (0..count).flat_map(move |f| (f..count).map(move |l| (Ticks(f), Ticks(l))))
        };
        let kinds: Vec<_> = all(6).collect();
        for (at, &one) in kinds.iter().enumerate() {
            for &other in &kinds[at..] {
                let third = kinds[(at * 7 + 3) % kinds.len()];
                let some = [one, other, third];
                let found: Stretches = some.into_iter().collect();
                let tally: Tally = some.into_iter().collect();
                for within in all(7) {
                    let looked = || some.into_iter().filter(|&stretch| overlap(stretch, within));
                    let (hull, count) = (looked().reduce(hull), looked().count());
                    assert_eq!(found.overlapping(within), hull, "{some:?} {within:?}");
                    assert_eq!(tally.overlapping(within), count, "{some:?} {within:?}");
                }
            }
        }
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let last = Ticks(u64::MAX);
        let found: Stretches = [(Ticks(3), last), (last, last)].into_iter().collect();
        assert_eq!(found.overlapping((last, last)), Some((last, last)));
        assert_eq!(found.overlapping((Ticks(0), last)), Some((Ticks(3), last)));
        assert_eq!(found.overlapping((Ticks(0), Ticks(3))), None);
    }
}
