//! What is missing.

use std::borrow::Cow;
use tmrun_formats::evidence::{
    Capabilities, CapabilityKind, CapabilityLevel, Health, HealthSeverity,
};

/// Every warning, and why each capability that is not complete is not: sorted by bytes, each once.
#[must_use]
pub fn of<'d>(health: &Health<'d>, capabilities: &Capabilities<'d>) -> Vec<Cow<'d, str>> {
    let warnings = health.issues.iter().filter(|issue| issue.severity == HealthSeverity::Warning);
    let capabilities = CapabilityKind::ALL.iter().map(|&kind| capabilities.get(kind));
    let lacking = capabilities.filter(|capability| capability.level != CapabilityLevel::Complete);
    let mut gaps: Vec<_> = warnings
        .map(|issue| issue.message.clone())
        .chain(lacking.map(|capability| capability.reason.clone()))
        .collect();
    gaps.sort_unstable();
    gaps.dedup();
    gaps
}
