//! Places in lists, and lists of places, four bytes each.

use super::EvidenceError;

/// The place of something in a list, or that it is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(u32);

impl Link {
    /// Not in the list.
    pub const NONE: Self = Self(u32::MAX);

    /// The place `index`; [`NONE`](Link::NONE) of one that a link cannot say.
    #[must_use]
    pub fn to(index: usize) -> Self {
        u32::try_from(index).map_or(Self::NONE, Self)
    }

    /// The place.
    #[must_use]
    pub fn get(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }

    /// Whether it is in the list.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// What is at its place.
    #[must_use]
    pub fn of<T>(self, list: &[T]) -> Option<&T> {
        list.get(self.get()?)
    }

    /// Holds that links can point at all of a list.
    pub(super) fn hold(what: &'static str, found: usize) -> Result<(), EvidenceError> {
        match u32::try_from(found) {
            Ok(length) if length < u32::MAX => Ok(()),
            _ => Err(EvidenceError::TooMany { what, found }),
        }
    }
}

/// Members by the group that each belongs to, without a list of its own for each group.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    /// Where each group begins in `members`, and where the last one ends.
    begins: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    /// Puts each `(group, member)` where it belongs, in the order in which they come; those of no
    /// group are left out.
    pub fn new<P>(groups: usize, pairs: P) -> Self
    where
        P: DoubleEndedIterator<Item = (Link, usize)> + Clone,
    {
        let mut begins = vec![0_u32; groups.saturating_add(1)];
        let in_groups = |&(group, _): &(Link, usize)| group.get().is_some_and(|at| at < groups);
        let pairs = pairs.filter(in_groups);
        for (group, _) in pairs.clone() {
            if let Some(size) = group.get().and_then(|group| begins.get_mut(group)) {
                *size = size.saturating_add(1);
            }
        }
        // From sizes to ends; to fill a group from its end is to move that to its beginning.
        let mut end = 0_u32;
        for size in &mut begins {
            end = end.saturating_add(*size);
            *size = end;
        }
        let mut members = vec![0; end as usize];
        for (group, member) in pairs.rev() {
            let Some(begin) = group.get().and_then(|group| begins.get_mut(group)) else { continue };
            *begin = begin.saturating_sub(1);
            if let Some(place) = members.get_mut(*begin as usize) {
                *place = Link::to(member).0;
            }
        }
        Self { begins, members }
    }

    /// The members of a group; none of a group that is not there.
    pub fn of(
        &self,
        group: usize,
    ) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator + '_ {
        let end = group.checked_add(1).and_then(|next| self.begins.get(next));
        let members = match (self.begins.get(group), end) {
            (Some(&begin), Some(&end)) => self.members.get(begin as usize..end as usize),
            _ => None,
        };
        members.unwrap_or(&[]).iter().map(|&member| member as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_in_their_order_and_strangers_are_left_out() {
        let groups = [2, 0, 2, 7, 0].map(Link::to);
        let groups: Vec<_> = groups.into_iter().chain([Link::NONE]).collect();
        let pairs = groups.iter().enumerate();
        let groups = Groups::new(3, pairs.map(|(member, &group)| (group, member)));
        let of = |group| groups.of(group).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [vec![1, 4], vec![], vec![0, 2]]);
        assert!(of(3).is_empty() && of(7).is_empty() && of(usize::MAX).is_empty());
        assert!(Groups::default().of(0).next().is_none());
    }

    #[test]
    fn a_list_that_no_link_can_point_into_is_refused() {
        let most = u32::MAX as usize;
        assert!(Link::hold("spans", most - 1).is_ok());
        let error = Link::hold("spans", most).unwrap_err();
        assert_eq!(error, EvidenceError::TooMany { what: "spans", found: most });
        assert_eq!(Link::to(most - 1).get(), Some(most - 1));
        assert_eq!(Link::to(most), Link::NONE);
    }
}
