//! A forked child records nothing into its parent's file.
//!
//! The child has a copy of everything but the threads: no recorder, and mapped rings that are still
//! the parent's. So before it runs on, its sites are disarmed, the rings are replaced by pages of
//! its own, and the lanes of threads that it does not have are free again. It may then record into a
//! file of its own.

use core::cell::UnsafeCell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::clock::Clock;
use crate::probe::ProbeRef;

/// The probes that were recorded and are still there. Whoever forks holds it from before the fork
/// until after, so that the child finds it whole and free.
struct Known {
    held: AtomicBool,
    probes: UnsafeCell<Vec<ProbeRef<'static, ()>>>,
}

// SAFETY: the list is touched by who holds it, of whom there is one at a time: see `hold` and `free`.
unsafe impl Sync for Known {}

static KNOWN: Known = Known { held: AtomicBool::new(false), probes: UnsafeCell::new(Vec::new()) };
/// The thread that forks.
static FORKING: AtomicU32 = AtomicU32::new(0);

impl Known {
    fn hold(&self) {
        while self.held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn free(&self) {
        self.held.store(false, Ordering::Release);
    }

    /// Runs `f` on the list.
    fn with<R>(&self, f: impl FnOnce(&mut Vec<ProbeRef<'static, ()>>) -> R) -> R {
        self.hold();
        // SAFETY: it is held, and not free before `f` has returned.
        let result = f(unsafe { &mut *self.probes.get() });
        self.free();
        result
    }
}

/// Watches for forks while this probe is there.
pub(crate) fn watch<C: Clock>(probe: ProbeRef<'static, C>) {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: the handlers are plain functions, which live as long as the program. When there is
        // no memory to remember them the probe is recorded all the same; a fork is then not noticed.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
    KNOWN.with(|probes| {
        if !probes.iter().any(|known| core::ptr::eq(known.shared, probe.shared)) {
            probes.push(probe.without_clock());
        }
    });
}

/// The memory of this probe is about to go.
pub(crate) fn forget<C>(probe: &ProbeRef<'static, C>) {
    KNOWN.with(|probes| probes.retain(|known| !core::ptr::eq(known.shared, probe.shared)));
}

fn thread() -> u32 {
    // SAFETY: asks for the calling thread's number; has no preconditions.
    unsafe { libc::gettid() }.cast_unsigned()
}

extern "C" fn before() {
    KNOWN.hold();
    FORKING.store(thread(), Ordering::Relaxed);
}

extern "C" fn in_parent() {
    KNOWN.free();
}

/// Only atomics and one system call: locks that other threads held will never be free.
extern "C" fn in_child() {
    // SAFETY: this thread has held the list since before the fork.
    for probe in unsafe { &*KNOWN.probes.get() } {
        let mapped = probe.shared.mapped.swap(false, Ordering::SeqCst);
        if mapped && !super::flight::unmap_in_child(&probe.image) {
            // The parent's rings would be written to.
            std::process::abort();
        }
        if mapped {
            probe.shared.no_lane_told.forget();
        }
        probe.disarm_in_child();
        for lane in probe.lanes {
            lane.survive_fork(FORKING.load(Ordering::Relaxed).into(), thread().into(), mapped);
        }
        probe.shared.recorder.survive_fork(0, 0, mapped);
        probe.shared.draining.store(false, Ordering::Release);
    }
    KNOWN.free();
}
