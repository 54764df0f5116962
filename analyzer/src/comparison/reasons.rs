//! What speaks against a comparison, and of which run.

use super::Run;
use std::borrow::Cow;
use std::fmt;
use tmrun_formats::comparison::{ComparisonCode, ComparisonReason};

/// What was found, in order.
#[derive(Debug, Default)]
pub(super) struct Reasons<'d>(pub(super) Vec<ComparisonReason<'d>>);

impl Reasons<'_> {
    pub(super) fn add(&mut self, code: ComparisonCode, message: impl Into<Cow<'static, str>>) {
        self.0.push(ComparisonReason { code, message: message.into() });
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cohort<'d> {
    pub(super) name: &'static str,
    pub(super) runs: &'d [Run],
}

impl<'d> Cohort<'d> {
    /// Its runs, each with its place.
    pub(super) fn placed(self) -> impl Iterator<Item = Placed<'d>> {
        self.runs.iter().zip(1..).map(move |(run, number)| Placed {
            cohort: self.name,
            number,
            run,
        })
    }
}

/// A run and its place, which is shown with the run's id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'d> {
    cohort: &'static str,
    number: u64,
    pub(super) run: &'d Run,
}

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} run {} ({:?})", self.cohort, self.number, self.run.meta.run_id)
    }
}

/// All runs, the baseline's first.
pub(super) fn all<'d>(cohorts: [Cohort<'d>; 2]) -> impl Iterator<Item = Placed<'d>> {
    cohorts.into_iter().flat_map(Cohort::placed)
}
