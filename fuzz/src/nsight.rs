//! Tables of Nsight.

use tmrun::nsight::{correlate, phases, summary, timeline};
use tmrun_formats::evidence::GpuRowKind::{GpuOperation, NvtxRange};
use tmrun_formats::evidence::GpuTimelineRow;
use tmrun_formats::trace::CaptureContract;

/// Any bytes, read as each of the tables. One that is a table of ranges and of work is joined with
/// itself, which comes to what each against each comes to.
pub fn nsight_csv(data: &[u8]) {
    if let Ok(rows) = summary(data) {
        assert!(rows.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
        assert!(rows.iter().all(|row| !row.name.trim().is_empty()));
    }
    let [ranges, work] = [NvtxRange, GpuOperation].map(|kind| timeline(data, kind).ok());
    for rows in [&ranges, &work].into_iter().flatten() {
        assert!(rows.is_sorted_by_key(|row| row.start_ns));
        assert!(rows.iter().all(|row| row.duration_ns > 0));
    }
    let (Some(ranges), Some(work)) = (ranges, work) else { return };
    let names = ranges.iter().map(|range| range.name.to_string());
    let contract =
        CaptureContract { required_semantic_labels: names.collect(), ..Default::default() };
    let correlation = correlate(&contract, &ranges, &work);
    assert_eq!(correlation.ledger.expected, correlation.ledger.observed);
    assert!(ranges.is_empty() || correlation.reason.is_some());
    if ranges.len() <= 300 {
        let expected: Vec<_> = ranges.iter().filter_map(|range| busy(range, &work)).collect();
        let found = phases(&ranges, &work).into_iter();
        let found: Vec<_> =
            found.map(|phase| (phase.gpu_operation_count, phase.gpu_busy_ns)).collect();
        assert_eq!(found, expected);
    }
}

/// How much work a range has and how long that takes, where it has as much as it says.
fn busy(range: &GpuTimelineRow<'_>, work: &[GpuTimelineRow<'_>]) -> Option<(u64, u64)> {
    let keys = |row: &GpuTimelineRow<'_>| {
        [&row.correlation_id, &row.device, &row.context, &row.stream]
            .map(|key| key.as_deref().map(str::to_owned))
    };
    let wanted = keys(range);
    wanted.iter().flatten().next()?;
    let start = range.projected_start_ns?;
    let end = start.saturating_add(range.projected_duration_ns?);
    let mut times = Vec::new();
    for row in work {
        let matches =
            wanted.iter().zip(keys(row)).all(|(wanted, key)| wanted.is_none() || *wanted == key);
        let until = row.start_ns.saturating_add(row.duration_ns);
        if matches && row.start_ns < end && until > start {
            times.push((row.start_ns.max(start), until.min(end)));
        }
    }
    times.sort_unstable();
    let (mut busy, mut covered) = (0, 0);
    for &(from, until) in &times {
        busy += until.saturating_sub(from.max(covered));
        covered = covered.max(until);
    }
    let count = times.len() as u64;
    (range.gpu_operations? == count).then_some((count, busy))
}
