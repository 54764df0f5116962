//! Reading what a stream has done.

use std::sync::Arc;

use tmrun_probe_core::{Clock, DeviceIntervalFact, GapReason, Ticks};

use super::{Drain, Drained};
use crate::anchor::Unplaced;
use crate::driver::{Code, Query};
use crate::looking::Look;
use crate::pool::{Ended, Pair, Pool};
use crate::shared::Shared;

/// What is read of one stream before the next has its turn.
const BATCH: u32 = 64;

/// Why an interval that is done is not recorded.
enum Missed {
    Unplaced(Unplaced),
    /// A later launch of the graph has stamped its events, or may have.
    Overwritten,
}

/// What became of a pair whose events are done.
struct Read {
    /// Why it is not recorded, if it is not.
    missed: Option<Missed>,
    /// It is the anchor now, and not free.
    is_anchor: bool,
}

impl From<Unplaced> for Missed {
    fn from(unplaced: Unplaced) -> Self {
        Self::Unplaced(unplaced)
    }
}

impl<C: Clock> Drain<C> {
    /// Reads all streams in turns, until none has anything that is done.
    pub(super) fn read_all(
        &mut self,
        shared: &Shared<C>,
        pools: &[Arc<Pool>],
        drained: &mut Drained,
    ) {
        let mut goes_on = true;
        while goes_on && shared.context.dead().is_none() {
            goes_on = false;
            for pool in pools {
                goes_on |= self.read(shared, pool, drained) == BATCH;
            }
        }
    }

    /// Reads at most a batch of a stream, and returns how many it dealt with.
    fn read(&mut self, shared: &Shared<C>, pool: &Arc<Pool>, drained: &mut Drained) -> u32 {
        for dealt in 0..BATCH {
            let Some(given) = pool.given().filter(|_| self.may_store(shared, 1)) else {
                return dealt;
            };
            let (Ended::Interval(number) | Ended::Abandoned(number) | Ended::Replay(number)) =
                given;
            let Some(pair) = pool.pair(number) else { return dealt };
            let is_free = match given {
                Ended::Abandoned(_) => true,
                _ => {
                    // When the device is done with `end` it is with all before: a stream keeps its
                    // order, and so one that is not done ends the look at the others.
                    let done = match pool.look(given) {
                        Look::Later => return dealt,
                        Look::Never => Err(Unplaced::Refused(Code::CAPTURED_EVENT).into()),
                        Look::Refused(code) => Err(Unplaced::Refused(code).into()),
                        Look::Clear => match pool.context.driver.query(pair.end.0) {
                            Ok(Query::NotReady) => return dealt,
                            Ok(Query::Done) => self.read_one(shared, pool, given, pair),
                            Err(code) => Err(Unplaced::Refused(code).into()),
                        },
                    };
                    let (missed, is_anchor) = match done {
                        Ok(read) => (read.missed, read.is_anchor),
                        Err(missed) => (Some(missed), false),
                    };
                    match missed {
                        Some(missed) => miss(pool, pair, missed),
                        None => {
                            drained.recorded = drained.recorded.saturating_add(1);
                            self.counts.recorded = self.counts.recorded.saturating_add(1);
                        }
                    }
                    !is_anchor
                }
            };
            pool.take_given();
            if is_free {
                pool.release(number);
            }
            if shared.context.dead().is_some() {
                return dealt;
            }
        }
        BATCH
    }

    /// Records what is done.
    fn read_one(
        &mut self,
        shared: &Shared<C>,
        pool: &Arc<Pool>,
        given: Ended,
        pair: &Pair,
    ) -> Result<Read, Missed> {
        let seen = C::ticks();
        let (number, graph) = match given {
            Ended::Interval(number) | Ended::Abandoned(number) => (number, None),
            Ended::Replay(number) => (number, pool.graph(pair.graph())),
        };
        let Some(graph) = graph else {
            if matches!(given, Ended::Replay(_)) {
                return Err(Missed::Overwritten);
            }
            // The length directly, and not as the difference of two positions.
            let length = self.positions.between(pool, pair.begin, pair.end)?.ns;
            let end = self.positions.place(pool, number, pair.end, length)?;
            self.record(shared, pool, pair, (end.at, length), seen);
            return Ok(Read { missed: None, is_anchor: end.is_anchor });
        };
        if !graph.is_latest(pair.replay()) {
            return Err(Missed::Overwritten);
        }
        let length = self.positions.between(pool, graph.begin, graph.end);
        // What a later launch has done to the events is no refusal of the driver.
        let length = match length {
            Err(_) if !graph.is_latest(pair.replay()) => return Err(Missed::Overwritten),
            length => length?.ns,
        };
        // The event behind the launch is placed, and so can the graph's own be.
        let fence = self.positions.place(pool, number, pair.end, length)?;
        let end = self.positions.near(pool, graph.end, (pair.end, fence.at));
        let missed = match end {
            _ if !graph.is_latest(pair.replay()) => Some(Missed::Overwritten),
            Err(unplaced) => Some(unplaced.into()),
            Ok(end) => {
                self.record(shared, pool, pair, (end, length), seen);
                None
            }
        };
        Ok(Read { missed, is_anchor: fence.is_anchor })
    }

    fn record(
        &self,
        shared: &Shared<C>,
        pool: &Pool,
        pair: &Pair,
        (end, length): (i64, i64),
        seen: Ticks,
    ) {
        // A stamp that makes no sense stays one: a reader sees it, and leaves the interval out.
        let ns = |at: i64| u64::try_from(at).unwrap_or(0);
        let fact = DeviceIntervalFact {
            device: shared.device,
            clock: shared.clock,
            stream: pool.id,
            start_ns: ns(end.saturating_sub(length)),
            end_ns: ns(end),
            launch: pair.launch(),
            seen,
        };
        self.lane.recorder().device_interval(pair.name(), &fact);
    }
}

/// Counts an interval that cannot be read.
fn miss(pool: &Pool, pair: &Pair, missed: Missed) {
    let launch = pair.launch();
    let (ticks, lane) = (launch.ticks, launch.lane);
    match missed {
        Missed::Overwritten | Missed::Unplaced(Unplaced::Refused(Code::CAPTURED_EVENT)) => {
            pool.unread.add(GapReason::GRAPH_CAPTURE, ticks, lane);
        }
        Missed::Unplaced(Unplaced::Refused(code)) => {
            pool.context.failed(code);
            pool.unread.refused(code, ticks, lane);
        }
        Missed::Unplaced(Unplaced::NoNumber) => {
            pool.unread.add(GapReason::DRIVER_ERROR, ticks, lane);
        }
    }
}
