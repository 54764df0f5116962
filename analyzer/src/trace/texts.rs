//! Texts of a recording, borrowed wherever it has them.

use std::borrow::Cow;

use tmrun_formats::{ClockCode, DType, DeviceCode, NameId};

use crate::convert::Text;
use crate::scan::Meta;

/// What is said of a code that nobody named.
const UNKNOWN: &str = "unknown";

/// The texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts<'r> {
    meta: &'r Meta<'r>,
}

impl<'r> Texts<'r> {
    pub(super) const fn of(meta: &'r Meta<'r>) -> Self {
        Self { meta }
    }

    /// The name with this id; `None` where no intact frame defines it.
    pub(super) fn name(&self, id: NameId) -> Option<Cow<'r, str>> {
        self.meta.names.get(id).map(|name| Cow::Borrowed(name.text))
    }

    /// The placeholder of a name that is not there.
    pub(super) fn unnamed(id: u64) -> Cow<'r, str> {
        Cow::Owned(Text::unnamed(id).as_ref().to_owned())
    }

    /// A number that stands for a tensor, a storage or a stream.
    pub(super) fn hex(id: u64) -> Cow<'r, str> {
        Cow::Owned(Text::hex(id).as_ref().to_owned())
    }

    pub(super) fn dtype(&self, code: DType) -> &'r str {
        self.meta.dtype(code).unwrap_or(UNKNOWN)
    }

    pub(super) fn device(&self, code: DeviceCode) -> &'r str {
        self.meta.device(code).unwrap_or(UNKNOWN)
    }

    /// A device clock's name, and what reads it.
    pub(super) fn clock(&self, code: ClockCode) -> (Cow<'r, str>, Cow<'r, str>) {
        match self.meta.clocks.get(&code) {
            Some(clock) => (Cow::Borrowed(clock.name), Cow::Borrowed(clock.backend)),
            None => (Cow::Owned(format!("clock-{}", code.0)), Cow::Borrowed(UNKNOWN)),
        }
    }
}
