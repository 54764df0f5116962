//! What a chunk's records come to, and whether any of them needs a closer look: a pass without branches.

use tmrun_formats::Ticks;
use tmrun_formats::wire::{GROUP_MAX, Kind, Record, flags};

use super::ahead::ahead;
use super::rules::{self, DIMS};

/// What some records of a chunk come to.
#[derive(Debug)]
pub(super) struct Sums {
    /// The least and the greatest tick that any of them has.
    pub(super) least: Ticks,
    pub(super) greatest: Ticks,
    /// How many there are of each kind.
    pub(super) by_code: [u32; 256],
    /// What all kinds have in common.
    in_common: u8,
}

impl Default for Sums {
    fn default() -> Self {
        let (least, greatest) = (Ticks(u64::MAX), Ticks(0));
        Self { least, greatest, by_code: [0; 256], in_common: rules::KNOWN }
    }
}

/// In the third word of a record: bits of the level that no level has.
const NO_LEVEL: u64 = 0xfc << 40;
/// Where the flags are.
const FLAGS: u32 = 48;
/// Where the flag of a record that continues a group is.
const CONTINUES: u32 = FLAGS + flags::CONTINUES.trailing_zeros();

const _: () = assert!(GROUP_MAX == 16, "runs of sixteen are looked for");

impl Sums {
    /// So many records are taken at once: a bit of a word for each.
    pub(super) const AT_ONCE: usize = u64::BITS as usize;

    /// Adds up to [`AT_ONCE`](Self::AT_ONCE) records, the first of which should have this number, behind a
    /// group of so many. Gives how many the last group has by then; `None` where one of them breaks a
    /// rule, or says something about others: then each is to be looked at, and its ticks are to be
    /// [reached](Self::reach).
    #[inline]
    pub(super) fn add(&mut self, records: &[Record], seq: u32, group: usize) -> Option<usize> {
        let (mut least, mut greatest) = (self.least.0, self.greatest.0);
        let (mut any, mut all) = (0, u8::MAX);
        let (mut breaks, mut continuing, mut bits) = (0, 0, 0);
        let mut expected = seq;
        for record in ahead(records) {
            let [ticks, _, word, first, ..] = record.words();
            let code = (word >> 32) as u8;
            let rules = rules::of(code);
            if let Some(count) = self.by_code.get_mut(usize::from(code)) {
                // A payload of 4 GiB has 2^26 records.
                *count = count.wrapping_add(1);
            }
            let continues = word >> CONTINUES;
            // A bit for each role that it may have: beginning a group, continuing one.
            let may_not = !(u32::from(rules) >> continues) & 1;
            let dims = (word >> FLAGS) as u16 & flags::SHAPE_DIMS;
            let has_more = u32::from(rules & rules::SHAPE != 0) & u32::from(dims > DIMS);
            breaks |= (word as u32 ^ expected) | may_not | has_more;
            expected = expected.wrapping_add(1);
            // The first of them ends up in the highest bit.
            continuing = continuing << 1 | continues;
            bits |= word;
            any |= rules;
            all &= rules;
            let given = u64::from(rules & rules::TICKS_FIRST != 0).wrapping_neg();
            least = least.min(ticks).min(first | !given);
            greatest = greatest.max(ticks).max(first & given);
        }
        (self.least, self.greatest) = (Ticks(least), Ticks(greatest));
        self.in_common &= all;
        let is_plain =
            breaks == 0 && bits & NO_LEVEL == 0 && any & (rules::NOTED | rules::TICKS_BEHIND) == 0;
        if is_plain { group_behind(continuing, records.len(), group) } else { None }
    }

    /// Ticks that a record has.
    pub(super) fn reach(&mut self, (first, last): (Ticks, Ticks)) {
        self.least = self.least.min(first);
        self.greatest = self.greatest.max(last);
    }

    /// Records of this kind.
    pub(super) fn of(&self, kind: Kind) -> u32 {
        self.by_code.get(usize::from(kind as u8)).copied().unwrap_or_default()
    }

    /// Whether there is a kind that this version does not know.
    pub(super) const fn has_unknown(&self) -> bool {
        self.in_common & rules::KNOWN == 0
    }
}

/// How many records the last group has behind so many records more: the bit of each, the last of them in
/// the lowest bit, says whether it continues the group before it. `None` where a group has too many.
fn group_behind(continuing: u64, records: usize, group: usize) -> Option<usize> {
    let unused = u64::BITS.saturating_sub(records as u32);
    // All but the last of a run of two, four, eight and sixteen.
    let mut runs = continuing;
    for behind in [1, 2, 4, 8] {
        runs &= runs >> behind;
    }
    let leading = continuing.checked_shl(unused).unwrap_or_default().leading_ones() as usize;
    let is_too_long = leading > 0 && group.saturating_add(leading) > GROUP_MAX;
    if runs != 0 || is_too_long {
        return None;
    }
    let trailing = continuing.trailing_ones() as usize;
    let goes_on = trailing == records;
    Some(if goes_on { group.saturating_add(trailing) } else { trailing.saturating_add(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_long_as_one_record_after_another_makes_them() {
        let step = |group: Option<usize>, continues: bool| match group {
            Some(group) if continues => (group < GROUP_MAX).then(|| group.wrapping_add(1)),
            Some(_) => Some(1),
            None => None,
        };
        let mut state = 1_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..20_000 {
            let records = 1 + random() as usize % 64;
            // Long runs, and short ones.
            let mut continuing = random() | random();
            for _ in 0..round % 4 {
                continuing |= random();
            }
            continuing &= u64::MAX >> (64 - records);
            let group = [usize::MAX, 1, 2, 15, 16][random() as usize % 5];
            let bits = (0..records).rev().map(|at| continuing >> at & 1 != 0);
            let expected = bits.fold(Some(group), step);
            let found = group_behind(continuing, records, group);
            assert_eq!(found, expected, "{continuing:b} of {records} behind {group}");
        }
    }
}
