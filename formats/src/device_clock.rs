//! From a device's nanoseconds to the host's: a straight line through readings of both, and how far to
//! trust it.

/// Both clocks, read together: when the device's showed `device_ns`, the host's was from `before` to
/// `after`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceReading {
    /// What the device's clock showed.
    pub device_ns: u64,
    /// The host's nanosecond before.
    pub before: u64,
    /// The host's nanosecond after.
    pub after: u64,
}

impl DeviceReading {
    const fn middle(&self) -> f64 {
        self.before as f64 + self.half()
    }

    const fn half(&self) -> f64 {
        self.after.saturating_sub(self.before) as f64 / 2.0
    }
}

/// The line. It is an estimate with bounds, never a fact: whoever uses it says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceFit {
    /// The tightest reading of the early half, and of the late half where there is one.
    first: DeviceReading,
    last: Option<DeviceReading>,
    /// The most by which a reading's bracket lies off the line.
    pub residual_ns: f64,
    /// How many readings it is of.
    pub readings: u64,
}

/// How far the two clocks' rates are taken to differ where only one reading says anything: more than
/// any two oscillators that are sold.
const UNKNOWN_RATE: f64 = 200e-6;

impl DeviceFit {
    /// The line through the tightest of the early readings and the tightest of the late ones; `None`
    /// without readings.
    pub fn of(readings: &[DeviceReading]) -> Option<Self> {
        let device = |reading: &DeviceReading| reading.device_ns;
        let least = readings.iter().map(device).min()?;
        let greatest = readings.iter().map(device).max()?;
        let middle = least.midpoint(greatest);
        let tightest = |is_late: bool| {
            let half = readings.iter().filter(|reading| (reading.device_ns > middle) == is_late);
            half.min_by_key(|reading| {
                (reading.after.saturating_sub(reading.before), reading.device_ns)
            })
        };
        let (first, last) = (*tightest(false)?, tightest(true).copied());
        let mut fit = Self { first, last, residual_ns: 0.0, readings: readings.len() as u64 };
        let off = readings.iter().map(|reading| {
            let at = fit.host_ns(reading.device_ns);
            (reading.before as f64 - at).max(at - reading.after as f64).max(0.0)
        });
        fit.residual_ns = off.fold(0.0, f64::max);
        Some(fit)
    }

    /// The host's nanosecond at a device's.
    pub fn host_ns(&self, device_ns: u64) -> f64 {
        let since = device_ns as f64 - self.first.device_ns as f64;
        self.first.middle() + since * self.slope()
    }

    /// By how much that may be wrong. It grows with the distance from the readings.
    pub fn bound_ns(&self, device_ns: u64) -> f64 {
        let since = device_ns as f64 - self.first.device_ns as f64;
        let bound = match self.last {
            None => self.first.half() + since.abs() * UNKNOWN_RATE,
            Some(last) => {
                let part = since / (last.device_ns as f64 - self.first.device_ns as f64);
                self.first.half() * (1.0 - part).abs() + last.half() * part.abs()
            }
        };
        bound + self.residual_ns
    }

    /// By how much a device's nanosecond is greater than the host's at the first reading.
    pub fn offset_ns(&self) -> f64 {
        self.first.device_ns as f64 - self.first.middle()
    }

    /// How much faster the device's clock runs than the host's, in millionths; `None` where all readings
    /// are of one moment.
    pub fn rate_ppm(&self) -> Option<f64> {
        self.last.map(|_| (1.0 / self.slope() - 1.0) * 1e6)
    }

    /// Host nanoseconds in one of the device's.
    fn slope(&self) -> f64 {
        let slope = self.last.map(|last| {
            let device = last.device_ns as f64 - self.first.device_ns as f64;
            (last.middle() - self.first.middle()) / device
        });
        // Readings that make no sense (a host that ran backwards) make no slope either.
        slope.filter(|slope| slope.is_finite() && *slope > 0.0).unwrap_or(1.0)
    }
}

/// Why the stamps of an interval say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StampFault {
    /// Both are 0: nobody stamped it.
    Unstamped,
    /// The end is before the start.
    Backwards,
    /// One of them is the greatest number, which stands for none.
    Sentinel,
}

