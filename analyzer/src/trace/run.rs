//! What a trace says of its run.

use std::collections::BTreeMap;

use tmrun_formats::Phase;
use tmrun_formats::trace::{
    CaptureContract, ComparisonIdentity, CoverageLevel, ExpectedGradient, GradientContract,
    GradientFamilyContract, GradientFamilyExpectation, MeasurementScope, TimingMode, TracePhase,
    TraceRun,
};
use tmrun_formats::wire::{ComparisonIdentityV1, ContractV1};

use crate::scan::{Meta, Recording};
use crate::slice::Region;

/// The run of a region. A text that the recording lacks is `unknown`, for a trace must have it.
pub(super) fn of(recording: &Recording<'_>, region: &Region, timestamp_ns: u64) -> TraceRun {
    let meta = recording.meta();
    let run = meta.run.as_ref();
    let unknown = || "unknown".to_owned();
    let id = id(recording);
    let step = region.step();
    let phase = if region.phase == Phase::default() {
        run.map_or(Phase::default(), |run| run.phase)
    } else {
        region.phase
    };
    TraceRun {
        correlation_id: given(run.and_then(|run| run.correlation_id)).unwrap_or_else(|| id.clone()),
        run_id: step.map_or_else(|| id.clone(), |step| format!("{id}{}", of_step(step))),
        entrypoint: given(run.map(|run| run.entrypoint)).unwrap_or_else(unknown),
        phase: if phase == Phase::INFER { TracePhase::Infer } else { TracePhase::Train },
        timestamp: timestamp(timestamp_ns),
        capture_step: step.unwrap_or_else(|| run.map_or(1, |run| run.capture_step.max(1))),
        warmup_steps: run.map_or(0, |run| run.warmup_steps),
        device: given(run.map(|run| run.device)).unwrap_or_else(unknown),
        measured_region_device_synchronized: run.is_some_and(|r| r.measured_region_synchronized),
        timing_mode: match run.is_some_and(|run| run.device_synchronized) {
            true => TimingMode::DeviceSynchronized,
            false => TimingMode::Host,
        },
        capture_contract: contract(meta),
        comparison_identity: meta.comparison.as_ref().map(identity),
        tags: tags(meta),
        candle_version: given(run.and_then(|run| run.candle_version)),
    }
}

