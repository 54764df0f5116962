//! The name table: sites, nodes and labels by id.

use std::collections::HashMap;

use tmrun_formats::NameId;
use tmrun_formats::wire::NameV1;

/// The name table of a file. Ids are the file's and may be anything; those that a recorder would
/// give (small and close together) are found by position, all others by hash.
#[derive(Debug, Clone, Default)]
pub struct Names<'a> {
    dense: Vec<Option<NameV1<'a>>>,
    sparse: HashMap<NameId, NameV1<'a>>,
    count: usize,
}

impl<'a> Names<'a> {
    /// The entry with this id; `None` for 0 and for ids that no intact frame defines.
    pub fn get(&self, id: NameId) -> Option<&NameV1<'a>> {
        let place = usize::try_from(id.0).ok()?;
        match self.dense.get(place) {
            Some(Some(name)) => Some(name),
            _ => self.sparse.get(&id),
        }
    }

    /// The text with this id.
    pub fn text(&self, id: NameId) -> Option<&'a str> {
        self.get(id).map(|name| name.text)
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All entries, by id.
    pub fn iter(&self) -> impl Iterator<Item = &NameV1<'a>> {
        let mut sparse: Vec<_> = self.sparse.values().collect();
        sparse.sort_unstable_by_key(|name| name.id);
        self.dense.iter().flatten().chain(sparse)
    }

    /// Takes an entry in; an id that is defined again keeps its first entry. `false` when the two
    /// contradict each other, or the id is 0.
    pub(super) fn insert(&mut self, name: NameV1<'a>) -> bool {
        if name.id.is_none() {
            return false;
        }
        if let Some(known) = self.get(name.id) {
            return *known == name;
        }
        self.count = self.count.saturating_add(1);
        // At most a few empty places for every entry, whatever ids the file has.
        let reach = self.count.saturating_mul(4).saturating_add(1024);
        match usize::try_from(name.id.0) {
            Ok(place) if place < reach => {
                if self.dense.len() <= place {
                    self.dense.resize(place.saturating_add(1), None);
                }
                if let Some(slot) = self.dense.get_mut(place) {
                    *slot = Some(name);
                }
            }
            _ => {
                self.sparse.insert(name.id, name);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: u32, text: &str) -> NameV1<'_> {
        NameV1 { id: NameId(id), text, node_type: None, static_id: None, source: None }
    }

    #[test]
    fn a_huge_id_costs_no_more_than_a_small_one() {
        let mut names = Names::default();
        assert!(names.insert(name(u32::MAX, "far")) && names.insert(name(1, "near")));
        assert!(names.dense.len() <= 1024);
        assert_eq!(names.text(NameId(u32::MAX)), Some("far"));
        assert_eq!(names.iter().map(|name| name.id.0).collect::<Vec<_>>(), [1, u32::MAX]);
    }

    #[test]
    fn an_id_keeps_its_first_name() {
        let mut names = Names::default();
        assert!(names.insert(name(7, "first")));
        assert!(names.insert(name(7, "first")), "repeated beside the index");
        assert!(!names.insert(name(7, "second")));
        assert!(!names.insert(name(0, "none")));
        assert_eq!((names.text(NameId(7)), names.len()), (Some("first"), 1));
    }
}
