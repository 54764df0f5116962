//! Telling what is missing, and letting pools go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tmrun_probe_core::{Clock, DeviceGap, GapReason, NameId, Planes};

use super::Drain;
use crate::gaps::{Gaps, Untold};
use crate::pool::{Ended, Pool};
use crate::shared::Shared;

impl<C: Clock> Drain<C> {
    /// Everything that a pool gave is missing, for this reason.
    pub(super) fn give_up(pool: &Pool, reason: GapReason) {
        while let Some(given) = pool.given() {
            let (Ended::Interval(number) | Ended::Abandoned(number) | Ended::Replay(number)) =
                given;
            let is_counted = matches!(given, Ended::Abandoned(_));
            if let Some(pair) = pool.pair(number).filter(|_| !is_counted) {
                let launch = pair.launch();
                match pool.context.dead() {
                    Some(code) => pool.unread.refused(code, launch.ticks, launch.lane),
                    None => pool.unread.add(reason, launch.ticks, launch.lane),
                }
            }
            pool.take_given();
            // Its events may be recorded still, and are used no more: they go with the pool.
        }
    }

    /// Records the gaps of a pool that were not told yet. Of a device that has failed for good there is
    /// one, and at the end the rest.
    pub(super) fn tell_gaps(&mut self, shared: &Shared<C>, pool: &Pool) {
        if !self.may_store(shared, 2 * Gaps::REASONS) {
            return;
        }
        let mut told = self.counts;
        let mut tell = |gap: Untold| {
            let why = gap.code.map_or(NameId::NONE, |code| shared.probe.name(&code.to_string()));
            told.add(gap.reason, gap.count);
            self.lane.recorder().device_gap(&DeviceGap {
                reason: gap.reason,
                lane: gap.lane,
                first: gap.first,
                last: gap.last,
                records: gap.count,
                planes: Planes::DEVICE_TIMING,
                why,
            });
        };
        if shared.context.dead().is_some() && self.told_of_death && !shared.is_finished() {
            return;
        }
        pool.missed.take(&mut tell);
        pool.unread.take(&mut tell);
        self.counts = told;
    }

    /// The fault that ended it was told of every pool.
    pub(super) fn told_of_death(&mut self, shared: &Shared<C>) {
        self.told_of_death |= shared.context.dead().is_some();
    }

    /// Whether the drain keeps a pool. It lets one go that nobody times with, and that has nothing left to
    /// read.
    pub(super) fn keeps(&mut self, shared: &Shared<C>, pool: &Arc<Pool>) -> bool {
        let is_retired = pool.retired.load(Ordering::Acquire);
        // (What was open on it when it retired was leaked: the end counts it as not ready.)
        // Of a device that has failed for good the rest is told in the end.
        let is_empty = pool.waiting() == 0 && pool.open() == 0 && shared.context.dead().is_none();
        let goes = is_retired && is_empty && self.may_store(shared, 2 * Gaps::REASONS);
        if goes {
            // What its timer counted last, it counted before it retired.
            self.tell_gaps(shared, pool);
            self.counts.count_attempts(pool);
            shared.remove(pool);
        }
        !goes
    }
}
