//! Numbers of one cohort.

use tmrun_formats::comparison::SampleStatistics;

pub(super) fn of(samples_ns: Vec<u64>) -> SampleStatistics {
    let mut sorted = samples_ns.clone();
    sorted.sort_unstable();
    let median_ns = median(&mut wide(&samples_ns));
    let middle = median_ns.round() as u64;
    let distances = samples_ns.iter().map(|sample| i128::from(sample.abs_diff(middle)));
    let mad_ns = median(&mut distances.collect::<Vec<_>>());
    SampleStatistics { median_ns, p95_ns: percentile(&sorted, 0.95), mad_ns, samples_ns }
}

/// Samples with room for their differences.
pub(super) fn wide(samples: &[u64]) -> Vec<i128> {
    samples.iter().map(|&sample| sample.into()).collect()
}

/// The value in the middle, or between the two there; 0 of nothing. Reorders the values.
pub(super) fn median(values: &mut [i128]) -> f64 {
    let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
    if values.is_empty() {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable(half);
    let lower = if odd { upper } else { below.iter().copied().max().unwrap_or(upper) };
    (lower as f64 + upper as f64) / 2.0
}

/// The value below which that share of the values lies, on the line between its neighbours; 0 of
/// nothing.
fn percentile(sorted: &[u64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = share * last as f64;
    let lower = position.floor();
    let weight = position - lower;
    let at = |place: f64| sorted.get(place as usize).map_or(0.0, |&sample| sample as f64);
    at(lower) * (1.0 - weight) + at(position.ceil()) * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_values() {
        let stats = of(vec![13, 10, 100, 11, 12]);
        assert_eq!((stats.median_ns, stats.p95_ns, stats.mad_ns), (12.0, 82.6, 1.0));
        assert_eq!(stats.samples_ns, [13, 10, 100, 11, 12], "as they came");
        let stats = of(vec![4, 1, 2, 7]);
        assert_eq!((stats.median_ns, stats.mad_ns), (3.0, 1.5));
        let none = of(vec![]);
        assert_eq!((none.median_ns, none.p95_ns, none.mad_ns), (0.0, 0.0, 0.0));
    }

    #[test]
    fn the_median_is_that_of_the_sorted_values() {
        for length in 1..40 {
            let mut values: Vec<i128> = (0..length).map(|n| n * 7 % 11 - 5).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let half = sorted.len() / 2;
            let other = if sorted.len() % 2 == 1 { half } else { half - 1 };
            let expected = (sorted[half] + sorted[other]) as f64 / 2.0;
            assert_eq!(median(&mut values), expected, "{sorted:?}");
        }
    }

    #[test]
    fn samples_at_the_end_of_their_range_do_not_overflow() {
        let stats = of(vec![u64::MAX, u64::MAX, 0, u64::MAX]);
        assert_eq!((stats.median_ns, stats.mad_ns), (u64::MAX as f64, 0.0));
    }
}
