//! Whether what one side lacks may be missing from it.

use serde::Serialize;
use tmrun_formats::{GapClass, Planes};

use super::Which;
use crate::scan::Gap;
use crate::source::Subject;

/// A gap that may hold what one side lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnderGap {
    /// The side that has the gap.
    pub side: Which,
    /// Whether that evidence was lost, or not asked for.
    pub class: &'static str,
    /// Why it is missing.
    pub reason: String,
    /// The lane that it is missing from, where that is known.
    pub lane: Option<u16>,
    /// How many records are missing; 0 also where nobody counted.
    pub records: u64,
}

/// The gaps of one side, by what may be missing in them.
#[derive(Debug)]
pub(super) struct Missing {
    spans: Reach,
    operations: Reach,
    statistics: Reach,
}

impl Missing {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let reach = |planes| Reach::of(subject, planes);
        Self {
            spans: reach(Planes::HOST_TIME),
            operations: reach(Planes::OPERATIONS),
            statistics: reach(Planes::STATISTICS.union(Planes::SCALARS)),
        }
    }

    /// A gap in which spans or operations of some time may be missing.
    pub(super) fn at(&self, side: Which, is_op: bool, time: (u64, u64)) -> Option<UnderGap> {
        let reach = if is_op { &self.operations } else { &self.spans };
        Some(under(side, reach.overlapping(time)?))
    }

    /// A gap in which statistics may be missing.
    pub(super) fn of_statistics(&self, side: Which) -> Option<UnderGap> {
        Some(under(side, self.statistics.overlapping((0, u64::MAX))?))
    }
}

fn under(side: Which, gap: &Gap) -> UnderGap {
    UnderGap {
        side,
        class: gap.class.name(),
        reason: gap.reason_name().into_owned(),
        lane: gap.lane.map(|lane| lane.0),
        records: gap.records,
    }
}

/// Gaps in nanoseconds of the trace, to be asked which of them reaches into a stretch.
#[derive(Debug)]
struct Reach {
    /// By beginning: that, and of this gap and all before it the one that ends last.
    gaps: Vec<(u64, u64, Gap)>,
}

impl Reach {
    fn of(subject: &Subject<'_>, planes: Planes) -> Self {
        let origin = subject.zero_ns.unwrap_or(0);
        let touches = |gap: &&Gap| gap.planes == Planes::NONE || gap.planes.0 & planes.0 != 0;
        let mut gaps: Vec<(u64, u64, Gap)> = subject
            .gaps()
            .iter()
            .filter(touches)
            .map(|gap| {
                let at = |ns: u64| ns.saturating_sub(origin);
                (at(gap.first_ns), at(gap.last_ns), *gap)
            })
            .collect();
        // Where two reach as far, the one that is lost says more.
        gaps.sort_by_key(|(first, last, gap)| (*first, gap.class != GapClass::Lost, *last));
        let mut furthest: Option<(u64, Gap)> = None;
        for (_, last, gap) in &mut gaps {
            match furthest {
                Some((before, of)) if before >= *last => (*last, *gap) = (before, of),
                _ => furthest = Some((*last, *gap)),
            }
        }
        Self { gaps }
    }

    fn overlapping(&self, (from, to): (u64, u64)) -> Option<&Gap> {
        let begun = self.gaps.partition_point(|(first, ..)| *first <= to);
        let (_, last, gap) = self.gaps.get(begun.checked_sub(1)?)?;
        (*last >= from).then_some(gap)
    }
}
