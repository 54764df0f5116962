//! One of the two, in a few numbers.

use serde::Serialize;
use tmrun_formats::trace::RunOutcome;

use crate::evidence::{Index, Link, health};
use crate::query::Bounded;
use crate::scan::Gap;
use crate::source::{Subject, SubjectInput};

/// The most gaps that are listed.
const GAPS: usize = 50;

/// One of the two.
#[derive(Debug, Serialize)]
pub struct SideRow<'d> {
    /// Where it is from.
    pub input: SubjectInput<'d>,
    /// Its run.
    pub run_id: &'d str,
    /// How long the measured region took, where it ended.
    pub wall_ns: Option<u64>,
    /// Whether the capture is complete; the times of a failed one break off.
    pub capture_complete: bool,
    /// Whether the trace holds together; the times of one that does not need not mean anything.
    pub structurally_valid: bool,
    /// How many spans it has.
    pub spans: usize,
    /// How many operations.
    pub operations: usize,
    /// How many statistics.
    pub statistics: usize,
    /// How many spans have no path, as following their parents never ends: they are held against
    /// nothing.
    pub spans_without_path: usize,
    /// How many operations are of such a span, or of none that there is.
    pub operations_without_path: usize,
    /// What is missing of it; `None` where nobody has the recording.
    pub gaps: Option<Bounded<&'d Gap>>,
    /// Records that are lost, as far as somebody counted.
    pub lost_records: Option<u64>,
}

pub(super) fn of<'d>(subject: &'d Subject<'d>, index: &Index<'_>) -> SideRow<'d> {
    let trace = subject.trace();
    let measured = index.tree.measured.first();
    let measured = measured.and_then(|&span| trace.spans.get(span as usize));
    let cyclic = &index.tree.cyclic;
    let has_no_path = |span: Link| span.of(cyclic).is_none_or(|&is| is);
    let lost = subject.lost().fold(0_u64, |sum, gap| sum.saturating_add(gap.records));
    SideRow {
        input: subject.input,
        run_id: &trace.run.run_id,
        wall_ns: measured.and_then(|span| span.duration_ns),
        capture_complete: trace.terminal.outcome == RunOutcome::Complete,
        structurally_valid: health::of(trace, index).structurally_valid,
        spans: trace.spans.len(),
        operations: trace.ops.len(),
        statistics: trace.tensor_stats.len(),
        spans_without_path: cyclic.iter().filter(|&&is| is).count(),
        operations_without_path: index.op_spans.iter().filter(|&&span| has_no_path(span)).count(),
        gaps: subject.told.as_ref().map(|told| Bounded::of(&told.gaps, GAPS)),
        lost_records: subject.told.as_ref().map(|_| lost),
    }
}
