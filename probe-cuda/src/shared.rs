//! What the timers of a device, its drain and its probe share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tmrun_probe_core::{ClockCode, DeviceCode, ProbeRef};

use crate::context::Context;
use crate::drain::Drain;
use crate::pool::Pool;

pub(crate) struct Shared<C: tmrun_probe_core::Clock> {
    pub(crate) context: Arc<Context>,
    pub(crate) probe: ProbeRef<'static, C>,
    pub(crate) device: DeviceCode,
    pub(crate) clock: ClockCode,
    /// Every pool, until the drain has dealt with all of one that is retired.
    pools: Mutex<Vec<Arc<Pool>>>,
    /// How often a pool came or went.
    changed: AtomicU64,
    finished: AtomicBool,
    /// Never locked by a thread that records.
    drain: Mutex<Drain<C>>,
}

impl<C: tmrun_probe_core::Clock> Shared<C> {
    pub(crate) fn new(
        context: Arc<Context>,
        probe: ProbeRef<'static, C>,
        (device, clock): (DeviceCode, ClockCode),
        drain: Drain<C>,
    ) -> Self {
        let (pools, changed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        let (finished, drain) = (AtomicBool::new(false), Mutex::new(drain));
        Self { context, probe, device, clock, pools, changed, finished, drain }
    }

    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::SeqCst);
    }

    pub(crate) fn drain(&self) -> MutexGuard<'_, Drain<C>> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Arc<Pool>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, pool: Arc<Pool>) {
        self.pools().push(pool);
        self.changed.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn remove(&self, pool: &Arc<Pool>) {
        self.pools().retain(|kept| !Arc::ptr_eq(kept, pool));
        self.changed.fetch_add(1, Ordering::Release);
    }

    /// Renews a list of the pools, if it is not that of this generation any more.
    pub(crate) fn renew(&self, list: &mut Vec<Arc<Pool>>, generation: &mut Option<u64>) {
        let now = self.changed.load(Ordering::Acquire);
        if *generation != Some(now) {
            list.clone_from(&self.pools());
            *generation = Some(now);
        }
    }
}
