//! A forked child records nothing into its parent's file.
//!
//! The child has a copy of everything but the threads: no recorder, and mapped rings that are still
//! the parent's. So before it runs on, its sites are disarmed, the rings are replaced by pages of
//! its own, and the lanes of threads that it does not have are free again. It may then record into a
//! file of its own.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::clock::Clock;
use crate::probe::ProbeRef;

/// A probe that was recorded, as a list that only grows.
struct Known {
    probe: ProbeRef<'static, ()>,
    next: *const Known,
}

static NEWEST: AtomicPtr<Known> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that forks.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// Watches for forks while this probe is recorded.
pub(crate) fn watch<C: Clock>(probe: ProbeRef<'static, C>) {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: the handlers are plain functions, which live as long as the program. When there is
        // no memory to remember them the probe is recorded all the same; a fork is then not noticed.
        let _ = unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
    });
    if all().any(|known| core::ptr::eq(known.probe.shared, probe.shared)) {
        return;
    }
    let known =
        Box::leak(Box::new(Known { probe: probe.without_clock(), next: core::ptr::null() }));
    let _ = NEWEST.fetch_update(Ordering::AcqRel, Ordering::Acquire, |newest| {
        known.next = newest;
        Some(core::ptr::from_mut(known))
    });
}

fn all() -> impl Iterator<Item = &'static Known> {
    let mut next = NEWEST.load(Ordering::Acquire).cast_const();
    core::iter::from_fn(move || {
        // SAFETY: only leaked boxes are linked, whole before they are, by `watch`.
        let known: &'static Known = unsafe { next.as_ref() }?;
        next = known.next;
        Some(known)
    })
}

fn thread() -> u32 {
    // SAFETY: asks for the calling thread's number; has no preconditions.
    unsafe { libc::gettid() }.cast_unsigned()
}

extern "C" fn before() {
    FORKING.store(thread(), Ordering::Relaxed);
}

/// Only atomics and one system call: locks that other threads held will never be free.
extern "C" fn in_child() {
    for Known { probe, .. } in all() {
        let mapped = probe.shared.mapped.swap(false, Ordering::SeqCst);
        if mapped && !super::flight::unmap_in_child(&probe.image) {
            // The parent's rings would be written to.
            std::process::abort();
        }
        probe.disarm_in_child();
        for lane in probe.lanes {
            lane.survive_fork(FORKING.load(Ordering::Relaxed).into(), thread().into(), mapped);
        }
        probe.shared.recorder.survive_fork(0, 0, mapped);
        probe.shared.draining.store(false, Ordering::Release);
    }
}
