//! How the statistics of the cohorts differ, whatever can be said of their times.

use super::Run;
use std::collections::BTreeMap;
use tmrun_formats::comparison::{TensorStatsComparison, TensorStatsRow};

pub(super) fn of<'d>(baseline: &'d [Run], candidate: &'d [Run]) -> TensorStatsComparison<'d> {
    let (before, after) = (sums(baseline), sums(candidate));
    let both = before.iter().filter_map(|(label, a)| Some((label, a, after.get(label)?)));
    let mut matched: Vec<_> = both.map(|(label, a, b)| row(label, a, b)).collect();
    matched.sort_by(|a, b| {
        let order = distance(b.rms_ratio).total_cmp(&distance(a.rms_ratio));
        order.then_with(|| a.label.cmp(&b.label))
    });
    let alone = |of: &BTreeMap<&'d str, Sum>, other: &BTreeMap<&'d str, Sum>| {
        let labels = of.keys().filter(|label| !other.contains_key(*label));
        labels.map(|&label| label.into()).collect()
    };
    TensorStatsComparison {
        baseline_runs: baseline.len() as u64,
        candidate_runs: candidate.len() as u64,
        matched,
        unmatched_a: alone(&before, &after),
        unmatched_b: alone(&after, &before),
    }
}

/// One label in one cohort.
#[derive(Debug, Default)]
struct Sum {
    rms: Total,
    abs_max: Total,
    non_finite: u64,
    samples: u64,
    runs: u64,
    last_run: Option<usize>,
}

fn sums(cohort: &[Run]) -> BTreeMap<&str, Sum> {
    let mut sums = BTreeMap::<_, Sum>::new();
    for (number, run) in cohort.iter().enumerate() {
        for stats in &run.stats {
            let sum = sums.entry(&*stats.label).or_default();
            sum.rms.add(stats.rms);
            sum.abs_max.add(stats.abs_max);
            sum.non_finite = sum.non_finite.saturating_add(stats.non_finite);
            sum.samples = sum.samples.saturating_add(1);
            if sum.last_run.replace(number) != Some(number) {
                sum.runs = sum.runs.saturating_add(1);
            }
        }
    }
    sums
}

/// A sum of which the mean is wanted.
#[derive(Debug, Default)]
struct Total {
    sum: f64,
    /// The same in a unit in which it does not overflow.
    small: f64,
}

impl Total {
    const UNIT: f64 = (1_u128 << 64) as f64;

    fn add(&mut self, value: f64) {
        self.sum += value;
        self.small += value / Self::UNIT;
    }

    fn mean(&self, samples: u64) -> f64 {
        match self.sum / samples as f64 {
            mean if mean.is_finite() => mean,
            _ => self.small / samples as f64 * Self::UNIT,
        }
    }
}

fn row<'d>(label: &'d str, a: &Sum, b: &Sum) -> TensorStatsRow<'d> {
    let [rms_a, rms_b] = [a, b].map(|sum| sum.rms.mean(sum.samples));
    let [abs_max_a, abs_max_b] = [a, b].map(|sum| sum.abs_max.mean(sum.samples));
    TensorStatsRow {
        label: label.into(),
        rms_a,
        rms_b,
        rms_ratio: ratio(rms_a, rms_b),
        abs_max_ratio: ratio(abs_max_a, abs_max_b),
        non_finite_a: a.non_finite,
        non_finite_b: b.non_finite,
        samples_a: a.samples,
        samples_b: b.samples,
        runs_a: a.runs,
        runs_b: b.runs,
    }
}

/// Candidate by baseline; none where that is no number.
fn ratio(a: f64, b: f64) -> Option<f64> {
    let ratio = if a == 0.0 && b == 0.0 { 1.0 } else { b / a };
    ratio.is_finite().then_some(ratio)
}

/// How far a ratio is from 1.
fn distance(ratio: Option<f64>) -> f64 {
    ratio.filter(|&ratio| ratio > 0.0).map_or(f64::INFINITY, |ratio| ratio.ln().abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_there_where_the_sum_is_not() {
        let mut total = Total::default();
        for value in [f64::MAX, f64::MAX, f64::MAX / 2.0, 0.0] {
            total.add(value);
        }
        let mean = total.mean(4);
        assert!((mean / f64::MAX - 0.625).abs() < 1e-15, "{mean}");
    }

    #[test]
    fn ratios_are_numbers_or_nothing() {
        assert_eq!(ratio(2.0, 3.0), Some(1.5));
        assert_eq!((ratio(0.0, 0.0), ratio(-0.0, 0.0)), (Some(1.0), Some(1.0)));
        assert_eq!((ratio(0.0, 1.0), ratio(5e-324, f64::MAX)), (None, None));
        assert_eq!(distance(Some(0.0)), f64::INFINITY);
        assert_eq!(distance(Some(0.5)), distance(Some(2.0)));
    }
}
