//! The report for people: one line a finding, the worst first.

use super::report::{AuditReport, ParamIdentity};
use crate::escape::escaped;
use std::fmt;

impl fmt::Display for ParamIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", escaped(&self.root), escaped(&self.key))
    }
}

/// A list, cut short: JSON has all of it.
struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        for (index, item) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { ", " }, escaped(item))?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// ` since step 3`, or nothing where no step is known.
struct Since(Option<u64>);

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |step| write!(f, " since step {step}"))
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.identity_mismatches {
            let (expected, observed) = (escaped(&it.expected), escaped(&it.observed));
            writeln!(f, "identity: {} should be {expected}, the trace has {observed}", it.field)?;
        }
        for it in &self.tensor_conflicts {
            let (id, kind) = (escaped(&it.static_id), it.kind.name());
            writeln!(f, "conflict: tensor {id}: {kind} is {} (unknown)", List(&it.values))?;
        }
        for it in &self.gradient_conflicts {
            let (states, events) = (List(&it.states), List(&it.event_ids));
            writeln!(f, "conflict: gradient {}: {states} in {events} (unknown)", it.identity)?;
        }
        for it in &self.extra.same_step_gradient_conflicts {
            let (states, events) = (List(&it.states), List(&it.event_ids));
            writeln!(
                f,
                "conflict: gradient {} at step {}: {states} in {events} (unknown)",
                it.identity, it.step
            )?;
        }
        for it in &self.extra.ever_non_finite {
            let latest = self.non_finite_gradients.binary_search(&it.identity).is_ok();
            let then = if latest { "" } else { "; not so, or not settled, at the end" };
            writeln!(f, "non-finite: gradient {}{}{then}", it.identity, Since(it.first_step))?;
        }
        for it in &self.extra.non_finite_values {
            let (place, since) = (escaped(&it.place), Since(it.first_step));
            let is_first = self.extra.first_non_finite_place.as_ref() == Some(&it.place);
            let first = if is_first { ", before any other" } else { "" };
            writeln!(f, "non-finite: {} elements at {place}{since}{first}", it.elements)?;
        }
        for it in &self.extra.severed {
            writeln!(f, "severed: {it}")?;
        }
        for it in &self.extra.without {
            writeln!(f, "{}: gradient {}{}", it.state, it.identity, Since(it.first_step))?;
        }
        for identity in &self.saturating_activations {
            writeln!(f, "saturated: {}", escaped(&identity.key))?;
        }
        for id in &self.extra.saturated_without_source {
            writeln!(f, "saturated: {} (names no source)", escaped(id))?;
        }
        for id in &self.extra.inverted_ranges {
            writeln!(f, "range: {} has its min above its max", escaped(id))?;
        }
        if self.extra.lost_gaps > 0 {
            writeln!(f, "lost: the trace declares {} gaps of lost records", self.extra.lost_gaps)?;
        }
        if !self.has_findings() {
            writeln!(f, "no findings")?;
        }
        self.remarks(f)
    }
}

impl AuditReport {
    fn remarks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in &self.extra.tensors_varying_by_step {
            let id = escaped(id);
            writeln!(f, "note: tensor {id} differs between steps only, such as in a last batch")?;
        }
        for field in &self.extra.identity_unchecked {
            writeln!(f, "note: {field} was not compared, the trace has none")?;
        }
        if self.extra.inexact_integers > 0 {
            let count = self.extra.inexact_integers;
            writeln!(f, "note: {count} integers are above 2^53, JavaScript will round them")?;
        }
        if self.extra.other_gaps > 0 {
            writeln!(f, "note: the trace declares {} gaps not requested", self.extra.other_gaps)?;
        }
        Ok(())
    }
}
