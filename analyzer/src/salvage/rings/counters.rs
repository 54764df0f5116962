//! What Gap records tell of drops, and what is left to tell.

use std::collections::BTreeMap;

use tmrun_formats::wire::{Gap, Kind, Record};
use tmrun_formats::{GapReason, LaneId, Planes, Ticks};

use super::Rings;
use super::ring::Ring;
use crate::scan::Recording;

/// Records and groups that Gap records tell of.
#[derive(Default)]
pub(super) struct Counters {
    overrun: BTreeMap<LaneId, (u64, u64)>,
    /// Those without a lane, of earlier files too.
    no_lane: (u64, u64),
    last: Ticks,
}

impl Counters {
    pub(super) fn of(drained: Option<&Recording<'_>>) -> Self {
        let part = drained.and_then(|drained| drained.meta().part);
        let no_lane = part.map(|part| (part.no_lane_records, part.no_lane_groups));
        let mut counters = Self { no_lane: no_lane.unwrap_or_default(), ..Self::default() };
        for chunk in drained.into_iter().flat_map(Recording::record_chunks) {
            chunk.records().iter().for_each(|record| counters.take(record));
        }
        counters
    }

    /// A record of the result.
    pub(super) fn take(&mut self, record: &Record) {
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
        self.last = self.last.max(gap.last);
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
    pub(super) fn missed(&self, rings: &Rings<'_>) -> Option<Gap> {
        let header = &rings.header;
        let at = |offset: u64| {
            let bytes = header.part(rings.bytes, offset, 4).first_chunk();
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let since = |now: u64, base: u64| u64::from(at(now).wrapping_sub(at(base)));
        let (counters, base) = (header.no_lane, header.no_lane_base);
        let records = since(counters, base).saturating_sub(self.no_lane.0);
        let groups = since(counters.saturating_add(4), base.saturating_add(4));
        (records > 0).then(|| Gap {
            first: self.last,
            last: self.last,
            records,
            groups: groups.saturating_sub(self.no_lane.1),
            planes: Planes(at(counters.saturating_add(8))),
            lane: LaneId::RECORDER,
            reason: GapReason::NO_LANE,
        })
    }
}
