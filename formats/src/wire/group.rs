//! Groups: the records of one fact.

use super::Record;

/// The most records that one group holds.
pub const GROUP_MAX: usize = 16;

/// The groups of a run of records: a head and the continuations behind it. A continuation without
/// a head (at a damaged edge) makes a group of its own, which no kind of head begins.
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
        let continued = behind.iter().take_while(|record| record.continues()).count();
        let (group, rest) = self.rest.split_at_checked(continued + 1)?;
        self.rest = rest;
        Some(group)
    }
}
