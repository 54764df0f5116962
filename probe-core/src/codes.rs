//! One-byte codes that a recording defines as it goes: devices, and element types of its own.

use core::ops::Range;

use tmrun_formats::NameId;

use crate::sync::{AtomicU32, Ordering, array, const_fn};

/// Names by code, from 0 on; it only grows. Finding a code is a short walk: do it at set-up.
pub(crate) struct CodeTable<const N: usize>([AtomicU32; N]);

impl<const N: usize> CodeTable<N> {
    const_fn! {
        pub(crate) fn new() -> Self {
            const { assert!(N < u8::MAX as usize) }
            Self(array![AtomicU32::new(0); N])
        }
    }

    /// The code of this name, defined if it is new; `None` when the table is full or there is no
    /// name.
    pub(crate) fn code(&self, name: NameId) -> Option<u8> {
        if name.is_none() {
            return None;
        }
        (0_u8..).zip(&self.0).find_map(|(code, place)| {
            let found = place
                .compare_exchange(0, name.0, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|found| found, |_| name.0);
            (found == name.0).then_some(code)
        })
    }

    /// How many codes are defined.
    pub(crate) fn count(&self) -> u8 {
        self.0.iter().take_while(|place| place.load(Ordering::Acquire) != 0).count() as u8
    }

    /// These codes and their names.
    pub(crate) fn range(&self, codes: Range<u8>) -> impl Iterator<Item = (u8, NameId)> + '_ {
        let name = |code: u8| Some(NameId(self.0.get(usize::from(code))?.load(Ordering::Acquire)));
        codes.filter_map(move |code| Some((code, name(code)?)))
    }
}
