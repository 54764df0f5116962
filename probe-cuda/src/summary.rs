//! What came of it.

use std::sync::atomic::Ordering;

use tmrun_probe_core::GapReason;

use crate::pool::Pool;

/// Intervals that were asked for, and what became of them: attempted = recorded + missing, when the
/// device is [finished](crate::CudaProbe::finish).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CudaCounts {
    /// Intervals that were asked for while timing was.
    pub attempted: u64,
    /// Those that were recorded.
    pub recorded: u64,
    /// Those that found no free event.
    pub pool_exhausted: u64,
    /// Those that were captured into a graph.
    pub graph_capture: u64,
    /// Those on a thread with another stream.
    pub wrong_thread: u64,
    /// Those that had not ended in the end.
    pub not_ready: u64,
    /// Those that the driver refused.
    pub driver_error: u64,
    /// The most by which a position may be off, for what the driver's floats cannot tell, summed up from
    /// the first interval; the stamps themselves taken as exact.
    pub position_error_ns: f64,
    /// The quantum of the stamps, where the distances tell it.
    pub stamp_quantum_ns: Option<u16>,
}

impl CudaCounts {
    /// Intervals that are gaps in the file.
    pub const fn missing(&self) -> u64 {
        self.pool_exhausted
            .saturating_add(self.graph_capture)
            .saturating_add(self.wrong_thread)
            .saturating_add(self.not_ready)
            .saturating_add(self.driver_error)
    }

    pub(crate) fn add(&mut self, reason: GapReason, count: u64) {
        let of = match reason {
            GapReason::POOL_EXHAUSTED => &mut self.pool_exhausted,
            GapReason::GRAPH_CAPTURE => &mut self.graph_capture,
            GapReason::WRONG_THREAD => &mut self.wrong_thread,
            GapReason::NOT_READY => &mut self.not_ready,
            _ => &mut self.driver_error,
        };
        *of = of.saturating_add(count);
    }

    pub(crate) fn count_attempts(&mut self, pool: &Pool) {
        let attempted = pool.attempted.load(Ordering::Relaxed);
        self.attempted = self.attempted.saturating_add(attempted);
    }
}
