//! Range and Scalar records: value ranges.

use tmrun_formats::runtime::ValueRef;
use tmrun_formats::wire::{Range, Record, Scalar, Stats};

use super::encode::Put;
use super::source::{Name, Source};
use super::tally::{Absent, Note, Tally};

/// A value range that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueFact<'r> {
    node: Name<'r>,
    min: f64,
    max: f64,
    nonfinite: u64,
    saturated: u64,
}

impl<'r> ValueFact<'r> {
    /// Reads the range at the head of a group or behind its statistics. `None`, counted, when there
    /// are no elements that it could be of.
    pub(super) fn range(
        source: &Source<'r>,
        group: &'r [Record],
        range: &Range,
        tally: &mut Tally,
    ) -> Option<Self> {
        let stats = group.iter().find_map(Record::payload::<Stats>);
        let nonfinite = nonfinite(range, stats.as_ref());
        let empty_fold = range.min == f64::INFINITY && range.max == f64::NEG_INFINITY;
        let no_elements = stats.is_some_and(|stats| stats.count == 0);
        if nonfinite == 0 && (empty_fold || no_elements) {
            tally.leave_out(Absent::EmptyRange);
            return None;
        }
        let node = source.name(group.first()?.header().name, tally);
        let saturated = range.saturated;
        if range.min.is_finite() && range.max.is_finite() {
            return Some(Self { node, min: range.min, max: range.max, nonfinite, saturated });
        }
        // Zeros would be believed if no element were counted beside them.
        if nonfinite == 0 {
            tally.note(Note::RangeBounds, 1);
        }
        Some(Self { node, min: 0.0, max: 0.0, nonfinite: nonfinite.max(1), saturated })
    }

    pub(super) fn scalar(
        source: &Source<'r>,
        head: &'r Record,
        scalar: Scalar,
        tally: &mut Tally,
    ) -> Self {
        let node = source.name(head.header().name, tally);
        let (value, nonfinite) =
            if scalar.value.is_finite() { (scalar.value, 0) } else { (0.0, 1) };
        Self { node, min: value, max: value, nonfinite, saturated: 0 }
    }

    pub(super) fn write(&self, (event_id, step): (&str, Option<u64>), put: &mut Put<'_>) {
        let Self { node, min, max, nonfinite, saturated } = *self;
        put.record(&ValueRef {
            event_id,
            static_id: node.static_id(),
            // What readers name a value by: two layers of one line of code are two values.
            source: Some(node.text().as_ref()),
            step,
            min,
            max,
            abs_max: min.abs().max(max.abs()),
            nonfinite_count: nonfinite,
            saturated_count: saturated,
        });
    }
}

/// Elements that are not finite. Each count ends at 2³²; the statistics have two of them.
fn nonfinite(range: &Range, stats: Option<&Stats>) -> u64 {
    let of_stats = |stats: &Stats| u64::from(stats.nan).saturating_add(stats.inf.into());
    u64::from(range.non_finite).max(stats.map_or(0, of_stats))
}
