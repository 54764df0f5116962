//! From the driver's milliseconds to nanoseconds.
//!
//! The driver says how far two events are apart as a 32-bit float of milliseconds: exact to the
//! nanosecond up to 8 ms, to 31 ns up to half a second, and worse for longer. Stamps have a quantum of
//! their own, though, which the driver does not tell. Where all distances so far are multiples of one,
//! within what a float can say, a longer distance is taken as the nearest multiple: then it is exact as
//! well, and a chain of distances does not drift.

/// How far two events are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distance {
    pub(crate) ns: i64,
    /// The most by which it may be wrong, the stamps themselves taken as exact.
    pub(crate) error_ns: f64,
}

/// What a quantum may be, in nanoseconds, greatest first.
const QUANTA: [u16; 18] =
    [1024, 1000, 512, 500, 256, 250, 200, 128, 125, 100, 80, 64, 50, 40, 32, 20, 16, 8];

/// So many different distances have to agree: one that comes again and again says nothing more.
const ENOUGH: u32 = 48;

/// What is known of the stamps' quantum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantum {
    /// How many distances each candidate agrees with; `None` once one contradicts.
    agree: [Option<u32>; QUANTA.len()],
    /// Which distances came before, by a bit for each of some hundred sorts of them.
    before: [u64; 4],
}

impl Default for Quantum {
    fn default() -> Self {
        Self { agree: [Some(0); QUANTA.len()], before: [0; 4] }
    }
}

/// The distance from this value to the next greater one, in nanoseconds.
fn step_ns(ms: f32) -> f64 {
    let ms = ms.abs();
    f64::from(ms.next_up() - ms) * 1e6
}

impl Quantum {
    /// Whether no such distance came before. Some that are new are not seen to be.
    fn is_new(&mut self, ms: f32) -> bool {
        // The golden ratio's bits spread what is close together.
        let at = ms.to_bits().wrapping_mul(0x9E37_79B9).rotate_left(8) & 255;
        let Some(bits) = self.before.get_mut((at / 64) as usize) else { return false };
        let bit = 1 << (at % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// The quantum, once it is known.
    pub(crate) fn ns(&self) -> Option<u16> {
        let known = |&(agree, _): &(&Option<u32>, &u16)| agree.is_some_and(|n| n >= ENOUGH);
        self.agree.iter().zip(&QUANTA).find(known).map(|(_, &quantum)| quantum)
    }

    /// Takes in what the driver said of two events; `None` where that is no number.
    pub(crate) fn distance(&mut self, ms: f32) -> Option<Distance> {
        if !ms.is_finite() {
            return None;
        }
        let (ns, step) = (f64::from(ms) * 1e6, step_ns(ms));
        let new = u32::from(self.is_new(ms));
        let off = |quantum: u16| (ns - nearest(ns, quantum)).abs();
        for (agree, &quantum) in self.agree.iter_mut().zip(&QUANTA) {
            // A distance says nothing of a quantum that its float cannot tell, and 0 is a multiple of
            // all.
            if f64::from(quantum) < 4.0 * step || ns == 0.0 {
                continue;
            }
            *agree = agree.filter(|_| off(quantum) <= step).map(|n| n.saturating_add(new));
        }
        let exact = step <= 0.5;
        // A float is off by half its step at most: the nearest multiple is the right one even where the
        // distance would not have told the quantum.
        let snapped = self.ns().filter(|&quantum| f64::from(quantum) >= 2.0 * step);
        Some(match snapped {
            _ if exact => Distance { ns: ns.round() as i64, error_ns: 0.0 },
            Some(quantum) => Distance { ns: nearest(ns, quantum) as i64, error_ns: 0.0 },
            None => Distance { ns: ns.round() as i64, error_ns: step / 2.0 },
        })
    }
}

fn nearest(ns: f64, quantum: u16) -> f64 {
    (ns / f64::from(quantum)).round() * f64::from(quantum)
}

#[cfg(test)]
mod tests {
    use super::{Distance, Quantum};

    fn ms(ns: i64) -> f32 {
        (ns as f64 / 1e6) as f32
    }

    #[test]
    fn up_to_eight_milliseconds_every_nanosecond_is_told() {
        let mut quantum = Quantum::default();
        for ns in [0, 1, 7, 999_999, 4_194_303, -4_194_305, 7_999_999, -7_654_321] {
            assert_eq!(quantum.distance(ms(ns)), Some(Distance { ns, error_ns: 0.0 }));
        }
        assert_eq!(quantum.ns(), None, "odd distances have no quantum");
    }

    #[test]
    fn stamps_of_a_quantum_make_long_distances_exact() {
        for quantum_ns in [1000, 500, 32] {
            let mut quantum = Quantum::default();
            let mut step = 12_345;
            for _ in 0..200 {
                step = (step * 7919 + 13) % 50_021;
                let ns = step * quantum_ns;
                let _ = quantum.distance(ms(ns));
            }
            assert_eq!(quantum.ns().map(i64::from), Some(quantum_ns));
            // The last one is told by a float whose step is nearly half the quantum.
            for ns in [40_321 * quantum_ns, 6_250_001 * quantum_ns] {
                assert_eq!(quantum.distance(ms(ns)), Some(Distance { ns, error_ns: 0.0 }));
            }
        }
    }

    #[test]
    fn a_distance_that_contradicts_a_quantum_ends_it() {
        let mut quantum = Quantum::default();
        for step in 1..100 {
            let _ = quantum.distance(ms(step * 3500));
        }
        assert_eq!(quantum.ns(), Some(500));
        assert_eq!(quantum.distance(ms(100)), Some(Distance { ns: 100, error_ns: 0.0 }));
        assert_ne!(quantum.ns(), Some(500));
    }

    #[test]
    fn one_distance_again_and_again_is_no_quantum() {
        let mut quantum = Quantum::default();
        for _ in 0..1000 {
            let _ = quantum.distance(ms(100_000_123));
            let _ = quantum.distance(ms(99_000_041));
        }
        assert_eq!(quantum.ns(), None);
    }

    #[test]
    fn without_a_quantum_a_long_distance_says_how_wrong_it_may_be() {
        let mut quantum = Quantum::default();
        let _ = quantum.distance(ms(1));
        let said = quantum.distance(ms(250_000_003)).expect("a number");
        assert!((said.ns - 250_000_003).abs() as f64 <= said.error_ns && said.error_ns < 16.0);
        assert_eq!(quantum.distance(f32::NAN), None);
        assert_eq!(quantum.distance(f32::INFINITY), None);
    }
}
