//! Names and codes that the rings define and the drained recording does not.

use std::collections::BTreeMap;

use tmrun_formats::rings::NameImage;
use tmrun_formats::wire::{DTypeV1, DeviceV1, NameV1};
use tmrun_formats::{DType, DeviceCode, NameId};

use super::Rings;
use crate::scan::Recording;

/// Device codes that a table holds, from 1; then dtype codes, from 128.
const DEVICES: usize = 254;
const FIRST_DEVICE: u8 = 1;
const FIRST_DTYPE: u8 = 128;
/// Bytes of the name of a lane, a device or a dtype, at most. A recorder's are a word or a few, and
/// any number of them may refer to the same text.
const WORD: usize = 4096;

pub(super) struct NameTable<'n> {
    drained: Option<&'n Recording<'n>>,
    found: BTreeMap<NameId, NameV1<'n>>,
    codes: Vec<NameId>,
}

impl<'n> NameTable<'n> {
    pub(super) fn of<'d>(rings: &Rings<'n>, drained: Option<&'n Recording<'d>>) -> Self
    where
        'd: 'n,
    {
        let header = &rings.header;
        let length = header.names.saturating_mul(NameImage::SIZE as u64);
        let entries = header.part(rings.bytes, header.entries, length);
        let arena = header.part(rings.bytes, header.arena, header.arena_length);
        let found = NameImage::table(entries, arena).map(|name| (name.id, name)).collect();
        let codes = header.part(rings.bytes, header.codes, 4 * (254 + 127));
        let (codes, _) = codes.as_chunks::<4>();
        let codes = codes.iter().map(|code| NameId(u32::from_le_bytes(*code))).collect();
        Self { drained, found, codes }
    }

    fn known(&self, id: NameId) -> Option<&'n str> {
        self.drained.and_then(|drained| drained.names().text(id))
    }

    /// The text of a name, or how it begins; empty when nobody knows it.
    pub(super) fn text(&self, id: NameId) -> &'n str {
        let found = || self.found.get(&id).map(|name| name.text);
        let text = self.known(id).or_else(found).unwrap_or_default();
        text.get(..text.floor_char_boundary(WORD)).unwrap_or_default()
    }

    /// Of two definitions that differ the first holds: only new ones are told.
    pub(super) fn names(&self) -> impl Iterator<Item = NameV1<'n>> + '_ {
        self.found.values().filter(|name| self.known(name.id).is_none()).copied()
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = DeviceV1<'n>> + '_ {
        let codes = (FIRST_DEVICE..=u8::MAX).zip(self.codes.iter().take(DEVICES));
        codes.filter(|(_, name)| !name.is_none()).filter_map(|(code, &name)| {
            let code = DeviceCode(code);
            let known = self.drained.is_some_and(|d| d.meta().devices.contains_key(&code));
            (!known).then(|| DeviceV1 { code, name: self.text(name) })
        })
    }

    pub(super) fn dtypes(&self) -> impl Iterator<Item = DTypeV1<'n>> + '_ {
        let codes = (FIRST_DTYPE..=u8::MAX).zip(self.codes.iter().skip(DEVICES));
        codes.filter(|(_, name)| !name.is_none()).filter_map(|(code, &name)| {
            let code = DType(code);
            let known = self.drained.is_some_and(|d| d.meta().dtypes.contains_key(&code));
            (!known).then(|| DTypeV1 { code, name: self.text(name), bits: 0 })
        })
    }
}
