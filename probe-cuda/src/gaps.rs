//! What is missing, counted where it is missed and told by the drain.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tmrun_probe_core::{GapReason, LaneId, Ticks};

use crate::driver::Code;

/// The reasons that are counted.
const REASONS: [GapReason; 5] = [
    GapReason::POOL_EXHAUSTED,
    GapReason::GRAPH_CAPTURE,
    GapReason::WRONG_THREAD,
    GapReason::NOT_READY,
    GapReason::DRIVER_ERROR,
];

/// Gaps of one place: one thread adds to them, another takes them.
#[derive(Debug, Default)]
pub(crate) struct Gaps([Missing; REASONS.len()]);

#[derive(Debug, Default)]
struct Missing {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    lane: AtomicU32,
    code: AtomicU32,
}

/// A gap that was not told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Untold {
    pub(crate) reason: GapReason,
    pub(crate) count: u64,
    pub(crate) first: Ticks,
    pub(crate) last: Ticks,
    pub(crate) lane: LaneId,
    /// The last error of a driver that refused.
    pub(crate) code: Option<Code>,
}

impl Gaps {
    /// The most gaps that there are to tell of at once.
    pub(crate) const REASONS: u32 = REASONS.len() as u32;

    pub(crate) fn add(&self, reason: GapReason, at: Ticks, lane: LaneId) {
        self.add_with(reason, at, lane, None);
    }

    pub(crate) fn refused(&self, code: Code, at: Ticks, lane: LaneId) {
        self.add_with(GapReason::DRIVER_ERROR, at, lane, Some(code));
    }

    #[cold]
    fn add_with(&self, reason: GapReason, at: Ticks, lane: LaneId, code: Option<Code>) {
        let Some(at_reason) = REASONS.iter().position(|&known| known == reason) else { return };
        let Some(missing) = self.0.get(at_reason) else { return };
        // Who takes meanwhile leaves a first moment that is too early, and none that is too late.
        if missing.count.load(Ordering::Acquire) == 0 {
            missing.first.store(at.0, Ordering::Relaxed);
        }
        missing.last.store(at.0, Ordering::Relaxed);
        missing.lane.store(lane.0.into(), Ordering::Relaxed);
        if let Some(Code(code)) = code {
            missing.code.store(code, Ordering::Relaxed);
        }
        missing.count.fetch_add(1, Ordering::Release);
    }

    /// Hands what was not told yet to `each`.
    pub(crate) fn take(&self, mut each: impl FnMut(Untold)) {
        for (&reason, missing) in REASONS.iter().zip(&self.0) {
            if missing.count.load(Ordering::Acquire) == 0 {
                continue;
            }
            let first = missing.first.load(Ordering::Relaxed);
            let count = missing.count.swap(0, Ordering::AcqRel);
            let last = missing.last.load(Ordering::Relaxed).max(first);
            let lane = u16::try_from(missing.lane.load(Ordering::Relaxed)).map(LaneId);
            let code = Some(missing.code.load(Ordering::Relaxed)).filter(|&code| code != 0);
            each(Untold {
                reason,
                count,
                first: Ticks(first),
                last: Ticks(last),
                lane: lane.unwrap_or(LaneId::RECORDER),
                code: code.map(Code),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, GapReason, Gaps, LaneId, Ticks};

    #[test]
    fn every_gap_is_told_once_with_its_range_and_its_last_error() {
        let gaps = Gaps::default();
        for at in 5..8 {
            gaps.add(GapReason::POOL_EXHAUSTED, Ticks(at), LaneId(3));
        }
        gaps.refused(Code(201), Ticks(9), LaneId(4));
        let mut told = Vec::new();
        gaps.take(|gap| told.push((gap.reason, gap.count, gap.first.0, gap.last.0, gap.code)));
        assert_eq!(
            told,
            [
                (GapReason::POOL_EXHAUSTED, 3, 5, 7, None),
                (GapReason::DRIVER_ERROR, 1, 9, 9, Some(Code(201))),
            ]
        );
        gaps.take(|gap| panic!("{gap:?} was told before"));
    }
}
