//! Which thread this is.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that no other thread of the process has or had. (Asking the standard library for a thread
/// may allocate.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(u64);

impl ThreadNumber {
    #[inline]
    pub(crate) fn here() -> Self {
        std::thread_local! {
            static HERE: Cell<u64> = const { Cell::new(0) };
        }
        static LAST: AtomicU64 = AtomicU64::new(0);
        HERE.with(|here| {
            if here.get() == 0 {
                here.set(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
            }
            Self(here.get())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadNumber;

    #[test]
    fn a_thread_keeps_its_number_and_no_other_has_it() {
        let here = ThreadNumber::here();
        assert_eq!(here, ThreadNumber::here());
        let elsewhere = std::thread::spawn(ThreadNumber::here).join().expect("the thread ends");
        assert_ne!(here, elsewhere);
    }
}
