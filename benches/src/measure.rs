//! Cases in turn, many rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// One thing to measure.
pub struct Case<'a> {
    /// What it is.
    pub name: &'static str,
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

impl<'a> Case<'a> {
    /// A case that is repeated so many times in one call, all of it measured.
    pub fn new(name: &'static str, mut run: impl FnMut(u64) + 'a) -> Self {
        Self::timed(name, move |calls| {
            let start = Instant::now();
            run(black_box(calls));
            start.elapsed()
        })
    }

    /// A case that measures itself, such as one that prepares something first.
    pub fn timed(name: &'static str, run: impl FnMut(u64) -> Duration + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }

    /// The same, with something done behind each round and not measured, such as emptying a ring.
    #[must_use]
    pub fn then(self, mut between: impl FnMut() + 'a) -> Self {
        let Self { name, mut run } = self;
        Self::timed(name, move |calls| {
            let took = run(calls);
            between();
            took
        })
    }

    /// The same, with so many rounds of its own before each one, which do not count: what the case
    /// before it left in the caches is gone by then.
    #[must_use]
    pub fn warmed(self, rounds: usize) -> Self {
        let Self { name, mut run } = self;
        Self::timed(name, move |calls| {
            for _ in 0..rounds {
                run(calls);
            }
            run(calls)
        })
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Nanoseconds a call, over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The least round.
    pub least: f64,
    /// The middle round.
    pub median: f64,
}

impl Cost {
    /// Of all rounds.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Self {
        let mut rounds: Vec<f64> = rounds.into_iter().collect();
        rounds.sort_by(f64::total_cmp);
        Self {
            least: rounds.first().copied().unwrap_or_default(),
            median: rounds.get(rounds.len() / 2).copied().unwrap_or_default(),
        }
    }
}

/// Measures all cases in turn, `rounds` times, `calls` repetitions each. The first round warms up
/// and does not count.
pub fn measure<const N: usize>(cases: [Case<'_>; N], rounds: usize, calls: u64) -> [Cost; N] {
    let mut cases = cases;
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..=rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let took = (case.run)(calls);
            if round > 0 {
                times.push(took.as_nanos() as f64 / calls as f64);
            }
        }
    }
    times.map(Cost::of)
}
