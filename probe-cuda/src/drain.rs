//! The drain: reads the events that are done, in the order of each stream, and records intervals.

mod read;
mod tell;

use std::sync::Arc;

use tmrun_probe_core::{Clock, GapReason, Lane};

use crate::anchor::Positions;
use crate::fit::Readings;
use crate::pool::Pool;
use crate::shared::Shared;
use crate::summary::CudaCounts;

/// What a poll saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Intervals that it recorded.
    pub recorded: u64,
    /// Intervals that still wait for the device.
    pub waiting: u64,
}

/// The one reader of all pools of a device, and the lane that it records on.
pub(crate) struct Drain<C: Clock> {
    pub(crate) lane: Lane<'static, C>,
    pools: Vec<Arc<Pool>>,
    generation: Option<u64>,
    pub(crate) positions: Positions,
    pub(crate) readings: Readings,
    counts: CudaCounts,
    /// The fault that ended it was told.
    told_of_death: bool,
    /// It ends: what finds no room is dropped by the lane, and counted there.
    is_ending: bool,
}

impl<C: Clock> Drain<C> {
    pub(crate) fn new(lane: Lane<'static, C>) -> Self {
        Self {
            lane,
            pools: Vec::new(),
            generation: None,
            positions: Positions::default(),
            readings: Readings::default(),
            counts: CudaCounts::default(),
            told_of_death: false,
            is_ending: false,
        }
    }

    /// Whether so many records may be stored: while a recording runs and there is room for them, or in
    /// the end. (What is not stored waits in its pool, and what finds no event there is counted.)
    fn may_store(&self, shared: &Shared<C>, records: u32) -> bool {
        let is_recorded = shared.probe.level().is_some();
        self.is_ending || !is_recorded || self.lane.recorder().has_room(records)
    }

    /// Reads what is done. Without anything to read the driver is not called.
    pub(crate) fn poll(&mut self, shared: &Shared<C>) -> Drained {
        shared.renew(&mut self.pools, &mut self.generation);
        let mut pools = core::mem::take(&mut self.pools);
        let mut drained = Drained::default();
        if shared.context.dead().is_none() && pools.iter().any(|pool| pool.waiting() > 0) {
            // (Where the context cannot be entered they wait, and are counted in the end.)
            if let Ok(_entered) = shared.context.enter() {
                self.read_all(shared, &pools, &mut drained);
            }
        }
        if shared.context.dead().is_some() {
            pools.iter().for_each(|pool| Self::give_up(pool, GapReason::DRIVER_ERROR));
        }
        pools.retain(|pool| {
            self.tell_gaps(shared, pool);
            drained.waiting = drained.waiting.saturating_add(pool.waiting().into());
            self.keeps(shared, pool)
        });
        self.told_of_death(shared);
        self.pools = pools;
        drained
    }

    /// Ends it: what waits is not ready, and what is open will not be.
    pub(crate) fn finish(&mut self, shared: &Shared<C>) -> CudaCounts {
        self.is_ending = true;
        self.poll(shared);
        shared.finish();
        shared.renew(&mut self.pools, &mut self.generation);
        let dead = shared.context.dead().is_some();
        let reason = if dead { GapReason::DRIVER_ERROR } else { GapReason::NOT_READY };
        for pool in &core::mem::take(&mut self.pools) {
            Self::give_up(pool, reason);
            for _ in 0..pool.open() {
                pool.unread.add(reason, C::ticks(), self.lane.recorder().lane());
            }
            self.tell_gaps(shared, pool);
            self.counts.count_attempts(pool);
            shared.remove(pool);
        }
        self.counts.position_error_ns = self.positions.error_ns();
        self.counts.stamp_quantum_ns = self.positions.quantum_ns();
        self.positions.end();
        self.counts
    }

    /// What there is so far.
    pub(crate) fn counts(&self) -> CudaCounts {
        let mut counts = self.counts;
        self.pools.iter().for_each(|pool| counts.count_attempts(pool));
        counts.position_error_ns = self.positions.error_ns();
        counts.stamp_quantum_ns = self.positions.quantum_ns();
        counts
    }
}
