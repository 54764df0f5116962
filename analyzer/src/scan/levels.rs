//! The level over time, and what it did not ask for.

use tmrun_formats::wire::{Kind, LevelChange};
use tmrun_formats::{GapClass, GapReason, Level, Planes, Ticks};

use super::gaps::{Gap, GapList};

/// More changes of the level than this are not kept one by one.
const KEEP: usize = 1 << 16;

/// The changes of the level, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    changes: Vec<LevelChange>,
    /// Changes beyond those that are kept: of what lies behind, only the least level is known.
    pub unkept: u64,
}

impl Levels {
    pub(super) fn push(&mut self, change: LevelChange) {
        if self.changes.len() < KEEP {
            self.changes.push(change);
            return;
        }
        self.unkept = self.unkept.saturating_add(1);
        if let Some(last) = self.changes.last_mut() {
            last.new = last.new.min(change.new);
        }
    }

    pub(super) fn finish(&mut self) {
        self.changes.sort_by_key(|change| (change.asked, change.armed));
    }

    /// The changes; the first one states the level at the start.
    pub fn changes(&self) -> &[LevelChange] {
        &self.changes
    }

    /// The level in force at the end; `None` when no change is in the file.
    pub fn last(&self) -> Option<Level> {
        self.changes.last().map(|change| change.new)
    }

    /// The stretches up to `end` in which the level did not ask for a plane: raised coverage begins
    /// at `armed`, lowered coverage ends at `asked`. Where a change is missing (the next one starts
    /// from another level), the lower of the two counts.
    pub(super) fn not_requested(&self, end: Ticks, gaps: &mut GapList) {
        let mut stretches: Vec<(Ticks, Ticks, Planes)> = Vec::new();
        for level in (Level::PULSE.0..=Level::MAX.0).map(Level) {
            let planes = planes_of(level);
            if planes != Planes::NONE {
                self.below(level, end, |first, last| stretches.push((first, last, planes)));
            }
        }
        stretches.sort_by_key(|&(first, last, _)| (first, last));
        let same =
            |a: &(Ticks, Ticks, Planes), b: &(Ticks, Ticks, Planes)| (a.0, a.1) == (b.0, b.1);
        for chunk in stretches.chunk_by(same) {
            let planes = chunk.iter().fold(Planes::NONE, |all, (.., planes)| all.union(*planes));
            if let Some(&(first, last, _)) = chunk.first() {
                let gap = Gap::lost(GapReason::LEVEL, None, (first, last), 0);
                gaps.push(Gap { class: GapClass::NotRequested, planes, ..gap });
            }
        }
    }

    /// The stretches in which the level lies below `level`.
    fn below(&self, level: Level, end: Ticks, mut stretch: impl FnMut(Ticks, Ticks)) {
        let mut open = None;
        for (i, change) in self.changes.iter().enumerate() {
            let next = self.changes.get(i.saturating_add(1));
            let in_force = next.map_or(change.new, |next| change.new.min(next.old));
            match open {
                None if in_force < level => open = Some(change.asked),
                Some(first) if in_force >= level => {
                    stretch(first, change.armed.max(first));
                    open = None;
                }
                _ => {}
            }
        }
        if let Some(first) = open {
            stretch(first, end.max(first));
        }
    }
}

/// The planes that are asked for in full at this level and not below it: the greatest level of any
/// of their kinds. (Step marks alone, at level 0, are not the whole of host time.)
fn planes_of(level: Level) -> Planes {
    let needs = |plane: Planes| {
        Kind::ALL.iter().filter(|kind| kind.plane() == plane).map(|kind| kind.level()).max()
    };
    let of_level = |kind: &&Kind| needs(kind.plane()) == Some(level);
    Kind::ALL.iter().filter(of_level).fold(Planes::NONE, |all, kind| all.union(kind.plane()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(asked: u64, armed: u64, old: Level, new: Level) -> LevelChange {
        LevelChange { asked: Ticks(asked), armed: Ticks(armed), old, new, ..Default::default() }
    }

    fn stretches(changes: &[LevelChange], level: Level) -> Vec<(u64, u64)> {
        let mut levels = Levels::default();
        changes.iter().for_each(|&change| levels.push(change));
        levels.finish();
        let mut found = Vec::new();
        levels.below(level, Ticks(1000), |first, last| found.push((first.0, last.0)));
        found
    }

    #[test]
    fn raised_coverage_begins_when_armed_and_lowered_ends_when_asked() {
        let changes = [
            change(0, 1, Level::TIMING, Level::TIMING),
            change(100, 110, Level::TIMING, Level::METADATA),
            change(200, 210, Level::METADATA, Level::PULSE),
        ];
        assert_eq!(stretches(&changes, Level::METADATA), [(0, 110), (200, 1000)]);
        assert_eq!(stretches(&changes, Level::TIMING), [(200, 1000)]);
        assert_eq!(stretches(&changes, Level::NUMERICS), [(0, 1000)]);
        assert_eq!(stretches(&changes, Level::PULSE), []);
    }

    #[test]
    fn where_a_change_is_missing_the_lower_level_counts() {
        let changes = [
            change(0, 1, Level::METADATA, Level::METADATA),
            change(500, 510, Level::PULSE, Level::METADATA),
        ];
        assert_eq!(stretches(&changes, Level::METADATA), [(0, 510)]);
    }

    #[test]
    fn a_level_asks_for_a_plane_when_it_asks_for_all_of_its_kinds() {
        let timing = planes_of(Level::TIMING);
        assert!(timing.contains(Planes::HOST_TIME) && timing.contains(Planes::OPERATIONS));
        assert!(planes_of(Level::METADATA).contains(Planes::TENSORS));
        assert_eq!(planes_of(Level::NUMERICS), Planes::STATISTICS);
    }

    #[test]
    fn a_flood_of_changes_is_counted_and_claims_no_coverage() {
        let mut levels = Levels::default();
        for i in 0..KEEP as u64 + 5 {
            let new = if i == KEEP as u64 + 2 { Level::PULSE } else { Level::NUMERICS };
            levels.push(change(i, i, Level::NUMERICS, new));
        }
        assert_eq!((levels.changes().len(), levels.unkept), (KEEP, 5));
        assert_eq!(levels.last(), Some(Level::PULSE));
    }
}
