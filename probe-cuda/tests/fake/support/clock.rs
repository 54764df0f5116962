//! The recording clock: the driver's own host time, so that both planes are one simulation.

use std::sync::OnceLock;

use tmrun_probe_core::{Clock, Ticks};

/// Where the driver says what time it is.
pub static HOST_NOW: OnceLock<unsafe extern "C" fn() -> u64> = OnceLock::new();

#[derive(Debug)]
pub enum SimulatedClock {}

impl Clock for SimulatedClock {
    const NAME: &'static str = "simulated";

    fn ticks() -> Ticks {
        // SAFETY: the function has no preconditions.
        Ticks(HOST_NOW.get().map_or(0, |now| unsafe { now() }))
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}
