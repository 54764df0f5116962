//! What was lost, in one line.

use std::collections::BTreeMap;

use tmrun::scan::{Gap, Recording};
use tmrun_formats::GapReason;

use super::text::plural;
use super::{Outcome, say};

/// The lost gaps of a recording, added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) gaps: u64,
    pub(super) records: u64,
    /// Gaps of which nobody knows how many records they hold.
    pub(super) uncounted: u64,
    reasons: BTreeMap<GapReason, u64>,
}

impl Loss {
    pub(super) fn of(recording: &Recording<'_>) -> Self {
        Self::of_gaps(recording.lost())
    }

    /// Those of them that a command covered.
    pub(super) fn of_gaps<'g>(gaps: impl Iterator<Item = &'g Gap>) -> Self {
        let mut loss = Self::default();
        for gap in gaps {
            loss.gaps = loss.gaps.saturating_add(1);
            loss.records = loss.records.saturating_add(gap.records);
            loss.uncounted = loss.uncounted.saturating_add(u64::from(gap.records == 0));
            let of_reason = loss.reasons.entry(gap.reason).or_default();
            *of_reason = of_reason.saturating_add(1);
        }
        loss
    }

    pub(super) const fn is_none(&self) -> bool {
        self.gaps == 0
    }

    /// `1,234 records in 3 gaps (overrun 2, corrupt 1)`.
    pub(super) fn line(&self) -> String {
        let reason = |(reason, n): (&GapReason, &u64)| match reason.name() {
            Some(name) => format!("{name} {n}"),
            None => format!("reason {} {n}", reason.0),
        };
        let reasons: Vec<_> = self.reasons.iter().map(reason).collect();
        let mut line = format!(
            "{} in {} ({})",
            plural(self.records, "record"),
            plural(self.gaps, "gap"),
            reasons.join(", ")
        );
        if self.uncounted > 0 {
            line.push_str(&format!("; {} of no known count", plural(self.uncounted, "gap")));
        }
        line
    }

    /// The same, also where nothing is lost.
    pub(super) fn words(&self) -> String {
        if self.is_none() { "nothing is lost".to_owned() } else { self.line() }
    }

    /// Says on standard error what was lost, and makes it the outcome.
    pub(super) fn outcome(&self, name: &str) -> Outcome {
        if self.is_none() {
            return Outcome::Done;
        }
        say(format_args!("{name}: lost {}", self.line()));
        Outcome::Lost
    }
}
