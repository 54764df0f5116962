//! The rows of the tables that are read.

use super::table::{Table, TableError};
use std::cmp::Reverse;
use tmrun_formats::evidence::{GpuRowKind, GpuSummaryRow, GpuTimelineRow};

const NAME: &[&str] = &["name", "operation", "range", "kernel_name"];

/// The rows of a summary, those of the most time first.
///
/// # Errors
/// A table that is none, or not this one.
pub fn summary(bytes: &[u8]) -> Result<Vec<GpuSummaryRow<'static>>, TableError> {
    let table = Table::open(bytes)?;
    let name = table.needed(NAME)?;
    let total = table.needed(&["total_time_ns", "total_ns"])?;
    let count = table.column(&["instances", "num_calls", "operations", "count"]);
    let average = table.column(&["avg_ns", "average_ns"]);
    let minimum = table.column(&["min_ns", "minimum_ns"]);
    let maximum = table.column(&["max_ns", "maximum_ns"]);
    let category = table.column(&["category"]);
    let mut rows = table.rows(&name, |row, name| {
        Ok(GpuSummaryRow {
            name: name.into(),
            total_ns: row.needed(&total)?,
            count: row.number(&count)?,
            average_ns: row.number(&average)?,
            minimum_ns: row.number(&minimum)?,
            maximum_ns: row.number(&maximum)?,
            category: row.text(&category).map(|text| text.to_owned().into()),
        })
    })?;
    rows.sort_by_key(|row| Reverse(row.total_ns));
    Ok(rows)
}

/// The rows of a timeline by their starts: ranges with the times of their work on the GPU, or work.
///
/// # Errors
/// A table that is none, or not this one.
pub fn timeline(
    bytes: &[u8],
    kind: GpuRowKind,
) -> Result<Vec<GpuTimelineRow<'static>>, TableError> {
    const START: &[&str] = &["start_ns", "start"];
    const DURATION: &[&str] = &["duration_ns", "duration", "dur_ns"];
    const OWN_START: &[&str] = &["orig_start_ns", "orig_start", "start_ns", "start"];
    const OWN_DURATION: &[&str] =
        &["orig_duration_ns", "orig_duration", "duration_ns", "duration", "dur_ns"];
    const PROJECTED_START: &[&str] = &["projected_start_ns", "projected_start", "proj_start_ns"];
    const PROJECTED_DURATION: &[&str] =
        &["projected_duration_ns", "projected_duration", "proj_dur_ns"];
    let is_range = kind == GpuRowKind::NvtxRange;
    let table = Table::open(bytes)?;
    let name = table.needed(NAME)?;
    let start = table.needed(if is_range { OWN_START } else { START })?;
    let duration = table.needed(if is_range { OWN_DURATION } else { DURATION })?;
    let (projected_start, projected_duration) = match is_range {
        true => (table.needed(PROJECTED_START)?, table.needed(PROJECTED_DURATION)?),
        false => (table.column(PROJECTED_START), table.column(PROJECTED_DURATION)),
    };
    let device = table.column(&["device", "device_id"]);
    let context = table.column(&["context", "context_id", "ctx"]);
    let stream = table.column(&["stream", "stream_id", "strm"]);
    let correlation = table.column(&["correlation_id", "corrid", "corr_id"]);
    let operations = table.column(&["num_gpu_ops", "numgpuops", "gpu_operations"]);
    let mut rows = table.rows(&name, |row, name| {
        let text = |column| row.text(column).map(|text| text.to_owned().into());
        let (projected_start_ns, projected_duration_ns) = match is_range {
            true => {
                (Some(row.needed(&projected_start)?), Some(row.time(&projected_duration, &name)?))
            }
            false => (row.number(&projected_start)?, row.number(&projected_duration)?),
        };
        Ok(GpuTimelineRow {
            kind: kind.into(),
            device: text(&device),
            context: text(&context),
            stream: text(&stream),
            correlation_id: text(&correlation),
            semantic_key: is_range.then(|| name.clone().into()),
            start_ns: row.needed(&start)?,
            duration_ns: row.time(&duration, &name)?,
            projected_start_ns,
            projected_duration_ns,
            gpu_operations: row.number(&operations)?,
            name: name.into(),
        })
    })?;
    rows.sort_by_key(|row| row.start_ns);
    Ok(rows)
}
