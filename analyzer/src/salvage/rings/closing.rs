//! What the result says beyond the records that were stored: gaps of what is missing, and changes of
//! levels and foci that no record tells of.

use tmrun_formats::rings::{MissedImage, WaitingChanges};
use tmrun_formats::wire::{Gap, LevelChange, Record, RecordHeader};
use tmrun_formats::{GapReason, LaneId, Level, NameId, Planes, Ticks};

use super::names::NameTable;
use super::{Process, Rings};
use crate::scan::{Recording, every_plane};

/// A record of the recorder's lane that the result has and nobody stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Closing {
    Gap(Gap),
    /// A change of this focus, or of the level of every node.
    Level(NameId, LevelChange),
}

impl Closing {
    pub(super) fn record(&self, position: u64) -> Record {
        let seq = position as u32;
        match self {
            Self::Gap(gap) => {
                let header = RecordHeader::of::<Gap>(Level::PULSE);
                Record::new(RecordHeader { ticks: gap.first, seq, ..header }, gap)
            }
            Self::Level(name, change) => {
                let header = RecordHeader::of::<LevelChange>(Level::PULSE);
                Record::new(
                    RecordHeader { ticks: change.asked, name: *name, seq, ..header },
                    change,
                )
            }
        }
    }
}

/// The moments that a process which died may have seen. A page that anybody may have written to is
/// believed of no other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    /// The first reading of the clock.
    first: Ticks,
    /// The last moment that is known: of a record, or of a reading of the clock.
    pub(super) last: Ticks,
    /// The latest that is believed.
    latest: Ticks,
}

/// Between two readings of the clock it is a second. A recorder that was kept from its work for longer
/// than this many has looked at nothing meanwhile.
const SECONDS: u64 = 60;

impl Moments {
    /// `greatest` is of the records.
    pub(super) fn of(rings: &Rings<'_>, drained: Option<&Recording<'_>>, greatest: Ticks) -> Self {
        let readings = || rings.clock().map(|reading| reading.ticks);
        let least = drained.and_then(|drained| drained.span()).map(|span| span.0);
        let last = readings().fold(greatest, Ticks::max);
        let first = readings().chain(least).fold(last, Ticks::min);
        let rate = rings.header.ticks_per_second;
        let latest = Ticks(last.0.saturating_add(rate.saturating_mul(SECONDS)));
        Self { first, last, latest }
    }

    /// From when to when records that found no lane may have come.
    fn of_missed(&self, missed: &MissedImage) -> (Ticks, Ticks) {
        let MissedImage { since, looked, .. } = *missed;
        let is_believed = since.0 != 0 && since <= looked && looked <= self.latest;
        if is_believed { (since, looked.max(self.last)) } else { (self.first, self.last) }
    }

    /// When a change had been made. One that was not, or of which nobody knows when it was, was by the
    /// end at the latest.
    fn armed(&self, asked: Ticks, armed: Ticks) -> Ticks {
        if asked <= armed && armed <= self.latest { armed } else { self.last.max(asked) }
    }
}

/// The gap of so many records and groups that found no lane.
pub(super) fn missed(image: &MissedImage, records: u64, groups: u64, moments: &Moments) -> Gap {
    let (first, last) = moments.of_missed(image);
    let known = every_plane().without(every_plane().without(image.planes));
    Gap {
        first,
        last,
        records,
        groups,
        planes: if known == Planes::NONE { every_plane() } else { known },
        lane: LaneId::RECORDER,
        reason: GapReason::NO_LANE,
    }
}

/// What a mapped page says of changes that no record may tell of.
pub(super) struct Changes {
    /// In order, those of which none is known to.
    waiting: Vec<(NameId, LevelChange)>,
    /// Changes that found no room.
    lost: u64,
    /// Changes that cannot be read; `None` when nobody knows how many there are.
    damaged: Option<u64>,
}

impl Changes {
    pub(super) fn of(rings: &Rings<'_>, names: &NameTable<'_>, process: Process) -> Self {
        let area = rings.header.part(rings.bytes, rings.header.changes, WaitingChanges::SIZE);
        let Some(changes) = WaitingChanges::read(area) else {
            return Self { waiting: Vec::new(), lost: 0, damaged: None };
        };
        let is_known = |focus: NameId| focus.is_none() || !names.text(focus).is_empty();
        let (mut waiting, mut damaged) = (Vec::new(), 0_u64);
        for cell in changes.kept() {
            match cell.filter(|cell| is_known(cell.focus)) {
                Some(cell) => waiting.push((cell.focus, cell.change)),
                // Of a process that is there the cell may have gone on to a later change.
                None if process == Process::There => {}
                None => damaged = damaged.saturating_add(1),
            }
        }
        Self { waiting, lost: changes.lost(), damaged: Some(damaged) }
    }

    /// A record of the result tells of this change: the process died before it could say so.
    pub(super) fn told(&mut self, focus: NameId, change: &LevelChange) {
        let key = |change: &LevelChange| (change.asked, change.old, change.new, change.source);
        let is_it = |(of, it): &(NameId, LevelChange)| *of == focus && key(it) == key(change);
        if let Some(at) = self.waiting.iter().position(is_it) {
            self.waiting.remove(at);
        }
    }

    /// What the recorder would have stored of them.
    pub(super) fn closing(&self, moments: &Moments) -> Vec<Closing> {
        let changes = self.waiting.iter().map(|&(focus, change)| {
            let armed = moments.armed(change.asked, change.armed);
            Closing::Level(focus, LevelChange { armed, ..change })
        });
        let gap = |records, first, reason| Gap {
            first,
            last: moments.last.max(first),
            records,
            groups: records,
            planes: Planes::RECORDER,
            lane: LaneId::RECORDER,
            reason,
        };
        let after = self.waiting.last().map_or(moments.first, |(_, change)| change.asked);
        let lost = (self.lost > 0).then(|| gap(self.lost, after, GapReason::OVERRUN));
        let damaged = match self.damaged {
            Some(0) => None,
            Some(damaged) => Some(gap(damaged, moments.first, GapReason::CORRUPT)),
            None => Some(gap(0, moments.first, GapReason::CORRUPT)),
        };
        changes.chain(lost.map(Closing::Gap)).chain(damaged.map(Closing::Gap)).collect()
    }
}
