//! Whether runs can be compared with each other, apart from their identities.

use super::Run;
use super::differences::Differences;
use super::reasons::{Cohort, Placed, Reasons, all};
use std::collections::HashMap;
use tmrun_formats::comparison::ComparisonCode;
use tmrun_formats::trace::MeasurementScope;

/// The time of each run's measured region, 0 where there is none, and what speaks against each run by
/// itself.
pub(super) fn samples(cohort: Cohort<'_>, reasons: &mut Reasons<'_>) -> Vec<u64> {
    let samples = cohort.placed().map(|placed| {
        check_capture(placed, reasons);
        check_measurement(placed, reasons);
        placed.run.measured.first().copied().unwrap_or(0)
    });
    samples.collect()
}

fn check_capture(placed: Placed<'_>, reasons: &mut Reasons<'_>) {
    let Run { errors, failed, .. } = placed.run;
    if errors.is_empty() && failed.is_none() {
        return;
    }
    let mut why = Vec::new();
    if !errors.is_empty() {
        let codes: Vec<_> = errors.iter().map(|code| code.name()).collect();
        why.push(format!("it is structurally invalid ({})", codes.join(", ")));
    }
    if let Some(reason) = failed {
        why.push(format!("its capture failed ({reason:?})"));
    }
    reasons.add(ComparisonCode::IncompleteCapture, format!("{placed}: {}", why.join(", and ")));
}

fn check_measurement(placed: Placed<'_>, reasons: &mut Reasons<'_>) {
    let Run { meta, measured, .. } = placed.run;
    let scope = meta.capture_contract.measurement_scope;
    if scope != MeasurementScope::ProductionEquivalent {
        let message = format!(
            "{placed}: capture_contract.measurement_scope is {scope}: expected production_equivalent"
        );
        reasons.add(ComparisonCode::NotProductionEquivalent, message);
    }
    if !meta.device.starts_with("cpu") && !meta.measured_region_device_synchronized {
        let message = format!(
            "{placed}: measured_region_device_synchronized is false on {:?}: expected it to be true \
             on a device, which is to be synchronized with around the measured region",
            meta.device
        );
        reasons.add(ComparisonCode::UnsynchronizedDeviceRegion, message);
    }
    if measured.len() != 1 {
        let message =
            format!("{placed}: {} measured spans that ended: expected one", measured.len());
        reasons.add(ComparisonCode::MeasuredRegionCountInvalid, message);
    }
}

pub(super) fn check_ids(cohorts: [Cohort<'_>; 2], reasons: &mut Reasons<'_>) {
    let mut seen = HashMap::new();
    let mut twice = all(cohorts)
        .filter_map(|placed| Some((seen.insert(&*placed.run.meta.run_id, placed)?, placed)));
    if let Some((first, second)) = twice.next() {
        let more = more(twice.count());
        let message = format!("run_id: {second} is {first} again{more}: expected each run once");
        reasons.add(ComparisonCode::DuplicateRunIds, message);
    }
}

pub(super) fn check_semantics(cohorts: [Cohort<'_>; 2], reasons: &mut Reasons<'_>) {
    let mut runs = all(cohorts);
    let Some(first) = runs.next() else {
        return reasons.add(ComparisonCode::NoRuns, "both cohorts are empty: expected runs");
    };
    let differ = runs.map(|placed| (placed, Differences::of_captures(placed.run, first.run)));
    let mut differ = differ.filter(|(_, differences)| !differences.is_empty());
    if let Some((placed, differences)) = differ.next() {
        let more = more(differ.count());
        let message = format!("{placed}, held against {first}: {differences}{more}");
        reasons.add(ComparisonCode::CaptureSemanticsMismatch, message);
    }
}

/// That there are others of the kind.
pub(super) fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; so does another run".to_owned(),
        _ => format!("; so do {count} other runs"),
    }
}
