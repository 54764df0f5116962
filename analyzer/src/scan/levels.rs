//! The level and the foci over time, and what they did not ask for.

use tmrun_formats::wire::{Kind, LevelChange};
use tmrun_formats::{GapClass, GapReason, Level, NameId, Planes, Ticks};

use super::gaps::{Gap, GapList};

/// More changes of the level, or of foci, than this are not kept one by one.
const KEEP: usize = 1 << 16;

/// The changes of the level and of the foci, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    changes: Vec<LevelChange>,
    foci: Vec<FocusChange>,
    /// From here on changes of foci are not kept.
    foci_until: Option<Ticks>,
    /// Changes beyond those that are kept: of what lies behind, only the least level is known, and
    /// no focus.
    pub unkept: u64,
}

/// A change of a focus, whose level is 0 before it is set and after it ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FocusChange {
    /// The pattern's entry in the name table.
    pub pattern: NameId,
    /// The change.
    pub change: LevelChange,
}

/// From, and to.
type Stretch = (Ticks, Ticks);

impl Levels {
    /// Takes in a change: of the level of every node, or of the focus with this pattern.
    pub(super) fn push(&mut self, pattern: NameId, change: LevelChange) {
        if !pattern.is_none() && self.foci.len() < KEEP {
            return self.foci.push(FocusChange { pattern, change });
        }
        if pattern.is_none() && self.changes.len() < KEEP {
            return self.changes.push(change);
        }
        self.unkept = self.unkept.saturating_add(1);
        if !pattern.is_none() {
            let until = self.foci_until.unwrap_or(change.asked);
            self.foci_until = Some(until.min(change.asked));
        } else if let Some(last) = self.changes.last_mut() {
            last.new = last.new.min(change.new);
        }
    }

    pub(super) fn finish(&mut self) {
        self.changes.sort_by_key(|change| (change.asked, change.armed));
        self.foci.sort_by_key(|focus| (focus.change.asked, focus.change.armed));
    }

    /// The changes of the level; the first one states the level at the start.
    pub fn changes(&self) -> &[LevelChange] {
        &self.changes
    }

    /// The changes of foci, all of them together.
    pub fn foci(&self) -> &[FocusChange] {
        &self.foci
    }

    /// The level in force at the end; `None` when no change is in the file.
    pub fn last(&self) -> Option<Level> {
        self.changes.last().map(|change| change.new)
    }

    /// The stretches up to `end` in which not all of a plane was asked for: by the level, and of
    /// these those in which a focus asked for it, for some nodes and no others. Raised coverage
    /// begins at `armed`, lowered coverage ends at `asked`. Where a change is missing (the next one
    /// starts from another level), the lower of the two counts.
    pub(super) fn not_requested(&self, end: Ticks, gaps: &mut GapList) {
        let mut parts: Vec<(Stretch, GapReason, Planes)> = Vec::new();
        for level in (Level::PULSE.0..=Level::MAX.0).map(Level) {
            let planes = planes_of(level);
            if planes == Planes::NONE {
                continue;
            }
            let focused = self.focused(level, end);
            let of_nodes = planes.without(OF_NO_NODE);
            let of_none = planes.without(of_nodes);
            for stretch in below(&self.changes, level, end) {
                split(stretch, &focused, |part, reason| parts.push((part, reason, of_nodes)));
                parts.push((stretch, GapReason::LEVEL, of_none));
            }
        }
        parts.retain(|&(.., planes)| planes != Planes::NONE);
        parts.sort_by_key(|&(part, reason, _)| (part, reason));
        for same in parts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let planes = same.iter().fold(Planes::NONE, |all, (.., planes)| all.union(*planes));
            if let Some(&(part, reason, _)) = same.first() {
                let gap = Gap::lost(reason, None, part, 0);
                gaps.push(Gap { class: GapClass::NotRequested, planes, ..gap });
            }
        }
    }

    /// The stretches in which some focus asks for `level`, in order and apart.
    fn focused(&self, level: Level, end: Ticks) -> Vec<Stretch> {
        let end = self.foci_until.map_or(end, |until| until.min(end));
        let mut foci = self.foci.clone();
        foci.sort_by_key(|focus| focus.pattern);
        let mut all: Vec<Stretch> = Vec::new();
        for focus in foci.chunk_by(|a, b| a.pattern == b.pattern) {
            let changes: Vec<_> = focus.iter().map(|focus| focus.change).collect();
            all.extend(reaching(&changes, level, end));
        }
        all.sort_unstable();
        let mut apart: Vec<Stretch> = Vec::new();
        for (from, to) in all {
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        apart
    }
}

