//! How the benchmarks measure: cases in turn, many rounds, the same process, and every number as a
//! ratio to a ruler that was measured in the same rounds. Absolute times on a shared machine mean
//! nothing; two bare clock reads are 1.0.

use std::hint::black_box;
use std::time::Instant;

/// One thing to measure: `calls` repetitions in one call.
pub struct Case<'a> {
    /// What it is, as the table shows it.
    pub name: &'static str,
    /// Runs the thing so many times.
    pub run: Box<dyn FnMut(u64) + 'a>,
    /// What is done between rounds and not measured, such as emptying a ring.
    pub between: Box<dyn FnMut() + 'a>,
}

impl<'a> Case<'a> {
    /// A case that needs nothing between rounds.
    pub fn new(name: &'static str, run: impl FnMut(u64) + 'a) -> Self {
        Self { name, run: Box::new(run), between: Box::new(|| ()) }
    }

    /// The same with something to do between rounds.
    #[must_use]
    pub fn between(self, between: impl FnMut() + 'a) -> Self {
        Self { between: Box::new(between), ..self }
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Nanoseconds a call, least and median over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The least round.
    pub least: f64,
    /// The middle round.
    pub median: f64,
}

/// Measures all cases in turn, `rounds` times, `calls` repetitions each.
pub fn measure(cases: &mut [Case<'_>], rounds: usize, calls: u64) -> Vec<Cost> {
    let mut times: Vec<Vec<f64>> = cases.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for _ in 0..rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (case.run)(black_box(calls));
            times.push(start.elapsed().as_nanos() as f64 / calls as f64);
            (case.between)();
        }
    }
    let cost = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let at = |i: usize| times.get(i).copied().unwrap_or_default();
        Cost { least: at(0), median: at(times.len() / 2) }
    };
    times.iter_mut().map(cost).collect()
}
