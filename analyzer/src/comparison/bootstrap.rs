//! Where the difference of the medians lies, by drawing cohorts from the cohorts.

use super::statistics::median;
use tmrun_formats::comparison::ConfidenceInterval;

/// How often is drawn.
const REPLICATES: usize = 10_000;
/// How sure the interval is.
const LEVEL: f64 = 0.95;
/// Its ends among the sorted replicates: 2.5 % lie below, 2.5 % above.
const ENDS: [usize; 2] = [249, 9_749];

/// Of two cohorts: the baseline is drawn first.
pub(super) fn of_cohorts(baseline: &[i128], candidate: &[i128]) -> ConfidenceInterval {
    let mut draws = Draws::new();
    let (mut baseline, mut candidate) = (Cohort::new(baseline), Cohort::new(candidate));
    interval(|| {
        let before = baseline.draw(&mut draws);
        candidate.draw(&mut draws) - before
    })
}

/// Of the differences of pairs.
pub(super) fn of_pairs(deltas: &[i128]) -> ConfidenceInterval {
    let mut draws = Draws::new();
    let mut deltas = Cohort::new(deltas);
    interval(|| deltas.draw(&mut draws))
}

fn interval(replicate: impl FnMut() -> f64) -> ConfidenceInterval {
    let mut deltas: Vec<_> = std::iter::repeat_with(replicate).take(REPLICATES).collect();
    let [lower_delta_ns, upper_delta_ns] =
        ENDS.map(|end| *deltas.select_nth_unstable_by(end, f64::total_cmp).1);
    ConfidenceInterval { level: LEVEL, lower_delta_ns, upper_delta_ns }
}

/// What is drawn from, and what was drawn last.
struct Cohort<'s> {
    samples: &'s [i128],
    drawn: Vec<i128>,
}

impl<'s> Cohort<'s> {
    fn new(samples: &'s [i128]) -> Self {
        Self { samples, drawn: Vec::with_capacity(samples.len()) }
    }

    /// The median of as many samples as there are, any of them any number of times.
    fn draw(&mut self, draws: &mut Draws) -> f64 {
        let of = self.samples.len();
        let next = || self.samples.get(draws.place(of)).copied().unwrap_or_default();
        self.drawn.clear();
        self.drawn.extend(std::iter::repeat_with(next).take(of));
        median(&mut self.drawn)
    }
}

/// The format's generator: the same numbers every time.
struct Draws(u64);

impl Draws {
    fn new() -> Self {
        Self(0x4d59_5df4_d0f3_3173)
    }

    /// A place among so many.
    fn place(&mut self, of: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let place = self.0.checked_rem(of as u64).unwrap_or(0);
        usize::try_from(place).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cohorts_without_spread_leave_no_doubt() {
        let ends = |of: ConfidenceInterval| (of.level, of.lower_delta_ns, of.upper_delta_ns);
        assert_eq!(ends(of_cohorts(&[7; 5], &[4; 6])), (0.95, -3.0, -3.0));
        assert_eq!(ends(of_pairs(&[5; 5])), (0.95, 5.0, 5.0));
    }

    #[test]
    fn the_interval_holds_the_median_and_lies_within_what_can_be_drawn() {
        let ConfidenceInterval { lower_delta_ns, upper_delta_ns, .. } =
            of_pairs(&[-9, -4, 0, 3, 50, 51]);
        assert!((-9.0..1.5).contains(&lower_delta_ns));
        assert!(1.5 < upper_delta_ns && upper_delta_ns <= 51.0);
    }
}