/// Planes of which every record is without a node, so that no focus asks for any.
const OF_NO_NODE: Planes = Planes::PHYSICAL_MEMORY;

/// The changes, each with the level that is in force from it to the next, and where the next begins.
fn in_force(changes: &[LevelChange]) -> impl Iterator<Item = (&LevelChange, Level, Option<Ticks>)> {
    changes.iter().enumerate().map(|(i, change)| {
        let next = changes.get(i.saturating_add(1));
        let level = next.map_or(change.new, |next| change.new.min(next.old));
        (change, level, next.map(|next| next.asked))
    })
}

/// The stretches in which the level lies below `level`, in order and apart.
fn below(changes: &[LevelChange], level: Level, end: Ticks) -> Vec<Stretch> {
    let (mut stretches, mut open) = (Vec::new(), None);
    for (change, in_force, next) in in_force(changes) {
        match open {
            None if in_force < level => open = Some(change.asked),
            Some(first) if in_force >= level => {
                let armed = next.map_or(change.armed, |next| change.armed.min(next));
                stretches.push((first, armed.max(first)));
                open = None;
            }
            _ => {}
        }
    }
    stretches.extend(open.map(|first| (first, end.max(first))));
    stretches
}

/// The stretches in which the level is at least `level`, in order and apart; none is empty.
fn reaching(changes: &[LevelChange], level: Level, end: Ticks) -> Vec<Stretch> {
    let (mut stretches, mut open) = (Vec::new(), None);
    for (change, in_force, _) in in_force(changes) {
        match open {
            None if in_force >= level => open = Some(change.armed),
            Some(first) if in_force < level => {
                stretches.push((first, change.asked));
                open = None;
            }
            _ => {}
        }
    }
    stretches.extend(open.map(|first| (first, end)));
    stretches.retain(|(first, last)| first < last);
    stretches
}

