//! What has to be worked out before it can be shown.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tmrun::devices::Devices;
use tmrun::scan::{ChunkCounts, LaneSteps, Names, Recording};
use tmrun_formats::{LaneId, NameId, Phase};

use super::cost::Cost;
use super::ring::Rings;

/// Numbers that both forms of the answer show.
#[derive(Debug, Default)]
pub(super) struct Facts<'r> {
    pub(super) chunks: ChunkCounts,
    /// The steps of the lane that has the most: others may have joined it, or seen only some.
    pub(super) steps: LaneSteps,
    /// Records that each lane lost, as far as they were counted.
    pub(super) lost: BTreeMap<LaneId, u64>,
    /// From the first record to the last, in nanoseconds since the first calibration.
    pub(super) span_ns: Option<(u64, u64)>,
    /// The greatest half bracket of a calibration, in nanoseconds.
    pub(super) uncertainty_ns: u64,
    pub(super) cost: Option<Cost>,
    pub(super) rings: Option<Rings>,
    pub(super) devices: Devices<'r>,
}

impl<'r> Facts<'r> {
    pub(super) fn of(recording: &Recording<'r>) -> Self {
        let clock = recording.clock();
        let steps = most_steps(recording);
        let uncertainty = recording.calibrations().uncertainty;
        let at = recording.span().map(|span| span.0).unwrap_or_default();
        let span_ns = recording.span().map(|(first, last)| (clock.ns(first), clock.ns(last)));
        let time_ns = span_ns.map(|(first, last)| last.saturating_sub(first));
        Self {
            chunks: *recording.chunk_counts(),
            steps,
            lost: lost(recording),
            span_ns,
            uncertainty_ns: clock.span_ns(at, uncertainty),
            cost: Cost::of(recording, &steps, time_ns),
            rings: Rings::of(recording),
            devices: Devices::of(recording),
        }
    }
}

/// The pattern of a focus, or what stands for one whose name is not in the file.
pub(super) fn pattern_of<'a>(names: &Names<'a>, pattern: NameId) -> Cow<'a, str> {
    names.text(pattern).map_or_else(|| format!("unnamed:{}", pattern.0).into(), Cow::Borrowed)
}

/// The first of the lanes that have the most steps. A step without a phase has the run's.
fn most_steps(recording: &Recording<'_>) -> LaneSteps {
    let lanes = recording.lanes().iter().map(|(_, lane)| lane.steps);
    let mut most = lanes.fold(LaneSteps::default(), |most, lane| {
        if lane.counts.steps > most.counts.steps { lane } else { most }
    });
    let counts = &mut most.counts;
    let unsaid = counts.steps.saturating_sub(counts.train).saturating_sub(counts.infer);
    match recording.meta().run.map(|run| run.phase) {
        Some(Phase::TRAIN) => counts.train = counts.train.saturating_add(unsaid),
        Some(Phase::INFER) => counts.infer = counts.infer.saturating_add(unsaid),
        _ => {}
    }
    most
}

fn lost(recording: &Recording<'_>) -> BTreeMap<LaneId, u64> {
    let mut lost = BTreeMap::new();
    for gap in recording.lost() {
        if let Some(lane) = gap.lane {
            let records: &mut u64 = lost.entry(lane).or_default();
            *records = records.saturating_add(gap.records);
        }
    }
    lost
}
