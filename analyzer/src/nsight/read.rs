//! The directory as a whole.

use super::{correlate, files, phases, provenance, summary, timeline};
use crate::evidence::gpu;
use crate::input::{Input, InputError};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;
use tmrun_formats::evidence::{
    Gpu, GpuArtifact, GpuReportLimit, GpuRowKind, GpuStatus, GpuSummaryRow, GpuTimelineRow,
};
use tmrun_formats::trace::TraceRun;

/// The most rows of one summary that are kept.
const SUMMARY_ROWS: usize = 100;
/// The most rows of each timeline that are kept.
const TIMELINE_ROWS: usize = 500;
/// Where a script says why there are no reports.
const STATUS: &str = "status.txt";

/// Reads Nsight's directory and holds it against the run that it is to be of.
#[must_use]
pub fn read(folder: &Path, run: &TraceRun) -> Gpu<'static> {
    read_folder(folder, run).unwrap_or_else(|error| Gpu {
        status: GpuStatus::Failed,
        reason: Some(format!("the directory of Nsight's reports cannot be read: {error}").into()),
        ..gpu::absent()
    })
}

fn read_folder(folder: &Path, run: &TraceRun) -> io::Result<Gpu<'static>> {
    let files = files::list(folder)?;
    let report = files.iter().find(|path| files::has_extension(path, "nsys-rep"));
    let raw_report = report.map(|path| files::unread(path)).transpose()?;
    let mut gpu = Gpu { reason: None, raw_report, ..gpu::absent() };
    let (mut ranges, mut work) = (Vec::new(), Vec::new());

    let tables = files.iter().filter(|path| files::has_extension(path, "csv"));
    let tables: Vec<_> = tables.filter_map(|path| Some((&**path, Table::of(path)?))).collect();
    let read: Vec<_> = tables.into_par_iter().map(|(path, table)| table.read(path)).collect();
    for read in read {
        let (artifact, rows) = match read {
            Ok(read) => read,
            Err(diagnostic) => {
                gpu.diagnostics.push(diagnostic.into());
                continue;
            }
        };
        let limit = match rows {
            Rows::Kernels(rows) => keep(rows, &mut gpu.coverage.kernel_summary, &mut gpu.kernels),
            Rows::Calls(rows) => {
                keep(rows, &mut gpu.coverage.runtime_summary, &mut gpu.runtime_calls)
            }
            Rows::Memory(rows) => {
                keep(rows, &mut gpu.coverage.memory_summary, &mut gpu.memory_operations)
            }
            Rows::Ranges(rows) => {
                gpu.coverage.nvtx_projection = true;
                take(rows, &mut ranges)
            }
            Rows::Work(rows) => {
                gpu.coverage.gpu_timeline = true;
                take(rows, &mut work)
            }
        };
        gpu.limits.insert(artifact.path.clone(), limit);
        gpu.source_csv.push(artifact);
    }

    gpu.correlation = correlate(&run.capture_contract, &ranges, &work);
    gpu.phase_attribution = phases(&ranges, &work);
    gpu.nvtx_ranges = first(ranges);
    gpu.gpu_timeline = first(work);
    let artifacts: Vec<_> = gpu.source_csv.iter().chain(&gpu.raw_report).collect();
    gpu.provenance = provenance::of(folder, run, &artifacts, gpu.raw_report.is_some());
    let summaries = [&gpu.kernels, &gpu.runtime_calls, &gpu.memory_operations];
    let timelines = [&gpu.nvtx_ranges, &gpu.gpu_timeline];
    if summaries.iter().all(|rows| rows.is_empty()) && timelines.iter().all(|rows| rows.is_empty())
    {
        gpu.reason =
            Some(status(folder).unwrap_or("no table of nsys stats with rows was found".into()));
    } else {
        gpu.status = GpuStatus::Available;
    }
    Ok(gpu)
}

/// The tables that are read; a file is the first whose report its name contains.
#[derive(Debug, Clone, Copy)]
enum Table {
    Kernels,
    Calls,
    Memory,
    Ranges,
    Work,
}

/// What was read of one.
enum Rows {
    Kernels(Vec<GpuSummaryRow<'static>>),
    Calls(Vec<GpuSummaryRow<'static>>),
    Memory(Vec<GpuSummaryRow<'static>>),
    Ranges(Vec<GpuTimelineRow<'static>>),
    Work(Vec<GpuTimelineRow<'static>>),
}

impl Table {
    const REPORTS: [(&'static str, Self); 5] = [
        ("cuda_gpu_kern_sum", Self::Kernels),
        ("cuda_api_sum", Self::Calls),
        ("cuda_gpu_mem_time_sum", Self::Memory),
        ("nvtx_gpu_proj_trace", Self::Ranges),
        ("cuda_gpu_trace", Self::Work),
    ];

    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let report = Self::REPORTS.into_iter().find(|(report, _)| name.contains(report));
        report.map(|(_, table)| table)
    }

    /// Reads one. What cannot be read is told, by the file's name alone: the directory may be moved.
    fn read(self, path: &Path) -> Result<(GpuArtifact<'static>, Rows), String> {
        let name = files::name(path);
        let input = Input::open(path).map_err(|error| match error {
            InputError::File { source, .. } => format!("{name}: cannot be read: {source}"),
            _ => format!("{name}: is no regular file"),
        })?;
        let rows = match self {
            Self::Kernels => summary(&input).map(Rows::Kernels),
            Self::Calls => summary(&input).map(Rows::Calls),
            Self::Memory => summary(&input).map(Rows::Memory),
            Self::Ranges => timeline(&input, GpuRowKind::NvtxRange).map(Rows::Ranges),
            Self::Work => timeline(&input, GpuRowKind::GpuOperation).map(Rows::Work),
        };
        let rows = rows.map_err(|error| format!("{name}: {error}"))?;
        Ok((files::artifact(path, &input), rows))
    }
}

/// Keeps the first rows of a summary.
fn keep<T>(mut rows: Vec<T>, covered: &mut bool, all: &mut Vec<T>) -> GpuReportLimit {
    *covered = true;
    let limit = limit(rows.len(), SUMMARY_ROWS);
    rows.truncate(SUMMARY_ROWS);
    all.append(&mut rows);
    limit
}

/// Keeps the rows of a timeline for now: what is asked of them is asked of all.
fn take<T>(mut rows: Vec<T>, all: &mut Vec<T>) -> GpuReportLimit {
    let limit = limit(rows.len(), TIMELINE_ROWS);
    all.append(&mut rows);
    limit
}

fn limit(rows: usize, most: usize) -> GpuReportLimit {
    GpuReportLimit {
        total_rows: rows as u64,
        displayed_rows: rows.min(most) as u64,
        truncated: rows > most,
    }
}

/// The first rows of a timeline, by their starts and names.
fn first(mut rows: Vec<GpuTimelineRow<'static>>) -> Vec<GpuTimelineRow<'static>> {
    rows.sort_by(|a, b| a.start_ns.cmp(&b.start_ns).then_with(|| a.name.cmp(&b.name)));
    rows.truncate(TIMELINE_ROWS);
    rows
}

fn status(folder: &Path) -> Option<Cow<'static, str>> {
    let text = fs::read_to_string(folder.join(STATUS)).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix("reason=")?.to_owned().into()))
}
