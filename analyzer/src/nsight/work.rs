//! Work on the GPU, by what joins it with ranges.

use std::collections::{HashMap, HashSet};
use tmrun_formats::evidence::GpuTimelineRow;

/// What a range and its work have in common: those of these four that the range has.
pub(super) type Keys<'r> = [Option<&'r str>; 4];

/// Their names, in the order of [`Keys`].
pub(super) const NAMES: [&str; 4] = ["correlation_id", "device", "context", "stream"];

pub(super) fn keys<'r>(row: &'r GpuTimelineRow<'_>) -> Keys<'r> {
    [&row.correlation_id, &row.device, &row.context, &row.stream].map(|key| key.as_deref())
}

/// The work of every combination of keys that a range asks for.
#[derive(Debug, Default)]
pub(super) struct Work<'r>(HashMap<Keys<'r>, Joined>);

/// How much work overlaps a range, and how long that is where it overlaps itself once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overlap {
    pub(super) operations: u64,
    pub(super) busy_ns: u64,
}

impl<'r> Work<'r> {
    pub(super) fn of(work: &'r [GpuTimelineRow<'_>], ranges: &[GpuTimelineRow<'_>]) -> Self {
        let asked: HashSet<_> =
            ranges.iter().map(|range| keys(range).map(|key| key.is_some())).collect();
        let mut joined = HashMap::<_, Vec<_>>::new();
        for asked in asked.into_iter().filter(|asked| asked.contains(&true)) {
            for row in work {
                let mut keys = keys(row);
                keys.iter_mut().zip(asked).for_each(|(key, asked)| *key = key.filter(|_| asked));
                if keys.map(|key| key.is_some()) == asked {
                    let time = (row.start_ns, row.start_ns.saturating_add(row.duration_ns));
                    joined.entry(keys).or_default().push(time);
                }
            }
        }
        Self(joined.into_iter().map(|(keys, times)| (keys, Joined::of(times))).collect())
    }

    /// The work of one range; none where nothing joins it with any.
    pub(super) fn overlap(&self, range: &GpuTimelineRow<'_>) -> Option<Overlap> {
        let keys = keys(range);
        let start = range.projected_start_ns?;
        let end = start.saturating_add(range.projected_duration_ns?);
        let joined = keys.iter().any(Option::is_some).then(|| self.0.get(&keys))?;
        Some(joined.map_or_else(Overlap::default, |joined| joined.overlap(start, end)))
    }
}

/// Times that were joined, for questions that cost a search each.
#[derive(Debug, Default)]
struct Joined {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// When something was busy: disjoint, in order, each with the length of all before it.
    busy: Vec<(u64, u64, u64)>,
}

impl Joined {
    fn of(mut times: Vec<(u64, u64)>) -> Self {
        times.sort_unstable();
        let mut busy: Vec<(u64, u64, u64)> = Vec::new();
        for &(start, end) in &times {
            match busy.last_mut() {
                Some((_, until, _)) if start <= *until => *until = end.max(*until),
                last => {
                    let before = last.map_or(0, |&mut (start, end, before)| {
                        before.saturating_add(end.saturating_sub(start))
                    });
                    busy.push((start, end, before));
                }
            }
        }
        let starts = times.iter().map(|time| time.0).collect();
        let mut ends: Vec<_> = times.into_iter().map(|time| time.1).collect();
        ends.sort_unstable();
        Self { starts, ends, busy }
    }

    /// What lies between two times that are not the same. What ended before the first has started
    /// before the second.
    fn overlap(&self, from: u64, until: u64) -> Overlap {
        if from >= until {
            return Overlap::default();
        }
        let started = self.starts.partition_point(|&start| start < until);
        let ended = self.ends.partition_point(|&end| end <= from);
        Overlap {
            operations: started.saturating_sub(ended) as u64,
            busy_ns: self.before(until).saturating_sub(self.before(from)),
        }
    }

    /// How long something was busy before a time.
    fn before(&self, time: u64) -> u64 {
        let place = self.busy.partition_point(|&(start, _, _)| start < time);
        let last = place.checked_sub(1).and_then(|place| self.busy.get(place));
        last.map_or(0, |&(start, end, before)| {
            before.saturating_add(end.min(time).saturating_sub(start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_counted_and_their_time_once() {
        let joined = Joined::of(vec![(40, 100), (0, 70), (100, 110), (200, u64::MAX)]);
        let overlap = |from, until| {
            let Overlap { operations, busy_ns } = joined.overlap(from, until);
            (operations, busy_ns)
        };
        assert_eq!(overlap(0, 100), (2, 100));
        assert_eq!(overlap(25, 75), (2, 50));
        assert_eq!(overlap(70, 101), (2, 31));
        assert_eq!(overlap(110, 200), (0, 0));
        assert_eq!(overlap(109, 201), (2, 2));
        assert_eq!(overlap(0, u64::MAX), (4, 110 + (u64::MAX - 200)));
        assert_eq!(overlap(u64::MAX, u64::MAX), (0, 0));
        assert_eq!(Joined::of(vec![]).overlap(0, 9), Overlap::default());
    }
}
