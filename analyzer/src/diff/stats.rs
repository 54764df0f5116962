//! Statistics by label.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;
use tmrun_formats::trace::TensorStats;

use super::missing::{Missing, UnderGap};
use super::{Rows, Which};
use crate::query::Bounded;
use crate::source::Subject;

/// The statistics of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsRow<'d> {
    /// The label.
    pub label: &'d str,
    /// On the first side; `None` where there are none.
    pub a: Option<Pooled>,
    /// On the second side; `None` where there are none.
    pub b: Option<Pooled>,
    /// The root mean square of the second side by that of the first; `None` where one is missing or 0.
    pub rms_ratio: Option<f64>,
    /// The only side that has them.
    pub only_in: Option<Which>,
    /// The gap of the side that has fewer, if they may be missing in one.
    pub under_gap: Option<UnderGap>,
}

/// The statistics of one label on one side, as of all their elements at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pooled {
    /// How many there are.
    pub events: u64,
    /// Elements of all of them.
    pub elements: u64,
    /// How many of these are not finite.
    pub non_finite: u64,
    /// Root mean square of the others.
    pub rms: f64,
    /// Their greatest magnitude.
    pub abs_max: f64,
    /// Their mean.
    pub mean: f64,
}

impl Pooled {
    fn of(stats: &TensorStats<'_>) -> Self {
        Self {
            events: 1,
            elements: stats.elements,
            non_finite: stats.non_finite,
            rms: stats.rms,
            abs_max: stats.abs_max,
            mean: stats.mean,
        }
    }

    fn add(&mut self, other: &Self) {
        #[allow(clippy::cast_precision_loss, reason = "weights")]
        let weight = |of: &Self| of.elements.saturating_sub(of.non_finite) as f64;
        let (mine, others) = (weight(self), weight(other));
        let all = mine + others;
        if others > 0.0 {
            let share = |value: f64, of: f64| value * (of / all);
            let (left, right) = ((mine / all).sqrt() * self.rms, (others / all).sqrt() * other.rms);
            self.rms = left.hypot(right);
            self.mean = share(self.mean, mine) + share(other.mean, others);
            self.abs_max = self.abs_max.max(other.abs_max);
        }
        self.events = self.events.saturating_add(other.events);
        self.elements = self.elements.saturating_add(other.elements);
        self.non_finite = self.non_finite.saturating_add(other.non_finite);
    }
}

pub(super) fn of<'d>(
    sides: [&'d Subject<'d>; 2],
    missing: &[Missing; 2],
    limit: usize,
) -> Rows<StatsRow<'d>> {
    let mut labels: BTreeMap<&'d str, [Option<Pooled>; 2]> = BTreeMap::new();
    for (side, subject) in sides.into_iter().enumerate() {
        for stats in &subject.trace().tensor_stats {
            let Some(place) = labels.entry(&stats.label).or_default().get_mut(side) else {
                continue;
            };
            let one = Pooled::of(stats);
            match place {
                Some(pooled) => pooled.add(&one),
                None => *place = Some(one),
            }
        }
    }
    let total = labels.len();
    let mut rows: Vec<_> = labels.into_iter().filter(|(_, [a, b])| a != b).collect();
    let same = total.saturating_sub(rows.len());
    // Stable: by label among equal ones.
    rows.sort_by(|(_, left), (_, right)| compare(right, left));
    let row = |(label, [a, b]): (&'d str, [Option<Pooled>; 2])| {
        let events = |side: Option<Pooled>| side.map_or(0, |pooled| pooled.events);
        let [missing_a, missing_b] = missing;
        StatsRow {
            label,
            a,
            b,
            rms_ratio: ratio(&[a, b]),
            only_in: match (a, b) {
                (Some(_), None) => Some(Which::A),
                (None, Some(_)) => Some(Which::B),
                _ => None,
            },
            under_gap: match events(a).cmp(&events(b)) {
                Ordering::Less => missing_a.of_statistics(Which::A),
                Ordering::Greater => missing_b.of_statistics(Which::B),
                Ordering::Equal => None,
            },
        }
    };
    Rows { same, rows: Bounded::of(rows.into_iter().map(row), limit) }
}

/// How many times greater the second one's root mean square is.
fn ratio(sides: &[Option<Pooled>; 2]) -> Option<f64> {
    let [a, b] = sides;
    let (a, b) = (a.as_ref()?.rms, b.as_ref()?.rms);
    let ratio = b / a;
    (a > 0.0 && b > 0.0 && ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// Which of two changes is the greater one.
fn compare(left: &[Option<Pooled>; 2], right: &[Option<Pooled>; 2]) -> Ordering {
    let odd = |[a, b]: &[Option<Pooled>; 2]| {
        let count = |side: &Option<Pooled>| side.as_ref().map_or(0, |pooled| pooled.non_finite);
        count(a).abs_diff(count(b))
    };
    // To be there on one side alone, or 0 on one, is more than any ratio.
    let change = |sides: &[Option<Pooled>; 2]| match (ratio(sides), sides) {
        (Some(ratio), _) => ratio.ln().abs(),
        (None, [Some(a), Some(b)]) if a.rms == b.rms => 0.0,
        (None, _) => f64::INFINITY,
    };
    odd(left).cmp(&odd(right)).then_with(|| change(left).total_cmp(&change(right)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(elements: u64, non_finite: u64, rms: f64, mean: f64) -> Pooled {
        Pooled { events: 1, elements, non_finite, rms, abs_max: rms, mean }
    }

    #[test]
    fn pooled_statistics_are_those_of_all_elements() {
        // 3, 4 and 0, 0: the mean of squares is 25 / 4.
        let mut all = pooled(2, 0, 12.5_f64.sqrt(), 3.5);
        all.add(&pooled(2, 0, 0.0, 0.0));
        assert!((all.rms - 2.5).abs() < 1e-12 && (all.mean - 1.75).abs() < 1e-12);
        assert_eq!((all.events, all.elements), (2, 4));
        let before = all;
        all.add(&pooled(3, 3, 0.0, 0.0));
        assert_eq!((all.rms, all.non_finite), (before.rms, 3), "nothing finite adds nothing");
    }

    #[test]
    fn what_is_not_finite_comes_first_and_then_what_is_many_times_more() {
        let finite = |rms| Some(pooled(4, 0, rms, 0.0));
        let doubled = [finite(1.0), finite(2.0)];
        let halved = [finite(1.0), finite(0.5)];
        let tenfold = [finite(1.0), finite(10.0)];
        let gone = [finite(1.0), None];
        let broken = [finite(1.0), Some(pooled(4, 1, 1.0, 0.0))];
        let mut all = [doubled, broken, gone, tenfold];
        all.sort_by(|left, right| compare(right, left));
        assert_eq!(all, [broken, gone, tenfold, doubled]);
        assert_eq!(compare(&doubled, &halved), Ordering::Equal);
    }
}
