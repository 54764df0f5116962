//! What Nsight's reports answer. Every report that is not there leaves its rows unknown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use tmrun_formats::evidence::{Evidence, Gpu, GpuStatus, GpuTimelineRow};

use super::page::Bounded;

/// Rows of a list of things, of labels, and of diagnostics.
const ROWS: usize = 50;
const LABELS: usize = 100;
const DIAGNOSTICS: usize = 50;

/// The reports, by the names that Nsight gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    Kernels,
    Calls,
    MemoryOperations,
    Ranges,
    Timeline,
}

impl Report {
    const fn name(self) -> &'static str {
        match self {
            Self::Kernels => "cuda_gpu_kern_sum",
            Self::Calls => "cuda_api_sum",
            Self::MemoryOperations => "cuda_gpu_mem_time_sum",
            Self::Ranges => "nvtx_gpu_proj_trace",
            Self::Timeline => "cuda_gpu_trace",
        }
    }

    const fn is_covered(self, gpu: &Gpu<'_>) -> bool {
        match self {
            Self::Kernels => gpu.coverage.kernel_summary,
            Self::Calls => gpu.coverage.runtime_summary,
            Self::MemoryOperations => gpu.coverage.memory_summary,
            Self::Ranges => gpu.coverage.nvtx_projection,
            Self::Timeline => gpu.coverage.gpu_timeline,
        }
    }

    /// How many rows there are here.
    const fn rows(self, gpu: &Gpu<'_>) -> usize {
        match self {
            Self::Kernels => gpu.kernels.len(),
            Self::Calls => gpu.runtime_calls.len(),
            Self::MemoryOperations => gpu.memory_operations.len(),
            Self::Ranges => gpu.nvtx_ranges.len(),
            Self::Timeline => gpu.gpu_timeline.len(),
        }
    }

    /// How many rows the report had, of which not all need be here.
    fn total(self, gpu: &Gpu<'_>) -> usize {
        let files = gpu.limits.iter().filter(|(file, _)| file.contains(self.name()));
        let rows = files.map(|(_, limit)| usize::try_from(limit.total_rows).unwrap_or(usize::MAX));
        rows.fold(0, usize::saturating_add).max(self.rows(gpu))
    }

    fn state(self, gpu: &Gpu<'_>) -> State {
        let has_failed = gpu.diagnostics.iter().any(|line| line.contains(self.name()));
        match (has_failed, self.is_covered(gpu)) {
            (false, true) => State::AVAILABLE,
            (true, _) => State::without(GpuStatus::Failed, self),
            (false, false) if gpu.status == GpuStatus::Failed => {
                State::without(GpuStatus::Failed, self)
            }
            (false, false) => State::without(GpuStatus::Unavailable, self),
        }
    }

    /// The rows, where the report is there.
    fn count(self, gpu: &Gpu<'_>) -> Value {
        let state = self.state(gpu);
        let total = state.is_available().then(|| self.total(gpu));
        json!({ "status": state.status, "reason": state.reason, "total": total })
    }
}

