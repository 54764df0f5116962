//! What every observation is read against: names, devices, the clock, and what was asked for.

use tmrun_formats::wire::NameV1;
use tmrun_formats::{DType, DeviceCode, NameId, StorageId, TensorId};

use super::options::Schema;
use super::tally::{Note, Tally};
use super::text::Text;
use crate::scan::{Clock, Meta, Recording};

/// What is said of a code that nobody named.
const UNKNOWN: &str = "unknown";

/// A recording, as the readers of single facts need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'r> {
    meta: &'r Meta<'r>,
    pub(super) clock: Clock<'r>,
    pub(super) schema: Schema,
}

/// The identity of a tensor or a storage: a number, or the id of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) value: u64,
    pub(crate) named: bool,
}

impl Id {
    pub(crate) const fn tensor(id: TensorId, flags: u16, named: u16) -> Self {
        Self { value: id.0, named: flags & named != 0 }
    }

    pub(crate) const fn storage(id: StorageId, flags: u16, named: u16) -> Self {
        Self { value: id.0, named: flags & named != 0 }
    }

    /// `None` for 0, which stands for no tensor and no storage.
    pub(crate) fn given(self) -> Option<Self> {
        (self.value != 0).then_some(self)
    }
}

/// A name of the file, or the id of one that is missing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'r> {
    Known(&'r NameV1<'r>),
    Missing(u64),
}

impl<'r> Name<'r> {
    /// The name itself.
    pub(super) fn text(self) -> Text<'r> {
        match self {
            Self::Known(name) => Text::File(name.text),
            Self::Missing(id) => Text::unnamed(id),
        }
    }

    /// The node's id in a static analysis.
    pub(super) fn static_id(self) -> Option<&'r str> {
        match self {
            Self::Known(name) => name.static_id,
            Self::Missing(_) => None,
        }
    }

    /// The same, or the name where the node has none: for fields that must be given.
    pub(super) fn static_id_or_text(self) -> Text<'r> {
        self.static_id().map_or_else(|| self.text(), Text::File)
    }

    /// Where the node stands: its source if that is known, else its name.
    pub(super) fn source(self) -> Text<'r> {
        match self {
            Self::Known(NameV1 { source: Some(source), .. }) => Text::File(source),
            _ => self.text(),
        }
    }
}

impl<'r> Source<'r> {
    pub(super) fn new(recording: &'r Recording<'r>, schema: Schema) -> Self {
        Self { meta: recording.meta(), clock: recording.clock(), schema }
    }

    /// The name with this id; that it is missing is noted.
    #[inline]
    pub(super) fn name(&self, id: NameId, tally: &mut Tally) -> Name<'r> {
        self.name_of(id.0.into(), tally)
    }

    /// The name with this id, which the file gave as 64 bits.
    pub(super) fn name_of(&self, id: u64, tally: &mut Tally) -> Name<'r> {
        let name = self.look_up(id);
        if matches!(name, Name::Missing(_)) {
            tally.note(Note::Unnamed, 1);
        }
        name
    }

    #[inline]
    fn look_up(&self, id: u64) -> Name<'r> {
        let known = u32::try_from(id).ok().and_then(|id| self.meta.names.get(NameId(id)));
        known.map_or(Name::Missing(id), Name::Known)
    }

    /// Notes a named id whose name is missing, or one that is none where there has to be one.
    #[inline]
    pub(super) fn note_id(&self, id: Id, tally: &mut Tally) {
        if id.value == 0 {
            tally.note(Note::Unnamed, 1);
        } else if id.named {
            self.name_of(id.value & u64::from(u32::MAX), tally);
        }
    }

    /// The text of an id: the name's, or the number in hexadecimal.
    #[inline]
    pub(super) fn id(&self, id: Id) -> Text<'r> {
        if id.named {
            // Only the low half is the name's; what is missing was noted when the fact was read.
            return self.look_up(id.value & u64::from(u32::MAX)).text();
        }
        if id.value == 0 { Text::unnamed(0) } else { Text::hex(id.value) }
    }

    pub(super) fn dtype(&self, code: DType) -> &'r str {
        self.meta.dtype(code).unwrap_or(UNKNOWN)
    }

    pub(super) fn device(&self, code: DeviceCode) -> &'r str {
        self.meta.device(code).unwrap_or(UNKNOWN)
    }
}
