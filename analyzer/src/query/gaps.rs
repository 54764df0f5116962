//! What is missing, and why.

use std::borrow::Cow;

use serde::Serialize;
use tmrun_formats::evidence::Evidence;

use super::page::{Bounded, Page, Paged};
use crate::scan::{Gap, Recording};
use crate::source::Subject;

/// Rows of the other lists.
const ROWS: usize = 50;

/// Gaps, and what follows from them.
#[derive(Debug, Serialize)]
pub struct GapRows<'e> {
    /// The gaps; not there where nobody has the recording.
    #[serde(flatten)]
    pub gaps: Option<Paged<&'e Gap>>,
    /// Records that are lost in them, as far as somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_records: Option<u64>,
    /// Planes that the run declared to be complete and that are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuted: Option<Vec<RefutedRow<'e>>>,
    /// What the evidence of the invocation cannot say, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Bounded<&'e Cow<'e, str>>>,
}

/// A claim that was taken back.
#[derive(Debug, Serialize)]
pub struct RefutedRow<'e> {
    /// The plane.
    pub plane: &'e str,
    /// What was declared.
    pub declared: &'static str,
    /// What holds instead.
    pub instead: &'static str,
    /// Why, for people.
    pub because: &'e str,
}

/// The gaps of a whole recording.
pub fn of_recording<'e>(page: Page, recording: &'e Recording<'_>) -> GapRows<'e> {
    rows(page, recording.gaps())
}

/// Those of one invocation.
pub(super) fn of_trace<'e>(
    page: Page,
    subject: &'e Subject<'_>,
    evidence: &'e Evidence<'e>,
) -> GapRows<'e> {
    let unanswered = Some(Bounded::of(&evidence.gaps, ROWS));
    let Some(told) = &subject.told else {
        return GapRows { gaps: None, lost_records: None, refuted: None, unanswered };
    };
    let refuted = told.refuted.iter().map(|one| RefutedRow {
        plane: one.plane,
        declared: one.declared.name(),
        instead: one.instead.name(),
        because: &one.because,
    });
    GapRows { refuted: Some(refuted.collect()), unanswered, ..rows(page, &told.gaps) }
}

fn rows(page: Page, gaps: &[Gap]) -> GapRows<'_> {
    let lost = gaps.iter().filter(|gap| gap.class == tmrun_formats::GapClass::Lost);
    let lost_records = lost.fold(0_u64, |sum, gap| sum.saturating_add(gap.records));
    GapRows {
        gaps: Some(page.cut(gaps.len(), gaps.iter().collect())),
        lost_records: Some(lost_records),
        refuted: None,
        unanswered: None,
    }
}