/// Cuts a stretch that the level left out where foci (in order and apart) begin and end.
fn split(stretch: Stretch, focused: &[Stretch], mut part: impl FnMut(Stretch, GapReason)) {
    let (mut at, end) = stretch;
    if at == end {
        return part(stretch, GapReason::LEVEL);
    }
    let first = focused.partition_point(|&(_, to)| to <= at);
    let within = focused.iter().skip(first).take_while(|&&(from, _)| from < end);
    for &(from, to) in within {
        let (from, to) = (from.max(at), to.min(end));
        if at < from {
            part((at, from), GapReason::LEVEL);
        }
        part((from, to), GapReason::FOCUS);
        at = to;
    }
    if at < end {
        part((at, end), GapReason::LEVEL);
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
        changes.iter().for_each(|&change| levels.push(NameId::NONE, change));
        levels.finish();
        let found = below(levels.changes(), level, Ticks(1000));
        found.into_iter().map(|(first, last)| (first.0, last.0)).collect()
    }

    /// The gaps at the level of statistics, by these changes of the level and of foci.
    fn gaps(level: &[LevelChange], foci: &[(u32, LevelChange)]) -> Vec<(u64, u64, GapReason)> {
        let mut levels = Levels::default();
        level.iter().for_each(|&change| levels.push(NameId::NONE, change));
        foci.iter().for_each(|&(focus, change)| levels.push(NameId(focus), change));
        levels.finish();
        let mut found = Vec::new();
        let focused = levels.focused(Level::NUMERICS, Ticks(1000));
        for stretch in below(levels.changes(), Level::NUMERICS, Ticks(1000)) {
            let part = |(first, last): Stretch, reason| found.push((first.0, last.0, reason));
            split(stretch, &focused, part);
        }
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
            levels.push(NameId::NONE, change(i, i, Level::NUMERICS, new));
        }
        assert_eq!((levels.changes().len(), levels.unkept), (KEEP, 5));
        assert_eq!(levels.last(), Some(Level::PULSE));
    }

    const LEVEL: GapReason = GapReason::LEVEL;
    const FOCUS: GapReason = GapReason::FOCUS;

    /// The level of a run that stays at 1.
    fn timing() -> [LevelChange; 1] {
        [change(0, 1, Level::TIMING, Level::TIMING)]
    }

    #[test]
    fn where_only_a_focus_asks_the_rest_is_a_gap_of_the_focus() {
        let foci = [
            (7, change(100, 110, Level::PULSE, Level::NUMERICS)),
            (7, change(200, 210, Level::NUMERICS, Level::METADATA)),
        ];
        let expected = [(0, 110, LEVEL), (110, 200, FOCUS), (200, 1000, LEVEL)];
        assert_eq!(gaps(&timing(), &foci), expected);
        let from_the_start = [(7, change(0, 1, Level::PULSE, Level::NUMERICS))];
        assert_eq!(gaps(&timing(), &from_the_start), [(0, 1, LEVEL), (1, 1000, FOCUS)]);
    }

    #[test]
    fn foci_add_up_and_the_level_of_every_node_ends_the_gap() {
        let level = [
            change(0, 1, Level::PULSE, Level::PULSE),
            change(500, 510, Level::PULSE, Level::NUMERICS),
            change(700, 710, Level::NUMERICS, Level::TIMING),
        ];
        let foci = [
            (7, change(100, 110, Level::PULSE, Level::NUMERICS)),
            (8, change(150, 160, Level::PULSE, Level::NUMERICS)),
            (9, change(160, 170, Level::PULSE, Level::METADATA)),
            (7, change(200, 210, Level::NUMERICS, Level::PULSE)),
            (8, change(800, 810, Level::NUMERICS, Level::PULSE)),
        ];
        let expected = [(0, 110, LEVEL), (110, 510, FOCUS), (700, 800, FOCUS), (800, 1000, LEVEL)];
        assert_eq!(gaps(&level, &foci), expected);
    }

    #[test]
    fn a_focus_with_a_missing_change_claims_no_more_than_is_known() {
        let foci = [
            (7, change(100, 110, Level::PULSE, Level::NUMERICS)),
            (7, change(300, 310, Level::METADATA, Level::NUMERICS)),
        ];
        let expected = [(0, 310, LEVEL), (310, 1000, FOCUS)];
        assert_eq!(gaps(&timing(), &foci), expected);
    }

    #[test]
    fn a_flood_of_foci_is_counted_and_claims_no_coverage_behind_it() {
        let mut levels = Levels::default();
        levels.push(NameId::NONE, change(0, 0, Level::PULSE, Level::PULSE));
        for i in 0..KEEP as u64 + 5 {
            levels.push(NameId(1), change(i, i, Level::PULSE, Level::NUMERICS));
        }
        levels.finish();
        assert_eq!((levels.foci().len(), levels.unkept), (KEEP, 5));
        assert!(levels.focused(Level::NUMERICS, Ticks(u64::MAX)).len() <= 1);
        let last = levels.focused(Level::NUMERICS, Ticks(u64::MAX));
        assert!(last.iter().all(|&(_, to)| to <= Ticks(KEEP as u64)));
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_changes_are_the_stretches_are_in_order_and_apart(
            changes in proptest::collection::vec(
                (0_u32..4, proptest::prelude::any::<(u8, u8)>(), 0_u64..9, 0_u64..9),
                0..40,
            ),
            far in proptest::prelude::any::<u64>(),
        ) {
            let mut levels = Levels::default();
            for &(focus, (old, new), asked, armed) in &changes {
                let tick = |at: u64| if at == 8 { far } else { at };
                let (old, new) = (Level(old % 6), Level(new % 6));
                levels.push(NameId(focus), change(tick(asked), tick(armed), old, new));
            }
            levels.finish();
            for level in 0..=3 {
                let focused = levels.focused(Level(level), Ticks(7));
                let apart = |stretches: &[Stretch]| {
                    stretches.iter().all(|(first, last)| first <= last)
                        && stretches.is_sorted_by(|a, b| a.1 <= b.0)
                };
                let left_out = below(levels.changes(), Level(level), Ticks(7));
                proptest::prop_assert!(apart(&focused) && apart(&left_out));
                for stretch in left_out {
                    let mut parts = Vec::new();
                    split(stretch, &focused, |part, reason| parts.push((part, reason)));
                    let joined: Vec<_> = parts.iter().map(|part| part.0).collect();
                    proptest::prop_assert!(joined.is_sorted_by(|a, b| a.1 == b.0), "no hole");
                    proptest::prop_assert_eq!(joined.first().map(|part| part.0), Some(stretch.0));
                    proptest::prop_assert_eq!(joined.last().map(|part| part.1), Some(stretch.1));
                }
            }
        }
    }
}