/// A text that says something.
fn given(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// The id of the recording's run.
fn id(recording: &Recording<'_>) -> String {
    let run = recording.meta().run.as_ref();
    given(run.map(|run| run.run_id)).unwrap_or_else(|| recording.header().run.to_string())
}

/// What follows the run's id where a step is the region.
fn of_step(step: u64) -> String {
    format!("/step-{step}")
}

/// The step that is the region of a published run of this recording, if one is. The id of the recording's
/// run may end as that of a step does.
pub(crate) fn step_of(recording: &Recording<'_>, published: &TraceRun) -> Option<u64> {
    let step = published.capture_step;
    let is_step = published.run_id.ends_with(&of_step(step)) && published.run_id != id(recording);
    is_step.then_some(step)
}

fn tags(meta: &Meta<'_>) -> BTreeMap<String, String> {
    meta.tags.iter().map(|tag| (tag.key.to_owned(), tag.value.to_owned())).collect()
}

/// The contract that the run declared. Without one nothing is promised.
fn contract(meta: &Meta<'_>) -> CaptureContract {
    let ContractV1 {
        measurement_scope,
        operations,
        activations,
        tensors,
        gradients,
        logical_memory,
        physical_memory,
        device_timing,
    } = meta.contract.unwrap_or_default();
    let labels = |wanted: fn(u8) -> bool| {
        let labels = meta.labels.iter().filter(|label| wanted(label.list));
        labels.map(|label| label.text.to_owned()).collect()
    };
    CaptureContract {
        measurement_scope: match measurement_scope {
            1 => MeasurementScope::ProfiledWork,
            2 => MeasurementScope::ProductionEquivalent,
            _ => MeasurementScope::Unknown,
        },
        operations: level(operations),
        activations: level(activations),
        tensors: level(tensors),
        gradients: level(gradients),
        gradient_contract: gradient_contract(meta),
        logical_memory: level(logical_memory),
        physical_memory: level(physical_memory),
        device_timing: level(device_timing),
        required_semantic_labels: labels(|_| true),
        gpu_expected_semantic_labels: labels(|list| list == 1),
        cpu_only_semantic_labels: labels(|list| list == 2),
    }
}

const fn level(code: u8) -> CoverageLevel {
    match code {
        1 => CoverageLevel::Partial,
        2 => CoverageLevel::Complete,
        _ => CoverageLevel::None,
    }
}

fn gradient_contract(meta: &Meta<'_>) -> Option<GradientContract> {
    let expected = meta.gradient_entries.iter().map(|entry| ExpectedGradient {
        root: entry.root.to_owned(),
        key: entry.key.to_owned(),
        family: entry.family.to_owned(),
    });
    let families = meta.gradient_families.iter().map(|family| GradientFamilyContract {
        family: family.family.to_owned(),
        expectation: match family.expectation {
            0 => GradientFamilyExpectation::Active,
            1 => GradientFamilyExpectation::Inactive,
            _ => GradientFamilyExpectation::DataConditional,
        },
        min_present: usize::try_from(family.min_present).unwrap_or(usize::MAX),
    });
    GradientContract::new(expected.collect(), families.collect()).ok()
}

fn identity(identity: &ComparisonIdentityV1<'_>) -> ComparisonIdentity {
    ComparisonIdentity {
        implementation_id: identity.implementation_id.map(str::to_owned),
        workload_id: identity.workload_id.to_owned(),
        model_id: identity.model_id.to_owned(),
        config_id: identity.config_id.to_owned(),
        data_id: identity.data_id.to_owned(),
        seed_policy: identity.seed_policy.to_owned(),
        physical_batch: identity.physical_batch,
        accumulation_steps: identity.accumulation_steps,
        precision: identity.precision.to_owned(),
        device_state: identity.device_state.to_owned(),
        pair_id: identity.pair_id.map(str::to_owned),
    }
}

/// A moment of the Unix clock, as `YYYY-MM-DDTHH:MM:SS.mmmZ`.
fn timestamp(unix_ns: u64) -> String {
    let millis = unix_ns / 1_000_000;
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The date of the Gregorian calendar so many days after 1970-01-01. Years count from March, so that
/// the day that some years have more is their last; 400 of them have 146,097 days.
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".)
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let leap = of_era / 1_460;
    let years = of_era
        .saturating_sub(leap)
        .saturating_add(of_era / 36_524)
        .saturating_sub(of_era / 146_096)
        / 365;
    let before = (years.saturating_mul(365)).saturating_add(years / 4).saturating_sub(years / 100);
    let of_year = of_era.saturating_sub(before);
    let from_march = of_year.saturating_mul(5).saturating_add(2) / 153;
    let day = of_year
        .saturating_sub(from_march.saturating_mul(153).saturating_add(2) / 5)
        .saturating_add(1);
    let month =
        if from_march < 10 { from_march.saturating_add(3) } else { from_march.saturating_sub(9) };
    let year = era.saturating_mul(400).saturating_add(years);
    (if month <= 2 { year.saturating_add(1) } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_of_the_calendar() {
        let at = |seconds: u64| timestamp(seconds * 1_000_000_000 + 7_000_000);
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
        assert!(!timestamp(u64::MAX).is_empty());
    }

    #[test]
    fn days_follow_one_another() {
        let mut last = civil(0);
        for days in 1..200_000 {
            let next = civil(days);
            assert!(next > last, "{last:?} {next:?}");
            assert!((1..=12).contains(&next.1) && (1..=31).contains(&next.2));
            last = next;
        }
        assert_eq!(last.0, 2517);
    }
}