impl StampFault {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Unstamped, Self::Backwards, Self::Sentinel];

    /// What is wrong with the stamps from `start` to `end`.
    pub const fn of(start: u64, end: u64) -> Option<Self> {
        if start == 0 && end == 0 {
            Some(Self::Unstamped)
        } else if start == u64::MAX || end == u64::MAX {
            Some(Self::Sentinel)
        } else if end < start {
            Some(Self::Backwards)
        } else {
            None
        }
    }

    /// Its name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unstamped => "unstamped",
            Self::Backwards => "backwards",
            Self::Sentinel => "sentinel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceFit, DeviceReading, StampFault};

    #[test]
    fn stamps_that_say_nothing_are_told_from_those_that_do() {
        let said = [(0, 0), (5, 4), (u64::MAX, 7), (7, u64::MAX), (0, 1), (3, 3)];
        let faults = said.map(|(start, end)| StampFault::of(start, end).map(StampFault::name));
        let expected =
            [Some("unstamped"), Some("backwards"), Some("sentinel"), Some("sentinel"), None, None];
        assert_eq!(faults, expected);
    }

    /// A device that shows 5 s more than the host and runs 40 ppm fast.
    fn at(host_ns: u64, half: u64) -> DeviceReading {
        let device_ns = 5_000_000_000 + host_ns + host_ns * 40 / 1_000_000;
        DeviceReading { device_ns, before: host_ns - half, after: host_ns + half }
    }

    #[test]
    fn two_readings_give_offset_rate_and_bound() {
        let readings = [at(1_000_000_000, 900), at(1_100_000_000, 300), at(61_000_000_000, 500)];
        let fit = DeviceFit::of(&readings).expect("readings");
        let rate = fit.rate_ppm().expect("two moments");
        assert!((rate - 40.0).abs() < 0.1, "{rate}");
        assert!((fit.offset_ns() - 5_000_044_000.0).abs() < 1.0, "{}", fit.offset_ns());
        for host in [1_000_000_000_u64, 30_000_000_000, 100_000_000_000] {
            let device = at(host, 1000).device_ns;
            let off = (fit.host_ns(device) - host as f64).abs();
            assert!(off <= fit.bound_ns(device), "{off} at {host}");
        }
        assert!(fit.bound_ns(at(61_000_000_000, 500).device_ns) < 520.0);
        assert!(
            fit.bound_ns(at(200_000_000_000, 500).device_ns) > 1000.0,
            "far from them it grows"
        );
    }

    #[test]
    fn one_reading_has_no_rate_and_a_bound_that_grows_fast() {
        let fit = DeviceFit::of(&[at(1_000_000_000, 400)]).expect("a reading");
        assert_eq!(fit.rate_ppm(), None);
        let later = at(11_000_000_000, 400).device_ns;
        assert!(fit.bound_ns(later) > 2_000_000.0 && fit.bound_ns(later) < 2_002_000.0);
    }

    #[test]
    fn a_reading_off_the_line_is_the_residual() {
        let mut odd = at(30_000_000_000, 100);
        (odd.before, odd.after) = (odd.before + 7000, odd.after + 7000);
        odd.after += 10_000;
        let fit = DeviceFit::of(&[at(1_000_000_000, 100), odd, at(60_000_000_000, 100)]);
        let fit = fit.expect("readings");
        assert!((fit.residual_ns - 6900.0).abs() < 2.0, "{}", fit.residual_ns);
    }

    #[test]
    fn readings_that_make_no_sense_make_a_line_all_the_same() {
        assert_eq!(DeviceFit::of(&[]), None);
        let backwards = [
            DeviceReading { device_ns: 10, before: u64::MAX, after: 0 },
            DeviceReading { device_ns: u64::MAX, before: 0, after: u64::MAX },
            DeviceReading { device_ns: 10, before: 5, after: 5 },
        ];
        let fit = DeviceFit::of(&backwards).expect("readings");
        assert!(fit.host_ns(u64::MAX).is_finite() && fit.bound_ns(0).is_finite());
    }
}
