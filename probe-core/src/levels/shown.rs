//! The changes of what is asked for as a mapped file shows them, until they are records: what a process
//! that dies meanwhile asked for.
//!
//! They are shown before they are made, and once more when they are: a process that dies in between has
//! asked for them. Nobody looks at it but whoever has the file.

#[cfg(feature = "std")]
pub(crate) use mapped::ShownChanges;
#[cfg(not(feature = "std"))]
pub(crate) use unmapped::ShownChanges;

#[cfg(feature = "std")]
mod mapped {
    use tmrun_formats::Ticks;
    use tmrun_formats::rings::ChangeCell;

    use crate::sync::{Word, array, const_fn};

    const WORDS: usize = ChangeCell::SIZE / 8;

    /// All of them. Only who holds `changing` stores to it.
    #[repr(C)]
    pub(crate) struct ShownChanges {
        taken: Word,
        stored: Word,
        cells: [[Word; WORDS]; ChangeCell::COUNT],
    }

    impl ShownChanges {
        const_fn! {
            pub(crate) fn new() -> Self {
                Self {
                    taken: Word::new(0),
                    stored: Word::new(0),
                    cells: array![array![Word::new(0); WORDS]; ChangeCell::COUNT],
                }
            }
        }

        fn cell(&self, number: u64) -> &[Word; WORDS] {
            &self.cells[(number % ChangeCell::COUNT as u64) as usize]
        }

        /// A change that is about to be made.
        pub(in super::super) fn announce(&self, change: &ChangeCell) {
            let words = change.words();
            self.cell(change.number).iter().zip(words).for_each(|(place, word)| place.set(word));
        }

        /// There are so many changes, each with its cell.
        pub(in super::super) fn announced(&self, all: u64) {
            self.stored.publish(all);
        }

        /// The change of this number was made.
        pub(in super::super) fn made(&self, number: u64, armed: Ticks) {
            self.cell(number)[ChangeCell::ARMED].publish(armed.0);
        }

        /// So many changes are records.
        pub(in super::super) fn taken(&self, all: u64) {
            self.taken.publish(all);
        }
    }

    // Rings are mapped on 64-bit targets only; a model's atomics have a layout of their own.
    #[cfg(all(target_pointer_width = "64", not(all(loom, test))))]
    const _: () = {
        use core::mem::offset_of;
        use tmrun_formats::rings::WaitingChanges;

        assert!(offset_of!(ShownChanges, taken) == WaitingChanges::TAKEN);
        assert!(offset_of!(ShownChanges, stored) == WaitingChanges::STORED);
        assert!(offset_of!(ShownChanges, cells) == WaitingChanges::CELLS);
        assert!(size_of::<ShownChanges>() as u64 == WaitingChanges::SIZE);
        assert!(super::super::change::WAITING == ChangeCell::COUNT);
    };
}

#[cfg(not(feature = "std"))]
mod unmapped {
    use tmrun_formats::Ticks;
    use tmrun_formats::rings::ChangeCell;

    /// Nothing is mapped.
    pub(crate) struct ShownChanges;

    impl ShownChanges {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(in super::super) fn announce(&self, _: &ChangeCell) {}

        pub(in super::super) fn announced(&self, _: u64) {}

        pub(in super::super) fn made(&self, _: u64, _: Ticks) {}

        pub(in super::super) fn taken(&self, _: u64) {}
    }
}
