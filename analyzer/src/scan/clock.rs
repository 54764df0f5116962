//! From the ticks of a file to nanoseconds since its first calibration.

use tmrun_formats::wire::CalibrationV1;
use tmrun_formats::{ClockMap, HostNs, Knot, Ticks};

/// The map of one file. Cheap to copy; make it once, it looks over all knots when it is made.
#[derive(Debug, Clone, Copy)]
pub struct Clock<'a> {
    map: ClockMap<'a>,
    base: HostNs,
    first: Option<HostNs>,
    ticks_per_second: u64,
}

impl Clock<'_> {
    /// Nanoseconds from the first calibration to this tick; 0 for all ticks before it.
    pub fn ns(&self, ticks: Ticks) -> u64 {
        self.map.ns(ticks).since(self.base)
    }

    /// The host's monotonic nanosecond from which [`ns`](Self::ns) counts.
    pub const fn base(&self) -> HostNs {
        self.base
    }

    /// The host's monotonic nanosecond at this tick, also before the first calibration.
    pub fn host_ns(&self, ticks: Ticks) -> HostNs {
        self.map.ns(ticks)
    }

    /// The host's nanosecond of the first calibration that the file has, whatever it may lack.
    pub(crate) const fn first(&self) -> Option<HostNs> {
        self.first
    }

    /// Whether it tells how long a stretch was: not where the host's time would be before its zero or
    /// beyond its end, and not where it stands still over more than a microsecond of the nominal rate.
    pub(crate) fn tells(&self, first: Ticks, last: Ticks) -> bool {
        let rate = u128::from(nominal(self.ticks_per_second));
        let ticks = u128::from(last.since(first));
        let long = ticks.saturating_mul(1_000_000) > rate;
        let is_at = |ticks: Ticks, end: HostNs| self.map.ns(ticks) == end;
        let (zero, end) = (HostNs(0), HostNs(u64::MAX));
        // What is held at an end is there a little later, or earlier, too.
        let little = u64::try_from(rate / 1_000_000).unwrap_or(u64::MAX).max(1);
        let later = Ticks(first.0.saturating_add(little));
        let earlier = Ticks(last.0.saturating_sub(little));
        let is_held =
            (is_at(first, zero) && is_at(later, zero)) || (is_at(last, end) && is_at(earlier, end));
        !long || !is_held && self.map.ns(first) < self.map.ns(last)
    }

    /// Nanoseconds that so many ticks last, at the place of `at`.
    pub fn span_ns(&self, at: Ticks, ticks: u64) -> u64 {
        self.map.ns(Ticks(at.0.saturating_add(ticks))).since(self.map.ns(at))
    }
}

/// What readings say is wrong with the recording clock: no time by it can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockFault {
    /// It stood still while the host's went on.
    Stopped,
    /// It went back.
    Backwards,
    /// It went on at 0 behind the greatest of its numbers, or jumped as far.
    Wrapped,
}

impl ClockFault {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Backwards => "backwards",
            Self::Wrapped => "wrapped",
        }
    }

    /// What the clock did between two readings of it and the host's, the host's earlier one first.
    fn between(a: &CalibrationV1, b: &CalibrationV1, ticks_per_second: u64) -> Option<Self> {
        let (forward, uncertainty) =
            (b.ticks.0.wrapping_sub(a.ticks.0), a.uncertainty.saturating_add(b.uncertainty));
        if b.ticks < a.ticks {
            let is_reading = a.ticks.since(b.ticks) <= uncertainty;
            let fault = if forward <= u64::MAX / 2 { Self::Wrapped } else { Self::Backwards };
            return (!is_reading).then_some(fault);
        }
        let rate = u128::from(nominal(ticks_per_second));
        let expected = u128::from(b.ns.since(a.ns)).saturating_mul(rate) / 1_000_000_000;
        // A coarse clock, or one that was read twice at once, need not have moved.
        let moves = expected > u128::from(uncertainty).saturating_add(1);
        (forward == 0 && moves).then_some(Self::Stopped)
    }
}

/// Records further apart than this, in ticks, are of no clock that goes on: a quarter of all there
/// are would take decades.
const FARTHEST: u64 = 1 << 62;

