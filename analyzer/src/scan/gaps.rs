//! Gaps: evidence that is missing, with its reason, its time range and its count.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use tmrun_formats::wire::{self, Kind};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes, Ticks};

use super::Clock;

/// Evidence that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Whether it was asked for at all.
    pub class: GapClass,
    /// Why it is missing.
    pub reason: GapReason,
    /// The lane that it is missing from; `None` when it belongs to no lane, or none that is known.
    pub lane: Option<LaneId>,
    /// The earliest moment at which something may be missing.
    pub first: Ticks,
    /// The latest.
    pub last: Ticks,
    /// `first` in nanoseconds since the first calibration.
    pub first_ns: u64,
    /// `last` in nanoseconds since the first calibration.
    pub last_ns: u64,
    /// Records that are missing; 0 also when nobody counted them.
    pub records: u64,
    /// Groups that are missing; 0 also when nobody counted them.
    pub groups: u64,
    /// Kinds of evidence that may be missing.
    pub planes: Planes,
}

impl Gap {
    /// A gap as a record tells it.
    pub(crate) fn recorded(gap: &wire::Gap) -> Self {
        // A record that found no lane was of no lane, whatever the field says; of damaged bytes that
        // nobody counted nobody may know the lane.
        let no_lane = match gap.reason {
            GapReason::NO_LANE => true,
            GapReason::CORRUPT | GapReason::TORN => {
                gap.lane == LaneId::RECORDER && gap.records == 0
            }
            _ => false,
        };
        let lane = (!no_lane).then_some(gap.lane);
        let range = (gap.first.min(gap.last), gap.first.max(gap.last));
        let counted = Self::lost(gap.reason, lane, range, gap.records);
        Self { class: gap.reason.class(), groups: gap.groups, planes: gap.planes, ..counted }
    }

    /// A lost gap of unknown planes, which may therefore be any.
    pub(crate) fn lost(
        reason: GapReason,
        lane: Option<LaneId>,
        (first, last): (Ticks, Ticks),
        records: u64,
    ) -> Self {
        Self {
            class: GapClass::Lost,
            reason,
            lane,
            first,
            last,
            first_ns: 0,
            last_ns: 0,
            records,
            groups: 0,
            planes: every_plane(),
        }
    }

    /// Whether metadata may be what is missing.
    pub(crate) fn may_be_metadata(&self) -> bool {
        let is_damage = matches!(self.reason, GapReason::CORRUPT | GapReason::TORN);
        is_damage && self.lane.is_none() && self.planes.contains(Planes::RECORDER)
    }

    /// Appends the gap as a JSON object.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        // Neither a list of bytes nor a gap refuses anything.
        let _ = serde_json::to_writer(&mut *out, self);
    }

    /// What the reason is called in every output.
    pub fn reason_name(&self) -> Cow<'static, str> {
        match self.reason.name() {
            Some(name) => name.into(),
            None => format!("unknown-{}", self.reason.0).into(),
        }
    }
}

impl Serialize for Gap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut gap = serializer.serialize_struct("Gap", 8)?;
        gap.serialize_field("class", self.class.name())?;
        gap.serialize_field("reason", &self.reason_name())?;
        gap.serialize_field("lane", &self.lane.map(|lane| lane.0))?;
        gap.serialize_field("first_ns", &self.first_ns)?;
        gap.serialize_field("last_ns", &self.last_ns)?;
        gap.serialize_field("records", &self.records)?;
        gap.serialize_field("groups", &self.groups)?;
        gap.serialize_field("planes", &self.planes.names().collect::<Vec<_>>())?;
        gap.end()
    }
}

/// Every plane that some kind of record is evidence for.
pub(crate) fn every_plane() -> Planes {
    Kind::ALL.iter().fold(Planes::NONE, |all, kind| all.union(kind.plane()))
}

/// A list of gaps of bounded length. Beyond the limit a gap is added to the last one of the same
/// reason and lane, which then spans both and counts both: nothing goes uncounted.
#[derive(Debug, Clone)]
pub(super) struct GapList {
    gaps: Vec<Gap>,
    limit: usize,
    merged: u64,
    places: HashMap<(GapReason, Option<LaneId>), usize>,
}

impl GapList {
    pub(super) fn new(limit: usize) -> Self {
        Self { gaps: Vec::new(), limit, merged: 0, places: HashMap::new() }
    }

    pub(super) fn push(&mut self, mut gap: Gap) {
        if self.gaps.len() >= self.limit.saturating_mul(2) {
            // So many reasons and lanes that even one gap of each is too many: lanes are given up.
            gap.lane = None;
        }
        if self.gaps.len() >= self.limit {
            let place = self.places.get(&(gap.reason, gap.lane)).copied();
            if let Some(into) = place.and_then(|at| self.gaps.get_mut(at)) {
                into.first = into.first.min(gap.first);
                into.last = into.last.max(gap.last);
                into.records = into.records.saturating_add(gap.records);
                into.groups = into.groups.saturating_add(gap.groups);
                into.planes = into.planes.union(gap.planes);
                self.merged = self.merged.saturating_add(1);
                return;
            }
        }
        self.places.insert((gap.reason, gap.lane), self.gaps.len());
        self.gaps.push(gap);
    }

    /// Whether one of them may be of metadata.
    pub(super) fn lacks_metadata(&self) -> bool {
        self.gaps.iter().any(Gap::may_be_metadata)
    }

    pub(super) fn append(&mut self, other: Self) {
        self.merged = self.merged.saturating_add(other.merged);
        other.gaps.into_iter().for_each(|gap| self.push(gap));
    }

    /// The gaps in order of time, with their nanoseconds, and how many were added to another.
    pub(super) fn finish(mut self, clock: &Clock<'_>) -> (Vec<Gap>, u64) {
        for gap in &mut self.gaps {
            gap.first_ns = clock.ns(gap.first);
            gap.last_ns = clock.ns(gap.last);
        }
        self.gaps.sort_by_key(|gap| (gap.first, gap.last, gap.class, gap.reason, gap.lane));
        (self.gaps, self.merged)
    }
}