/// Whether something can be said of a report, or of several.
#[derive(Debug, Clone, Serialize)]
struct State {
    status: GpuStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl State {
    const AVAILABLE: Self = Self { status: GpuStatus::Available, reason: None };

    fn without(status: GpuStatus, report: Report) -> Self {
        let what = match status {
            GpuStatus::Failed => "could not be read",
            _ => "is not there",
        };
        let reason = format!("Nsight's {} {what}: how many rows it has is unknown", report.name());
        Self { status, reason: Some(reason) }
    }

    fn of(reports: &[Report], gpu: &Gpu<'_>) -> Self {
        let states = reports.iter().map(|&report| (report, report.state(gpu).status));
        let lacking: Vec<_> =
            states.filter(|(_, status)| *status != GpuStatus::Available).collect();
        if lacking.is_empty() {
            return Self::AVAILABLE;
        }
        let has_failed = lacking.iter().any(|(_, status)| *status == GpuStatus::Failed);
        let names: Vec<_> = lacking.iter().map(|(report, _)| report.name()).collect();
        let reason = format!("without Nsight's {} this is unknown", names.join(" and "));
        let status = if has_failed { GpuStatus::Failed } else { GpuStatus::Unavailable };
        Self { status, reason: Some(reason) }
    }

    fn is_available(&self) -> bool {
        self.status == GpuStatus::Available
    }
}

fn states(reports: &[Report], gpu: &Gpu<'_>) -> BTreeMap<&'static str, State> {
    reports.iter().map(|report| (report.name(), report.state(gpu))).collect()
}

fn row_counts(gpu: &Gpu<'_>) -> Value {
    json!({
        "kernels": Report::Kernels.count(gpu),
        "runtime_calls": Report::Calls.count(gpu),
        "memory_operations": Report::MemoryOperations.count(gpu),
        "projected_ranges": Report::Ranges.count(gpu),
        "gpu_timeline": Report::Timeline.count(gpu),
    })
}

/// Whether ranges and spans belong together.
fn correlation_state(gpu: &Gpu<'_>) -> Value {
    let state = Report::Ranges.state(gpu);
    let complete = state.is_available().then_some(gpu.correlation.complete);
    json!({ "status": state.status, "reason": state.reason, "complete": complete })
}

fn labels<T: Serialize>(labels: &[T]) -> Bounded<&T> {
    Bounded::of(labels, LABELS)
}

/// What every reader of the reports said, sorted, each once.
fn diagnostics<'e>(gpu: &'e Gpu<'_>) -> Bounded<&'e str> {
    let all = gpu.provenance.diagnostics.iter().chain(&gpu.diagnostics);
    let all: BTreeSet<&str> = all.map(|line| &**line).collect();
    Bounded::of(all, DIAGNOSTICS)
}

fn capabilities(evidence: &Evidence<'_>) -> Value {
    json!({
        "gpu_correlation": evidence.capabilities.gpu_correlation,
        "provenance_binding": evidence.capabilities.provenance_binding,
    })
}

/// The reports in a few numbers.
pub(super) fn summary(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    let phases = State::of(&[Report::Ranges, Report::Timeline], gpu);
    let diagnostics = gpu.diagnostics.len().saturating_add(gpu.provenance.diagnostics.len());
    json!({
        "status": gpu.status,
        "reason": gpu.reason,
        "provenance_binding": gpu.provenance.binding,
        "correlation": correlation_state(gpu),
        "coverage": gpu.coverage,
        "normalized_rows": row_counts(gpu),
        "attributed_phases": {
            "status": phases.status,
            "reason": phases.reason,
            "total": phases.is_available().then_some(gpu.phase_attribution.len()),
        },
        "diagnostic_count": diagnostics,
    })
}

pub(super) fn status(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    json!({
        "status": gpu.status,
        "reason": gpu.reason,
        "provenance_binding": gpu.provenance.binding,
        "capabilities": capabilities(evidence),
        "coverage": gpu.coverage,
        "correlation": correlation_state(gpu),
        "normalized_rows": row_counts(gpu),
        "source_artifacts": {
            "raw_report": gpu.raw_report.is_some(),
            "csv_files": gpu.source_csv.len(),
        },
        "diagnostics": diagnostics(gpu),
    })
}

pub(super) fn correlation(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    let state = Report::Ranges.state(gpu);
    let known = state.is_available().then_some(&gpu.correlation);
    let ledger = known.map(|correlation| {
        let ledger = &correlation.ledger;
        json!({
            "expected": labels(&ledger.expected),
            "cpu_only": labels(&ledger.cpu_only),
            "observed": labels(&ledger.observed),
            "matched": labels(&ledger.matched),
            "missing_expected": labels(&ledger.missing_expected),
            "unexpected_observed": labels(&ledger.unexpected_observed),
            "unexpected_cpu_only": labels(&ledger.unexpected_cpu_only),
            "duplicates": labels(&ledger.duplicates),
        })
    });
    json!({
        "status": state.status,
        "reason": state.reason,
        "provenance_binding": gpu.provenance.binding,
        "required_reports": states(&[Report::Ranges], gpu),
        "capabilities": capabilities(evidence),
        "mode": known.map(|correlation| &correlation.mode),
        "clock_aligned": known.map(|correlation| correlation.clock_aligned),
        "complete": known.map(|correlation| correlation.complete),
        "correlation_reason": known.map(|correlation| &correlation.reason),
        "ledger": ledger,
    })
}

pub(super) fn phases(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    let reports = [Report::Ranges, Report::Timeline];
    let (projected, attributed) = (Report::Ranges.state(gpu), State::of(&reports, gpu));

    let mut ranges: Vec<_> = gpu.nvtx_ranges.iter().filter(|_| projected.is_available()).collect();
    let length = |row: &GpuTimelineRow<'_>| row.projected_duration_ns.unwrap_or_default();
    ranges.sort_by(|left, right| {
        length(right).cmp(&length(left)).then_with(|| left.name.cmp(&right.name))
    });
    let sample = ranges.len();
    let rows: Vec<_> = ranges.into_iter().take(ROWS).map(range).collect();
    let population = projected.is_available().then(|| Report::Ranges.total(gpu));
    let shown = rows.len();

    let mut phases: Vec<_> =
        gpu.phase_attribution.iter().filter(|_| attributed.is_available()).collect();
    phases.sort_by(|left, right| {
        let busiest = right.gpu_busy_ns.cmp(&left.gpu_busy_ns);
        busiest.then_with(|| left.semantic_key.cmp(&right.semantic_key))
    });
    let phases = Bounded::of(phases, ROWS);
    let known = |value: Value| if attributed.is_available() { value } else { Value::Null };
    json!({
        "status": attributed.status,
        "reason": attributed.reason,
        "provenance_binding": gpu.provenance.binding,
        "required_reports": states(&reports, gpu),
        "clock_plane": "nsight_projected_not_host_aligned",
        "projected_ranges": {
            "status": projected.status,
            "reason": projected.reason,
            "population_total": population,
            "retained_sample_total": projected.is_available().then_some(sample),
            "displayed": shown,
            "population_truncated_before_ranking": population.map(|total| sample < total),
            "display_truncated": projected.is_available().then_some(shown < sample),
            "sample_selection": "earliest_original_start_rows",
            "ordering": "projected_duration_ns_desc_within_retained_sample",
            "global_duration_ranking": false,
            "rows": rows,
        },
        "attributed_phases": {
            "status": attributed.status,
            "reason": attributed.reason,
            "population_total": known(phases.total.into()),
            "displayed": phases.displayed,
            "display_truncated": known(phases.truncated.into()),
            "ordering": "gpu_busy_ns_desc_across_normalized_population",
            "rows": phases.rows,
        },
    })
}

/// A range, and by what it could be joined with work on the GPU.
fn range(row: &GpuTimelineRow<'_>) -> Value {
    let keys = [
        ("correlation_id", row.correlation_id.is_some()),
        ("device", row.device.is_some()),
        ("context", row.context.is_some()),
        ("stream", row.stream.is_some()),
    ];
    let keys: Vec<_> =
        keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect();
    json!({
        "name": row.name,
        "semantic_key": row.semantic_key,
        "projected_start_ns": row.projected_start_ns,
        "projected_duration_ns": row.projected_duration_ns,
        "declared_gpu_operations": row.gpu_operations,
        "join_keys": keys,
    })
}

pub(super) fn kernels(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    let state = Report::Kernels.state(gpu);
    let mut kernels: Vec<_> = gpu.kernels.iter().filter(|_| state.is_available()).collect();
    kernels.sort_by(|left, right| {
        right.total_ns.cmp(&left.total_ns).then_with(|| left.name.cmp(&right.name))
    });
    kernels.truncate(ROWS);
    let total = state.is_available().then(|| Report::Kernels.total(gpu));
    json!({
        "status": state.status,
        "reason": state.reason,
        "provenance_binding": gpu.provenance.binding,
        "required_reports": states(&[Report::Kernels], gpu),
        "clock_plane": "nsight_gpu",
        "population_total": total,
        "displayed": kernels.len(),
        "display_truncated": total.map(|total| kernels.len() < total),
        "rows": kernels,
    })
}

pub(super) fn attribution_gaps(evidence: &Evidence<'_>) -> Value {
    let gpu = &evidence.gpu;
    let reports = [Report::Ranges, Report::Timeline];
    let state = State::of(&reports, gpu);
    let mut answer = json!({
        "status": state.status,
        "reason": state.reason,
        "provenance_binding": gpu.provenance.binding,
        "required_reports": states(&reports, gpu),
        "diagnostics": diagnostics(gpu),
    });
    let unknown = json!({
        "correlation_complete": null,
        "correlation_reason": null,
        "missing_expected": null,
        "unexpected_observed": null,
        "unexpected_cpu_only": null,
        "duplicate_labels": null,
        "matched_without_exact_gpu_busy_attribution": null,
        "attributed_unexpected": null,
        "projected_range_rows": null,
        "exactly_attributed_phase_rows": null,
        "truncated_reports": null,
    });
    let rest = if state.is_available() { attributed(gpu) } else { unknown };
    if let (Value::Object(answer), Value::Object(rest)) = (&mut answer, rest) {
        answer.extend(rest);
    }
    answer
}

/// What the ledger and the attributed ranges leave open.
fn attributed(gpu: &Gpu<'_>) -> Value {
    let ledger = &gpu.correlation.ledger;
    let attributed: BTreeSet<&str> =
        gpu.phase_attribution.iter().map(|phase| &*phase.semantic_key).collect();
    let expected: BTreeSet<&str> = ledger.expected.iter().map(|label| &**label).collect();
    let without: Vec<_> =
        ledger.matched.iter().filter(|label| !attributed.contains(&***label)).collect();
    let unexpected: Vec<_> = attributed.difference(&expected).collect();
    let truncated: Vec<_> = gpu
        .limits
        .iter()
        .filter(|(_, limit)| limit.truncated)
        .map(|(report, limit)| {
            json!({
                "report": report,
                "total_rows": limit.total_rows,
                "displayed_rows": limit.displayed_rows,
            })
        })
        .collect();
    json!({
        "correlation_complete": gpu.correlation.complete,
        "correlation_reason": gpu.correlation.reason,
        "missing_expected": labels(&ledger.missing_expected),
        "unexpected_observed": labels(&ledger.unexpected_observed),
        "unexpected_cpu_only": labels(&ledger.unexpected_cpu_only),
        "duplicate_labels": labels(&ledger.duplicates),
        "matched_without_exact_gpu_busy_attribution": labels(&without),
        "attributed_unexpected": labels(&unexpected),
        "projected_range_rows": Report::Ranges.total(gpu),
        "exactly_attributed_phase_rows": gpu.phase_attribution.len(),
        "truncated_reports": Bounded::of(truncated, ROWS),
    })
}
