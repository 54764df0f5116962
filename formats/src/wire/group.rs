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
