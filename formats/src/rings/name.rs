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
    /// not there or no UTF-8, is left out. Texts do not share bytes: so is an entry with which there
    /// would be more text than the arena holds.
    pub fn table<'f>(
        entries: &'f [u8],
        arena: &'f [u8],
    ) -> impl Iterator<Item = NameV1<'f>> + Clone + 'f {
        let mut room = arena.len();
        (1..).zip(entries.chunks_exact(Self::SIZE)).filter_map(move |(id, entry)| {
            let text = |at: usize| -> Option<Option<&'f str>> {
                let start = usize::try_from(half(entry, at * 8)).ok()?;
                let Some(length) = half(entry, at * 8 + 4).checked_sub(1) else {
                    return Some(None);
                };
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                core::str::from_utf8(arena.get(start..end)?).ok().map(Some)
            };
            (half(entry, 32) == 1).then_some(())?;
            let name = NameV1 {
                id: NameId(id),
                text: text(0)??,
                node_type: text(1)?,
                static_id: text(2)?,
                source: text(3)?,
            };
            let texts = [Some(name.text), name.node_type, name.static_id, name.source];
            room = texts.iter().flatten().try_fold(room, |room, t| room.checked_sub(t.len()))?;
            Some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry that is whole, with a name and a source of these starts and lengths.
    fn entry(name: (u32, u32), source: (u32, u32)) -> [u8; NameImage::SIZE] {
        let words = [name.0, name.1 + 1, 0, 0, 0, 0, source.0, source.1 + 1, 1];
        let mut entry = [0; NameImage::SIZE];
        for (place, word) in entry.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        entry
    }

    #[test]
    fn entries_hold_no_more_text_than_the_arena() {
        let entries = [
            entry((0, 4), (4, 3)),
            entry((7, 3), (10, 2)),
            entry((0, 4), (4, 3)),
            entry((10, 2), (0, 0)),
        ];
        let names = NameImage::table(entries.as_flattened(), b"lossa.rfwdb.r");
        let found = names.map(|name| (name.id.0, name.text, name.source));
        assert!(found.eq([(1, "loss", Some("a.r")), (2, "fwd", Some("b."))]));
        // The same text over and over is no text of a recorder's.
        let all: [_; 4] = core::array::from_fn(|_| entry((0, 10), (0, 0)));
        let ids = NameImage::table(all.as_flattened(), b"a long one, and as much again.");
        assert!(ids.map(|name| name.id.0).eq([1, 2, 3]));
    }
}