/// The calibration frames of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calibrations {
    knots: Vec<Knot>,
    ticks_per_second: u64,
    /// Where nanoseconds start when there is no knot, or when the first may be lost: the file's least
    /// tick.
    least: Ticks,
    may_lack_first: bool,
    /// Samples that the map goes through.
    pub used: u64,
    /// Samples that the recorder or this reader set aside: they moved the rate too far, or back.
    pub set_aside: u64,
    /// The greatest half bracket of a used sample, in ticks.
    pub uncertainty: u64,
    /// What is wrong with the clock, as far as samples and records show.
    pub fault: Option<ClockFault>,
}

impl Calibrations {
    /// The used ones of these samples, in order of time; a sample that is in the file twice counts
    /// once. The file's records lie between two moments. Where metadata is lost, samples may be.
    pub(super) fn new(
        mut samples: Vec<CalibrationV1>,
        ticks_per_second: u64,
        (least, greatest): (Ticks, Ticks),
        may_lack_first: bool,
    ) -> Self {
        samples.sort_by_key(|sample| (sample.ns, sample.ticks));
        let mut pairs = samples.iter().zip(samples.iter().skip(1));
        let fault = pairs.find_map(|(a, b)| ClockFault::between(a, b, ticks_per_second));
        let apart = greatest.since(least) > FARTHEST;
        let fault = fault.or(apart.then_some(ClockFault::Wrapped));
        samples.sort_by_key(|sample| (sample.ticks, sample.ns, sample.set_aside));
        samples.dedup();
        let mut calibrations =
            Self { ticks_per_second, least, fault, may_lack_first, ..Self::default() };
        for sample in samples {
            let knot = Knot { ticks: sample.ticks, ns: sample.ns };
            let rises = |last: &Knot| last.ticks < knot.ticks && last.ns <= knot.ns;
            if sample.set_aside || !calibrations.knots.last().is_none_or(rises) {
                calibrations.set_aside = calibrations.set_aside.saturating_add(1);
                continue;
            }
            calibrations.uncertainty = calibrations.uncertainty.max(sample.uncertainty);
            calibrations.used = calibrations.used.saturating_add(1);
            calibrations.knots.push(knot);
        }
        calibrations
    }

    /// The map through them; without any, the nominal rate from the file's least tick on.
    pub fn clock(&self) -> Clock<'_> {
        let map = ClockMap::new(&self.knots, self.ticks_per_second);
        let least = map.ns(self.least);
        let first = self.knots.first().map(|knot| knot.ns);
        let base = match first {
            Some(first) if self.may_lack_first => first.min(least),
            Some(first) => first,
            None => least,
        };
        Clock { map, base, first, ticks_per_second: self.ticks_per_second }
    }

    /// Whether earlier samples than the first may be lost. Who makes another file of this one has to say
    /// there that they may be.
    pub(crate) const fn may_lack_first(&self) -> bool {
        self.may_lack_first
    }

    /// Ticks a second from the first used sample to the last; `None` with fewer than two.
    pub fn measured_rate(&self) -> Option<f64> {
        rate(self.knots.first()?, self.knots.last()?)
    }

    /// How far the rate between two neighbouring samples lies from the whole run's, at most, in
    /// millionths; `None` with fewer than two.
    pub fn rate_spread_ppm(&self) -> Option<f64> {
        let whole = self.measured_rate()?;
        let off = |pair: &[Knot]| match pair {
            [a, b] => rate(a, b).map(|part| (part / whole - 1.0).abs() * 1e6),
            _ => None,
        };
        self.knots.windows(2).filter_map(off).max_by(f64::total_cmp)
    }
}

/// Ticks a second, as the header says it.
const fn nominal(ticks_per_second: u64) -> u64 {
    if ticks_per_second == 0 { 1_000_000_000 } else { ticks_per_second }
}

fn rate(a: &Knot, b: &Knot) -> Option<f64> {
    let ns = b.ns.since(a.ns);
    (ns > 0).then(|| b.ticks.since(a.ticks) as f64 * 1e9 / ns as f64)
}
