//! The name table of a rings file.

use super::half;
use crate::NameId;
use crate::wire::NameV1;

/// An entry of the name table: four texts (name, type, static id, source), each as its start in the
/// arena (4 bytes) and its length + 1 (4 bytes; 0 stands for none), then 4 bytes that are 1 once the
/// entry is whole.
#[derive(Debug, Clone, Copy)]
pub struct NameImage;

impl NameImage {
    /// Bytes of an entry.
    pub const SIZE: usize = 36;

    /// The names of a table, in order of their ids. An entry that was not finished, or whose text is
    /// not there or no UTF-8, is left out.
    pub fn table<'f>(
        entries: &'f [u8],
        arena: &'f [u8],
    ) -> impl Iterator<Item = NameV1<'f>> + Clone + 'f {
        (1..).zip(entries.chunks_exact(Self::SIZE)).filter_map(|(id, entry)| {
            let text = |at: usize| -> Option<Option<&'f str>> {
                let start = usize::try_from(half(entry, at * 8)).ok()?;
                let Some(length) = half(entry, at * 8 + 4).checked_sub(1) else {
                    return Some(None);
                };
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                core::str::from_utf8(arena.get(start..end)?).ok().map(Some)
            };
            (half(entry, 32) == 1).then_some(())?;
            Some(NameV1 {
                id: NameId(id),
                text: text(0)??,
                node_type: text(1)?,
                static_id: text(2)?,
                source: text(3)?,
            })
        })
    }
}
