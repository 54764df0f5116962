//! Groups: the records of one fact.

use super::Record;

/// The most records that one group holds.
pub const GROUP_MAX: usize = 16;

/// The groups of a run of records: a head and the continuations behind it, together at most
/// [`GROUP_MAX`]. Continuations without a head (at a damaged edge, or beyond the most that a group
/// holds) make groups of their own, whose first record [continues](Record::continues).
pub fn groups(records: &[Record]) -> Groups<'_> {
    Groups { rest: records }
}

/// Iterator over the groups of a run of records.
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    rest: &'a [Record],
}

impl<'a> Iterator for Groups<'a> {
    type Item = &'a [Record];

    #[inline]
    fn next(&mut self) -> Option<&'a [Record]> {
        let (_, behind) = self.rest.split_first()?;
        let continued =
            behind.iter().take(GROUP_MAX - 1).take_while(|record| record.continues()).count();
        let (group, rest) = self.rest.split_at_checked(continued + 1)?;
        self.rest = rest;
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::wire::{RecordHeader, Scalar, flags};

    fn lengths(continues: &[bool]) -> Vec<usize> {
        let record = |&continues: &bool| {
            let flags = if continues { flags::CONTINUES } else { 0 };
            let header = RecordHeader { flags, ..RecordHeader::of::<Scalar>(Level::PULSE) };
            Record::new(header, &Scalar::default())
        };
        let records: Vec<Record> = continues.iter().map(record).collect();
        groups(&records).map(<[Record]>::len).collect()
    }

    #[test]
    fn a_group_is_a_head_and_what_continues_it() {
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&[false, false, true, true, false]), [1, 3, 1]);
    }

    #[test]
    fn continuations_without_a_head_are_a_group_of_their_own() {
        assert_eq!(lengths(&[true, true, false]), [2, 1]);
        let mut long = [true; 40];
        long[0] = false;
        assert_eq!(lengths(&long), [16, 16, 8], "no group is longer than its most");
    }
}
