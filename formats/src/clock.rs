//! From ticks to nanoseconds.

use crate::{HostNs, Ticks};

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Knot {
    /// What the recording clock showed.
    pub ticks: Ticks,
    /// What the host's clock showed at that tick.
    pub ns: HostNs,
}

/// The map from ticks to host nanoseconds: straight lines between the knots, and beyond the first
/// and last knot the line of the nearest pair (with one knot, of the nominal rate).
///
/// It is computed in integers, passes through every knot, and never decreases.
#[derive(Debug, Clone, Copy)]
pub struct ClockMap<'a> {
    knots: &'a [Knot],
    ticks_per_second: u64,
}

impl<'a> ClockMap<'a> {
    /// A map through `knots`, the longest start of them that increases in ticks and does not
    /// decrease in nanoseconds. A `ticks_per_second` of 0 stands for one tick a nanosecond.
    pub fn new(knots: &'a [Knot], ticks_per_second: u64) -> Self {
        let rising = |pair: &[Knot]| match pair {
            [a, b] => a.ticks < b.ticks && a.ns <= b.ns,
            _ => true,
        };
        let kept = knots.windows(2).position(|pair| !rising(pair)).map_or(knots.len(), |i| i + 1);
        let ticks_per_second = if ticks_per_second == 0 { NS_PER_SECOND } else { ticks_per_second };
        Self { knots: knots.get(..kept).unwrap_or(knots), ticks_per_second }
    }

    /// How many of the knots the map uses.
    pub const fn knots(&self) -> usize {
        self.knots.len()
    }

    /// The nanosecond at `ticks`; saturates at both ends of u64.
    pub fn ns(&self, ticks: Ticks) -> HostNs {
        let after = self.knots.partition_point(|knot| knot.ticks <= ticks);
        let last_pair = self.knots.len().saturating_sub(2);
        let at = after.saturating_sub(1).min(last_pair);
        match self.knots.get(at..) {
            Some([a, b, ..]) => a.line(ticks, b.ns.since(a.ns), b.ticks.since(a.ticks)),
            Some([a]) => a.line(ticks, NS_PER_SECOND, self.ticks_per_second),
            _ => ORIGIN.line(ticks, NS_PER_SECOND, self.ticks_per_second),
        }
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;
const ORIGIN: Knot = Knot { ticks: Ticks(0), ns: HostNs(0) };

impl Knot {
    /// The point at `ticks` on the line through this knot that rises `rise` ns every `run` ticks.
    /// Rounding is towards the past on both sides, as if there were no knot. Products of two u64
    /// fit a u128, so nothing overflows before the ends of the scale.
    fn line(&self, ticks: Ticks, rise: u64, run: u64) -> HostNs {
        let run = u128::from(run.max(1));
        let scaled = |distance: u64| u128::from(distance) * u128::from(rise);
        if ticks >= self.ticks {
            let up = u64::try_from(scaled(ticks.since(self.ticks)) / run).unwrap_or(u64::MAX);
            HostNs(self.ns.0.saturating_add(up))
        } else {
            let down = scaled(self.ticks.since(ticks)).div_ceil(run);
            HostNs(self.ns.0.saturating_sub(u64::try_from(down).unwrap_or(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOTS: [Knot; 3] = [
        Knot { ticks: Ticks(1_000), ns: HostNs(10_000) },
        Knot { ticks: Ticks(2_000), ns: HostNs(10_500) },
        Knot { ticks: Ticks(4_000), ns: HostNs(12_000) },
    ];

    #[test]
    fn passes_through_every_knot_and_extends_the_outer_lines() {
        let map = ClockMap::new(&KNOTS, 0);
        for knot in KNOTS {
            assert_eq!(map.ns(knot.ticks), knot.ns);
        }
        assert_eq!(map.ns(Ticks(1_500)), HostNs(10_250));
        assert_eq!(map.ns(Ticks(0)), HostNs(9_500));
        assert_eq!(map.ns(Ticks(5_000)), HostNs(12_750));
    }

    #[test]
    fn half_a_nanosecond_is_rounded_towards_the_past_on_both_sides_of_a_knot() {
        let map = ClockMap::new(&KNOTS, 0);
        let around = [997, 998, 999, 1_000, 1_001, 1_002].map(|ticks| map.ns(Ticks(ticks)).0);
        assert_eq!(around, [9_998, 9_999, 9_999, 10_000, 10_000, 10_001]);
    }

    #[test]
    fn one_knot_uses_the_nominal_rate() {
        let map = ClockMap::new(&KNOTS[..1], 2_000_000_000);
        assert_eq!(map.ns(Ticks(1_100)), HostNs(10_050));
        assert_eq!(ClockMap::new(&[], 0).ns(Ticks(77)), HostNs(77));
    }

    #[test]
    fn knots_after_a_backward_one_are_not_used() {
        let backward = [KNOTS[1], KNOTS[0], KNOTS[2]];
        assert_eq!(ClockMap::new(&backward, 0).knots(), 1);
        let equal = [KNOTS[1], KNOTS[1]];
        assert_eq!(ClockMap::new(&equal, 0).knots(), 1);
    }
}
