//! Time: the host's, and that of each device.

use std::time::Instant;

use crate::config::Config;

/// The handle of a device's primary context.
pub(crate) const fn context_of(device: i32) -> usize {
    0x100 + device as usize
}

#[derive(Debug)]
pub(crate) struct Time {
    began: Instant,
    manual_ns: u64,
}

impl Time {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), manual_ns: 0 }
    }

    pub(crate) const fn advance(&mut self, ns: u64) {
        self.manual_ns = self.manual_ns.saturating_add(ns);
    }

    /// Nanoseconds of the host since the first call.
    pub(crate) fn host(&self, config: &Config) -> u64 {
        if config.manual { self.manual_ns } else { self.began.elapsed().as_nanos() as u64 }
    }

    /// What the clock of the device with this context shows.
    pub(crate) fn device(&self, config: &Config, context: usize) -> u64 {
        let ordinal = context.saturating_sub(context_of(0));
        let ppm = config.drift_ppm.get(ordinal).or(config.drift_ppm.first()).copied();
        let host = self.host(config);
        let ahead = (host as f64 * ppm.unwrap_or(0.0) * 1e-6).round() as i64;
        let offset = config.offset_ns.saturating_add(ordinal as u64 * 1_000_000_000_000);
        offset.saturating_add(host).saturating_add_signed(ahead)
    }
}
