//! Readings of the recording clock and the host's together.

use tmrun_formats::wire::CalibrationV1;
use tmrun_formats::{HostNs, Ticks};

/// Brackets a host reading between two tick readings, eight times, and keeps the tightest.
pub(crate) fn bracket(ticks: fn() -> Ticks, host: fn() -> HostNs) -> CalibrationV1 {
    let once = || {
        let before = ticks();
        let ns = host();
        let width = ticks().since(before);
        let middle = Ticks(before.0.wrapping_add(width / 2));
        CalibrationV1 { ticks: middle, ns, uncertainty: width.div_ceil(2), set_aside: false }
    };
    (0..7).fold(once(), |best, _| {
        let next = once();
        if next.uncertainty < best.uncertainty { next } else { best }
    })
}

/// The samples of a recording, as they come: each is held against the rate so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibration {
    first: CalibrationV1,
    last: CalibrationV1,
}

/// A sample that moves the rate by more is set aside.
const MOST_PPM: u64 = 200;
/// Samples closer together than this say little about the rate: nothing is held against them.
const LEAST_NS: u64 = 100_000_000;

impl Calibration {
    pub(crate) const fn start(first: CalibrationV1) -> Self {
        Self { first, last: first }
    }

    /// Judges the next sample, and remembers it unless it is set aside.
    pub(crate) fn next(&mut self, mut sample: CalibrationV1) -> CalibrationV1 {
        let (ticks, ns) = (sample.ticks.since(self.last.ticks), sample.ns.since(self.last.ns));
        sample.set_aside = ticks == 0 || ns == 0 || self.moves_rate(&sample, ticks, ns);
        if !sample.set_aside {
            self.last = sample;
        }
        sample
    }

    fn moves_rate(&self, sample: &CalibrationV1, ticks: u64, ns: u64) -> bool {
        let known_ns = self.last.ns.since(self.first.ns);
        if known_ns < LEAST_NS {
            return false;
        }
        let known_ticks = self.last.ticks.since(self.first.ticks);
        let expected = u128::from(ns) * u128::from(known_ticks) / u128::from(known_ns);
        let difference = expected.abs_diff(u128::from(ticks));
        let noise = u128::from(sample.uncertainty) + u128::from(self.last.uncertainty);
        difference > noise + expected * u128::from(MOST_PPM) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ticks: u64, ns: u64) -> CalibrationV1 {
        CalibrationV1 { ticks: Ticks(ticks), ns: HostNs(ns), uncertainty: 10, set_aside: false }
    }

    #[test]
    fn a_sample_that_moves_the_rate_is_set_aside_and_the_next_good_one_is_not() {
        let second = 1_000_000_000;
        let mut calibration = Calibration::start(sample(0, 0));
        assert!(!calibration.next(sample(2 * second, second)).set_aside);
        assert!(calibration.next(sample(4 * second + 2_000_000, 2 * second)).set_aside);
        assert!(!calibration.next(sample(6 * second + 1_000, 3 * second)).set_aside);
        assert!(calibration.next(sample(6 * second, 4 * second)).set_aside, "it ran backwards");
    }
}
