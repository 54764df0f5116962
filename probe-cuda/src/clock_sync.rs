//! Reading the device's clock and the host's together.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use tmrun_formats::{DeviceFit, DeviceReading};
use tmrun_probe_core::{Clock, Ticks};

use crate::anchor::Unplaced;
use crate::driver::Query;
use crate::error::CudaError;
use crate::pool::Event;
use crate::timer::Timer;

/// What CUDA says of its stamps: a resolution of around half a microsecond.
const RESOLUTION_NS: u64 = 500;

/// One reading of both clocks: when the device's showed `device_ns`, the host's was from `before` to
/// `after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Nanoseconds of the device's clock.
    pub device_ns: u64,
    /// The host's tick before, the stamp's resolution taken off.
    pub before: Ticks,
    /// The host's tick after, the stamp's resolution added.
    pub after: Ticks,
}

/// A bracket of one event.
struct Bracket {
    before: Ticks,
    after: Ticks,
}

impl Bracket {
    const fn width(&self) -> u64 {
        self.after.since(self.before)
    }
}

impl<C: Clock> Timer<C> {
    /// Reads the device's clock and the host's together, `rounds` times, and records the tightest reading
    /// as a ClockSync record. **It waits**: until the stream has done all that was submitted before, and
    /// then for each round. A reading is tight where the stream has nothing to do; on a busy stream it is
    /// wide, and true.
    ///
    /// One reading says where the clocks are; a second some minutes later says how fast they drift apart.
    /// Without any, nothing relates device time to host time, and the analyzer says so.
    ///
    /// # Errors
    ///
    /// While the stream is being captured; when it was busy until `patience` was over; when no event is free;
    /// on another thread than a per-thread stream's; when the driver refuses.
    pub fn calibrate(&self, rounds: u32, patience: Duration) -> Result<Calibration, CudaError> {
        self.check_here()?;
        let began = Instant::now();
        let context = &self.shared.context;
        let _entered = context.enter()?;
        // Within the context, of which alone a thread's own stream is the one that is meant.
        self.check_not_capturing()?;
        let (pool, mut drain) = (&self.pool, self.shared.drain());
        let mut best: Option<(Bracket, i64)> = None;
        // The first one waits for what was submitted before.
        for round in 0..=rounds.max(1) {
            let (number, pair) = pool.free().ok_or(CudaError::PoolExhausted)?;
            let bracket = match self.bracket(pair.end, began, patience) {
                // Others have given the stream work meanwhile. What was read before is true.
                Err(CudaError::Busy { .. }) if best.is_some() => break,
                bracket => bracket?,
            };
            let is_better = best.as_ref().is_none_or(|(best, _)| bracket.width() < best.width());
            if round > 0 && is_better {
                let call = context.driver.elapsed_name;
                let refused = |unplaced| match unplaced {
                    Unplaced::Refused(code) => context.refused(call)(code),
                    Unplaced::NoNumber => CudaError::NoNumber { call },
                };
                let placed = drain.positions.place(pool, number, pair.end, 0).map_err(refused)?;
                if placed.is_anchor {
                    pool.take_free();
                }
                best = Some((bracket, placed.at));
            }
        }
        let (bracket, at) = best.ok_or(CudaError::PoolExhausted)?;
        let quantum = drain.positions.quantum_ns().map_or(0, u64::from);
        let slack = ticks_of(RESOLUTION_NS.max(quantum), C::ticks_per_second());
        let reading = Calibration {
            device_ns: u64::try_from(at).unwrap_or(0),
            before: Ticks(bracket.before.0.saturating_sub(slack)),
            after: Ticks(bracket.after.0.saturating_add(slack)),
        };
        let Calibration { device_ns, before, after } = reading;
        drain.lane.recorder().clock_sync(self.shared.clock, device_ns, before, after);
        let ns = |ticks: Ticks| ns_of(ticks.0, C::ticks_per_second());
        drain.readings.add(DeviceReading { device_ns, before: ns(before), after: ns(after) });
        Ok(reading)
    }

    /// The line through all readings so far; `None` before the first. (Its host side is nanoseconds of the
    /// recording clock at its nominal rate; the file's reader has a better one.)
    pub fn fit(&self) -> Option<DeviceFit> {
        self.shared.drain().readings.fit()
    }

    fn bracket(
        &self,
        event: Event,
        began: Instant,
        patience: Duration,
    ) -> Result<Bracket, CudaError> {
        let context = &self.shared.context;
        let driver = context.driver;
        let before = C::ticks();
        let recorded = driver.record(event.0, self.pool.stream.0);
        recorded.map_err(context.refused("cuEventRecord"))?;
        loop {
            let query = driver.query(event.0).map_err(context.refused("cuEventQuery"))?;
            if query == Query::Done {
                return Ok(Bracket { before, after: C::ticks() });
            }
            if began.elapsed() > patience {
                let waited_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
                return Err(CudaError::Busy { waited_ms });
            }
            spin_loop();
        }
    }
}

fn ticks_of(ns: u64, per_second: u64) -> u64 {
    let per_second = if per_second == 0 { 1_000_000_000 } else { per_second };
    let ticks = u128::from(ns).saturating_mul(per_second.into()).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

fn ns_of(ticks: u64, per_second: u64) -> u64 {
    let per_second = if per_second == 0 { 1_000_000_000 } else { per_second };
    let ns = u128::from(ticks).saturating_mul(1_000_000_000) / u128::from(per_second);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
