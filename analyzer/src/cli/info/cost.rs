//! What recording cost, as estimated from the recorder's own calibration.

use tmrun::scan::{LaneSteps, RecordCost, Recording};
use tmrun_formats::Level;
use tmrun_formats::wire::Kind;

/// Of the whole recording, and of one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) record_ns: f64,
    pub(super) span_ns: f64,
    pub(super) total_ns: f64,
    pub(super) step: Option<StepCost>,
}

/// Of one step, on average. All lanes count.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepCost {
    pub(super) ns: f64,
    /// Of the kinds that each level adds.
    pub(super) by_level: [f64; LEVELS],
    /// The cost on the lane of the steps, of the time that passed on it: at most 1. `None` where
    /// that is not known, or counters and times contradict each other.
    pub(super) share: Option<f64>,
}

pub(super) const LEVELS: usize = Level::MAX.0 as usize + 1;

impl Cost {
    /// `steps` are those of the lane that has the most, `time_ns` is how long the recording lasted.
    pub(super) fn of(
        recording: &Recording<'_>,
        steps: &LaneSteps,
        time_ns: Option<u64>,
    ) -> Option<Self> {
        let RecordCost { record_ns, span_ns, .. } = recording.cost()?;
        let of = |spans: u64, records: u64| {
            spans as f64 * span_ns + records.saturating_sub(spans) as f64 * record_ns
        };
        let counts = recording.counts();
        let total_ns = of(counts.of(Kind::Span), counts.total());
        let count = steps.counts.steps;
        let step = (count > 0).then(|| {
            let mut by_level = [0.0; LEVELS];
            for &kind in Kind::ALL.iter() {
                let each = if kind == Kind::Span { span_ns } else { record_ns };
                if let Some(level) = by_level.get_mut(usize::from(kind.level().0)) {
                    *level += counts.of(kind) as f64 * each / count as f64;
                }
            }
            let mut lanes = recording.lanes().iter().map(|(_, lane)| lane);
            let lane = lanes.find(|lane| lane.steps.counts.steps == count);
            let on_lane = lane.map(|lane| of(lane.spans, lane.records));
            let share = on_lane.zip(time_ns).map(|(cost, time)| cost / time as f64);
            let share = share.filter(|share| (0.0..=1.0).contains(share));
            StepCost { ns: total_ns / count as f64, by_level, share }
        });
        Some(Self { record_ns, span_ns, total_ns, step })
    }
}
