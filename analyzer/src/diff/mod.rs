//! What is different between two invocations: where the time went, and which statistics moved.
//!
//! Guarantees:
//!
//! - Spans and operations are aligned by the path of their names below the root. Siblings of one name
//!   are added up and counted; nothing is guessed.
//! - What one side lacks while evidence of it is missing there is said to be under that gap.
//! - Times are those inside the measured region, so that what is around it, or goes on beside it,
//!   counts with its part of that.
//! - Rows are in the order of how much they changed, so that the first ones explain the difference.
//! - Time and memory grow with the two traces, and with the logarithm where rows are sorted.

mod missing;
mod paths;
mod side;
mod stats;

use rayon::join;
use serde::Serialize;

use crate::evidence::{EvidenceError, Index};
use crate::query::{Bounded, TOOL, Tool};
use crate::source::Subject;
use missing::Missing;
pub use missing::UnderGap;
pub use paths::{PathRow, PathSide};
pub use side::SideRow;
pub use stats::{Pooled, StatsRow};

/// The label of the document.
pub const DIFF_SCHEMA: &str = "tmrun/diff/1";

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The first one.
    A,
    /// The second one.
    B,
}

/// What is different between two invocations.
#[derive(Debug, Serialize)]
pub struct Diff<'d> {
    /// [`DIFF_SCHEMA`].
    pub schema: &'static str,
    /// This program.
    pub tool: Tool,
    /// The first one.
    pub a: SideRow<'d>,
    /// The second one.
    pub b: SideRow<'d>,
    /// How much longer the measured region of the second one is, where both have one that ended.
    pub change_ns: Option<i64>,
    /// Spans and operations that differ in their own time or their number, the greatest change first.
    pub spans: Rows<PathRow<'d>>,
    /// Statistics that differ: in what is not finite first, then by how many times.
    pub statistics: Rows<StatsRow<'d>>,
}

/// Rows that differ, and how many do not.
#[derive(Debug, Serialize)]
pub struct Rows<T> {
    /// How many are the same on both sides.
    pub same: usize,
    /// Those that differ.
    #[serde(flatten)]
    pub rows: Bounded<T>,
}

/// Holds the second invocation against the first; `limit` is the most rows of a list.
///
/// # Errors
///
/// A trace of too many events.
pub fn diff<'d>([a, b]: [&'d Subject<'d>; 2], limit: usize) -> Result<Diff<'d>, EvidenceError> {
    let (index_a, index_b) = join(|| Index::of(a.trace()), || Index::of(b.trace()));
    let (index_a, index_b) = (index_a?, index_b?);
    let missing = [Missing::of(a), Missing::of(b)];
    let ((side_a, side_b), (spans, statistics)) = join(
        || join(|| side::of(a, &index_a), || side::of(b, &index_b)),
        || {
            join(
                || paths::of([(a, &index_a), (b, &index_b)], &missing, limit),
                || stats::of([a, b], &missing, limit),
            )
        },
    );
    let change = side_a.wall_ns.zip(side_b.wall_ns).map(|(a, b)| signed(a, b));
    Ok(Diff {
        schema: DIFF_SCHEMA,
        tool: TOOL,
        a: side_a,
        b: side_b,
        change_ns: change,
        spans,
        statistics,
    })
}

/// How much greater `b` is.
fn signed(a: u64, b: u64) -> i64 {
    let size = i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX);
    if b < a { size.saturating_neg() } else { size }
}
