//! What records tell of drops and of levels, and what is left to tell.

use std::collections::BTreeMap;

use tmrun_formats::rings::MissedImage;
use tmrun_formats::wire::{Gap, Kind, LevelChange, Record};
use tmrun_formats::{GapReason, LaneId, Planes};

use super::Rings;
use super::closing::{self, Changes, Moments};
use super::ring::Ring;
use crate::scan::Recording;

/// Records and groups that Gap records tell of, and changes that no record does.
pub(super) struct Counters {
    overrun: BTreeMap<LaneId, (u64, u64)>,
    /// Those without a lane, of earlier files too.
    no_lane: (u64, u64),
    pub(super) changes: Changes,
}

impl Counters {
    pub(super) fn of(drained: Option<&Recording<'_>>, changes: Changes) -> Self {
        let part = drained.and_then(|drained| drained.meta().part);
        let no_lane = part.map(|part| (part.no_lane_records, part.no_lane_groups));
        let (overrun, no_lane) = (BTreeMap::new(), no_lane.unwrap_or_default());
        let mut counters = Self { overrun, no_lane, changes };
        for chunk in drained.into_iter().flat_map(Recording::record_chunks) {
            chunk.records().iter().for_each(|record| counters.take(record));
        }
        counters
    }

    /// A record of the result.
    pub(super) fn take(&mut self, record: &Record) {
        if let Some(change) = record.payload::<LevelChange>() {
            self.changes.told(record.header().name, &change);
        }
        if record.kind() != Some(Kind::Gap) {
            return;
        }
        let Some(gap) = record.payload::<Gap>() else { return };
        let told = match gap.reason {
            GapReason::OVERRUN => self.overrun.entry(gap.lane).or_default(),
            GapReason::NO_LANE => &mut self.no_lane,
            _ => return,
        };
        told.0 = told.0.saturating_add(gap.records);
        told.1 = told.1.saturating_add(gap.groups);
    }

    /// The drops of a lane that nothing tells of yet.
    pub(super) fn closing(&self, lane: LaneId, ring: &Ring<'_>) -> Option<Gap> {
        let (told, told_groups) = self.overrun.get(&lane).copied().unwrap_or_default();
        let (records, groups) = ring.dropped();
        let records = records.saturating_sub(told);
        let (first, last) = ring.image().drops_at;
        (records > 0).then(|| Gap {
            first,
            last,
            records,
            groups: groups.saturating_sub(told_groups),
            planes: Planes(ring.image().drop_planes as u32),
            lane,
            reason: GapReason::OVERRUN,
        })
    }

    /// The records without a lane that nothing tells of yet.
    pub(super) fn missed(&self, rings: &Rings<'_>, moments: &Moments) -> Option<Gap> {
        let area = rings.header.part(rings.bytes, rings.header.no_lane, MissedImage::SIZE);
        let image = MissedImage::read(area);
        let since =
            |now: u32, base: u32, told| u64::from(now.wrapping_sub(base)).saturating_sub(told);
        let records = since(image.records, image.base.0, self.no_lane.0);
        let groups = since(image.groups, image.base.1, self.no_lane.1);
        (records > 0).then(|| closing::missed(&image, records, groups, moments))
    }
}
