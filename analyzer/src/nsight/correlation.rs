//! Ranges that were projected on the GPU, held against the labels that the trace promises.

use super::work::{NAMES, Work, keys};
use crate::evidence::gpu;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tmrun_formats::evidence::{
    GpuCorrelation, GpuCorrelationMode, GpuDuplicate, GpuLedger, GpuPhase, GpuTimelineRow,
};
use tmrun_formats::trace::CaptureContract;

/// Which ranges are which labels, and whether the work in them is as much as they say.
#[must_use]
pub fn correlate(
    contract: &CaptureContract,
    ranges: &[GpuTimelineRow<'_>],
    work: &[GpuTimelineRow<'_>],
) -> GpuCorrelation<'static> {
    let expected: BTreeSet<&str> = contract.gpu_expected().iter().map(|label| &**label).collect();
    let cpu_only: BTreeSet<&str> =
        contract.cpu_only_semantic_labels.iter().map(|label| &**label).collect();
    let mut counts = BTreeMap::<&str, u64>::new();
    for label in ranges.iter().filter_map(|range| range.semantic_key.as_deref()) {
        let count = counts.entry(label).or_default();
        *count = count.saturating_add(1);
    }
    let observed: BTreeSet<&str> = counts.keys().copied().collect();
    let unexpected = observed.difference(&expected).filter(|label| !cpu_only.contains(*label));
    let twice = counts.iter().filter(|(_, occurrences)| **occurrences > 1);
    let ledger = GpuLedger {
        expected: owned(&expected),
        cpu_only: owned(&cpu_only),
        observed: owned(&observed),
        matched: owned(expected.intersection(&observed)),
        missing_expected: owned(expected.difference(&observed)),
        unexpected_observed: owned(unexpected),
        unexpected_cpu_only: owned(observed.intersection(&cpu_only)),
        duplicates: twice
            .map(|(&label, &occurrences)| GpuDuplicate {
                semantic_key: label.to_owned().into(),
                occurrences,
            })
            .collect(),
    };
    if ranges.is_empty() {
        return GpuCorrelation { ledger, ..gpu::absent().correlation };
    }
    let joined = Work::of(work, ranges);
    let of_labels = ranges.iter().filter(|range| {
        range.semantic_key.as_deref().is_some_and(|label| expected.contains(label))
    });
    let mut checked = 0_u64;
    let unequal = of_labels.filter(|range| match (range.gpu_operations, joined.overlap(range)) {
        (Some(0), _) => true,
        (Some(count), Some(overlap)) if !work.is_empty() => {
            checked = checked.saturating_add(1);
            overlap.operations != count
        }
        _ => false,
    });
    let unequal = unequal.count();
    let complete = !ledger.expected.is_empty()
        && ledger.missing_expected.is_empty()
        && ledger.unexpected_observed.is_empty()
        && ledger.unexpected_cpu_only.is_empty()
        && ledger.duplicates.is_empty()
        && unequal == 0;
    let reason = match complete {
        true => format!(
            "every expected label is projected once and no other is; the work of {checked} ranges was \
             counted"
        ),
        false => format!(
            "of {} expected labels {} are not projected, {} are that nobody expects, {} that are the \
             CPU's alone, {} more than once, and {unequal} ranges have other work than they say",
            ledger.expected.len(),
            ledger.missing_expected.len(),
            ledger.unexpected_observed.len(),
            ledger.unexpected_cpu_only.len(),
            ledger.duplicates.len(),
        ),
    };
    GpuCorrelation {
        mode: GpuCorrelationMode::NvtxProjectedRange.into(),
        clock_aligned: false,
        complete,
        ledger,
        reason: Some(reason.into()),
    }
}

fn owned<'l, L: AsRef<str> + 'l>(
    labels: impl IntoIterator<Item = &'l L>,
) -> Vec<Cow<'static, str>> {
    labels.into_iter().map(|label| label.as_ref().to_owned().into()).collect()
}

/// The work of each range that can be joined with it, where that is as much as the range says.
#[must_use]
pub fn phases(
    ranges: &[GpuTimelineRow<'_>],
    work: &[GpuTimelineRow<'_>],
) -> Vec<GpuPhase<'static>> {
    let work = Work::of(work, ranges);
    let phase = |range: &GpuTimelineRow<'_>| {
        let overlap = work.overlap(range)?;
        let join_keys = keys(range).into_iter().zip(NAMES).filter(|(key, _)| key.is_some());
        (range.gpu_operations? == overlap.operations).then_some(())?;
        Some(GpuPhase {
            semantic_key: range.semantic_key.clone()?.into_owned().into(),
            clock_aligned: false,
            projected_start_ns: range.projected_start_ns?,
            projected_duration_ns: range.projected_duration_ns?,
            gpu_busy_ns: overlap.busy_ns,
            gpu_operation_count: overlap.operations,
            join_keys: join_keys.map(|(_, name)| name.into()).collect(),
        })
    };
    ranges.iter().filter_map(phase).collect()
}
