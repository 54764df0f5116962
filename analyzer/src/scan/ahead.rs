//! Records, with those further on asked of memory in time: a record is a cache line, of which a pass needs
//! little, so that the processor alone looks too few of them ahead.

use tmrun_formats::wire::Record;

/// How many records ahead memory is asked: what it takes to answer, at a few nanoseconds a record.
const DISTANCE: usize = 32;

/// The records in order.
#[inline(always)]
pub(super) fn ahead(records: &[Record]) -> impl Iterator<Item = &Record> {
    records.iter().inspect(|record| fetch(core::ptr::from_ref(*record).wrapping_add(DISTANCE)))
}

/// Asks for a cache line; that there may be nothing at its address is no matter.
#[inline(always)]
fn fetch(record: *const Record) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint. It reads nothing that the program could see, faults at no address,
        // and is in every x86-64 processor (SSE).
        unsafe { _mm_prefetch::<_MM_HINT_T0>(record.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = record;
}
