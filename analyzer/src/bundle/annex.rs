//! `tmrun.json`: what a recording says of a region, and no format of the neighbour has a place for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tmrun_formats::bundle::Tool;
use tmrun_formats::evidence::Graph;
use tmrun_formats::trace::{CoverageLevel, GradientContract};
use tmrun_formats::wire::LevelChange;
use tmrun_formats::{LaneId, Level};

use crate::scan::{Gap, Recording};
use crate::slice::{Measured, Region};
use crate::trace::{Derived, MovedFacts, MovedSpan, NonFinite, Refuted};

/// So much of a list that may be long is listed, and the rest counted.
const LISTED: usize = 1_000;

/// The schema of an [`Annex`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnnexSchema {
    /// The only one there is.
    #[default]
    #[serde(rename = "tmrun/bundle/1")]
    V1,
}

/// `tmrun.json`. Times are nanoseconds of the trace; what was before it is at 0, what is behind it at
/// its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Annex<'a> {
    /// The label.
    pub schema: AnnexSchema,
    /// What wrote it.
    pub tool: Tool<'a>,
    /// The trace's run.
    pub run_id: Cow<'a, str>,
    /// What is measured.
    pub region: AnnexRegion<'a>,
    /// What is missing of it, in order of time.
    pub gaps: Vec<AnnexGap<'a>>,
    /// The planes that the run declared to be complete and the trace declares to be partial.
    pub refuted: Vec<AnnexRefuted<'a>>,
    /// The gradients that the run expected, where the trace cannot hold it to them.
    pub gradient_contract: Option<Cow<'a, GradientContract>>,
    /// The level that was in force when the trace begins, and its changes.
    pub levels: Vec<AnnexLevel<'a>>,
    /// The same of every focus.
    pub foci: Vec<AnnexLevel<'a>>,
    /// How ticks became nanoseconds, and how far that may be off.
    pub clock: AnnexClock<'a>,
    /// Spans that hang elsewhere than was recorded, up to a thousand.
    pub moved_spans: Vec<AnnexMovedSpan<'a>>,
    /// How many more do.
    pub more_moved_spans: u64,
    /// Facts that do, up to a thousand rows.
    pub moved_facts: Vec<AnnexMovedFacts<'a>>,
    /// How many facts more do.
    pub more_moved_facts: u64,
    /// Storages that were live when the region began.
    pub carried_storages: u64,
    /// Their bytes.
    pub carried_bytes: u64,
    /// Storages whose name another one took while their end was not known: what the later one is called.
    pub renamed_storages: Vec<Cow<'a, str>>,
    /// What the trace has no place for, and how often it was left out.
    pub left_out: BTreeMap<Cow<'a, str>, u64>,
    /// What stands in the trace as something else, because nobody knows.
    pub unknown: AnnexUnknown,
    /// The values that are not finite, in order of time.
    pub non_finite: Vec<AnnexNonFinite<'a>>,
    /// The first of them.
    pub origin: Option<AnnexNonFinite<'a>>,
    /// The graph, where its gradients alone keep it out of the evidence.
    pub graph: Option<Graph<'a>>,
    /// What recording the run took.
    pub recorder: AnnexRecorder<'a>,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexRegion<'a> {
    /// `step`, `span`, or `run` of one that broke off before anything was.
    pub measured: Cow<'a, str>,
    /// The step.
    pub step: Option<u64>,
    /// The lane that it is on.
    pub lane: Option<u16>,
    /// When it begins.
    pub first_ns: u64,
    /// When it ends, or the last moment that is known.
    pub last_ns: u64,
    /// Whether its beginning was seen.
    pub begun: bool,
    /// Whether its end was seen.
    pub ended: bool,
}

/// A gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexGap<'a> {
    /// `lost` or `not_requested`.
    pub class: Cow<'a, str>,
    /// Why.
    pub reason: Cow<'a, str>,
    /// Its lane, where it has one.
    pub lane: Option<u16>,
    /// The earliest moment at which something may be missing.
    pub first_ns: u64,
    /// The latest.
    pub last_ns: u64,
    /// Records that are missing; 0 also where nobody counted.
    pub records: u64,
    /// Groups that are.
    pub groups: u64,
    /// Kinds of evidence that may be missing.
    pub planes: Vec<Cow<'a, str>>,
}

/// A claim that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexRefuted<'a> {
    /// The plane, as the contract calls it.
    pub plane: Cow<'a, str>,
    /// What was declared.
    pub declared: CoverageLevel,
    /// What the trace declares.
    pub instead: CoverageLevel,
    /// Why.
    pub because: Cow<'a, str>,
}

/// A span that hangs elsewhere than was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexMovedSpan<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// The id of the span that it hung on, whether the trace has that or not.
    pub recorded: Cow<'a, str>,
    /// The id of the one that it hangs on.
    pub parent: Cow<'a, str>,
}

/// Facts of a lane that hang elsewhere than was recorded, of one span on one other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexMovedFacts<'a> {
    /// The lane.
    pub lane: u16,
    /// The id of the span that they were recorded within, where that is known.
    pub recorded: Option<Cow<'a, str>>,
    /// The id of the span that they hang on.
    pub span_id: Cow<'a, str>,
    /// How many there are.
    pub facts: u64,
}

/// A level that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexLevel<'a> {
    /// Of a focus, the names that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    /// The level.
    pub level: u8,
    /// What it is called.
    pub name: Option<Cow<'a, str>>,
    /// The level before.
    pub old: u8,
    /// Who set it.
    pub source: Option<Cow<'a, str>>,
    /// When somebody asked for it.
    pub asked_ns: u64,
    /// When every site followed.
    pub armed_ns: u64,
}

/// A clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnexClock<'a> {
    /// What it is called.
    pub name: Option<Cow<'a, str>>,
    /// Whether it ticks evenly on all cores.
    pub invariant: Option<bool>,
    /// The rate that was expected.
    pub nominal_ticks_per_second: u64,
    /// The rate that was found.
    pub measured_ticks_per_second: Option<f64>,
    /// How far the rate between two samples lies from that, at most.
    pub rate_spread_ppm: Option<f64>,
    /// Samples that the map goes through.
    pub calibrations: u64,
    /// Samples that were set aside.
    pub set_aside: u64,
    /// How far a nanosecond may be off by the reading of a sample, at most.
    pub uncertainty_ns: u64,
}

/// Counts of what nobody knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexUnknown {
    /// Names that are not in the recording.
    pub names: u64,
    /// Tensor events of tensors that nothing identifies.
    #[serde(default)]
    pub tensor_identities: u64,
    /// Operations whose inputs' bytes stand as 0.
    pub input_bytes: u64,
    /// Operations without dimensions, which stand as scalars.
    pub shapes: u64,
    /// Operations of which not all inputs are known.
    pub truncated_inputs: u64,
}

/// A value that is not finite, or several of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexNonFinite<'a> {
    /// `tensor`, `scalar` or `gradient`.
    pub of: Cow<'a, str>,
    /// What was looked at; of a gradient `root/key`.
    pub label: Cow<'a, str>,
    /// The span that it was recorded within.
    pub span_id: Cow<'a, str>,
    /// When.
    pub timestamp_ns: u64,
    /// NaN.
    pub nan: u64,
    /// Positive infinities, where they are told from negative ones.
    pub positive_infinities: Option<u64>,
    /// Negative ones.
    pub negative_infinities: Option<u64>,
    /// Both together.
    pub infinities: u64,
}

/// What recording took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnexRecorder<'a> {
    /// Nanoseconds of a record, by the recorder's own measure.
    pub record_ns: Option<f64>,
    /// Of a span.
    pub span_ns: Option<f64>,
    /// Names that did not fit its table.
    pub unnamed: u64,
    /// Records that a lane's ring holds.
    pub ring_slots: Option<u64>,
    /// The lanes that the part of the recording has anything of, with what they counted in all.
    pub lanes: Vec<AnnexLane<'a>>,
}

/// What a lane counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnexLane<'a> {
    /// The lane.
    pub lane: u16,
    /// Who claimed it last.
    pub name: Option<Cow<'a, str>>,
    /// Records that it dropped, in the whole run.
    pub dropped_records: u64,
    /// Groups that it dropped.
    pub dropped_groups: u64,
    /// Facts that lost their end.
    pub truncated: u64,
    /// Guards that were dropped out of order.
    pub out_of_order: u64,
    /// Most records that waited in its ring.
    pub high_water: u64,
}

impl<'a> Annex<'a> {
    /// What a recording says of a region, beside its trace.
    pub(super) fn of(
        recording: &'a Recording<'_>,
        region: &Region,
        derived: &'a Derived<'_>,
        graph: Option<Graph<'a>>,
    ) -> Self {
        let time = Time {
            clock: recording.clock(),
            zero: derived.zero,
            end: derived.document.terminal.timestamp_ns,
        };
        let told = &derived.told;
        let mut gaps: Vec<_> = told.gaps.iter().map(|gap| time.gap(gap)).collect();
        gaps.sort_by(|a, b| time_of(a).cmp(&time_of(b)));
        let non_finite: Vec<_> = told.non_finite.iter().map(of_non_finite).collect();
        let left_out = told.left_out.iter();
        let more_moved_facts = told.moved_facts.iter().skip(LISTED).map(|moved| moved.facts);
        Self {
            schema: AnnexSchema::V1,
            tool: tool(),
            run_id: (&*derived.document.run.run_id).into(),
            region: time.region(region),
            gaps,
            refuted: told.refuted.iter().map(of_refuted).collect(),
            gradient_contract: told.gradient_contract.as_ref().map(Cow::Borrowed),
            levels: levels(recording, region, &time),
            foci: foci(recording, region, &time),
            clock: clock(recording, region),
            moved_spans: told.moved_spans.iter().take(LISTED).map(of_moved_span).collect(),
            more_moved_spans: told.moved_spans.len().saturating_sub(LISTED) as u64,
            moved_facts: told.moved_facts.iter().take(LISTED).map(of_moved_facts).collect(),
            more_moved_facts: more_moved_facts.fold(0, u64::saturating_add),
            carried_storages: told.carried.0,
            carried_bytes: told.carried.1,
            renamed_storages: told.renamed_storages.iter().map(|id| (&**id).into()).collect(),
            left_out: left_out.map(|(what, &count)| (what.name().into(), count)).collect(),
            unknown: AnnexUnknown {
                names: told.unnamed,
                tensor_identities: told.unidentified_tensors,
                input_bytes: told.unknown_input_bytes,
                shapes: told.unknown_shapes,
                truncated_inputs: told.truncated_inputs,
            },
            origin: non_finite.first().cloned(),
            non_finite,
            graph,
            recorder: recorder(recording),
        }
    }
}

/// What writes bundles.
pub(super) fn tool() -> Tool<'static> {
    Tool { package: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
}

/// Moments of a recording as those of its trace.
struct Time<'r> {
    clock: crate::scan::Clock<'r>,
    zero: tmrun_formats::HostNs,
    end: u64,
}

impl Time<'_> {
    fn at(&self, ticks: tmrun_formats::Ticks) -> u64 {
        self.clock.host_ns(ticks).since(self.zero).min(self.end)
    }

    fn region(&self, region: &Region) -> AnnexRegion<'static> {
        let (measured, step) = match region.measured {
            Measured::Step(number) => ("step", Some(number)),
            Measured::Span(..) => ("span", None),
            Measured::Run => ("run", None),
        };
        AnnexRegion {
            measured: measured.into(),
            step,
            lane: Some(region.lane.0).filter(|_| region.measured != Measured::Run),
            first_ns: self.at(region.first),
            last_ns: self.at(region.last),
            begun: region.begun,
            ended: region.ended,
        }
    }

    fn gap(&self, gap: &Gap) -> AnnexGap<'static> {
        AnnexGap {
            class: gap.class.name().into(),
            reason: gap.reason_name(),
            lane: gap.lane.map(|lane| lane.0),
            first_ns: self.at(gap.first),
            last_ns: self.at(gap.last),
            records: gap.records,
            groups: gap.groups,
            planes: gap.planes.names().map(Into::into).collect(),
        }
    }

    fn level<'a>(&self, change: &LevelChange, pattern: Option<Cow<'a, str>>) -> AnnexLevel<'a> {
        let Level(level) = change.new;
        AnnexLevel {
            pattern,
            level,
            name: change.new.name().map(Into::into),
            old: change.old.0,
            source: change.source.name().map(Into::into),
            asked_ns: self.at(change.asked),
            armed_ns: self.at(change.armed),
        }
    }
}

fn time_of<'g>(gap: &'g AnnexGap<'_>) -> (u64, u64, Option<u16>, &'g str, u64) {
    (gap.first_ns, gap.last_ns, gap.lane, &gap.reason, gap.records)
}

fn of_refuted(refuted: &Refuted) -> AnnexRefuted<'_> {
    AnnexRefuted {
        plane: refuted.plane.into(),
        declared: refuted.declared,
        instead: refuted.instead,
        because: (&*refuted.because).into(),
    }
}

fn of_moved_span(moved: &MovedSpan) -> AnnexMovedSpan<'_> {
    let MovedSpan { id, recorded, parent } = moved;
    AnnexMovedSpan { id: id.into(), recorded: recorded.into(), parent: parent.into() }
}

fn of_moved_facts(moved: &MovedFacts) -> AnnexMovedFacts<'_> {
    AnnexMovedFacts {
        lane: moved.lane.0,
        recorded: moved.recorded.as_deref().map(Cow::Borrowed),
        span_id: (&*moved.span_id).into(),
        facts: moved.facts,
    }
}

fn of_non_finite(value: &NonFinite) -> AnnexNonFinite<'_> {
    AnnexNonFinite {
        of: value.of.name().into(),
        label: (&*value.label).into(),
        span_id: (&*value.span_id).into(),
        timestamp_ns: value.timestamp_ns,
        nan: value.nan,
        positive_infinities: value.positive,
        negative_infinities: value.positive.map(|positive| value.infinite.saturating_sub(positive)),
        infinities: value.infinite,
    }
}

/// Whether a change was armed before the region, and when it matters at all: not behind it.
fn is_before(change: &LevelChange, region: &Region) -> Option<bool> {
    (change.asked <= region.extent.1).then_some(change.armed <= region.extent.0)
}

fn levels<'a>(recording: &Recording<'_>, region: &Region, time: &Time<'_>) -> Vec<AnnexLevel<'a>> {
    let mut levels = Vec::new();
    for change in recording.levels().changes() {
        match is_before(change, region) {
            Some(true) => levels.clear(),
            Some(false) => {}
            None => continue,
        }
        levels.push(time.level(change, None));
    }
    levels
}

fn foci<'a>(recording: &'a Recording<'_>, region: &Region, time: &Time<'_>) -> Vec<AnnexLevel<'a>> {
    // The changes from this one on are told, of each focus that one of before the region was in force of.
    let mut from: BTreeMap<Cow<'a, str>, usize> = BTreeMap::new();
    let mut told = Vec::new();
    for focus in recording.levels().foci() {
        let name = recording.names().text(focus.pattern);
        let pattern: Cow<'a, str> =
            name.map_or_else(|| format!("unnamed:{}", focus.pattern.0).into(), Cow::Borrowed);
        let Some(is_before) = is_before(&focus.change, region) else { continue };
        if is_before {
            from.insert(pattern.clone(), told.len());
        }
        told.push((pattern, &focus.change));
    }
    let told = told.into_iter().enumerate();
    let told = told.filter(|(at, (pattern, _))| from.get(pattern).is_none_or(|from| from <= at));
    told.map(|(_, (pattern, change))| time.level(change, Some(pattern))).collect()
}

fn clock<'a>(recording: &'a Recording<'_>, region: &Region) -> AnnexClock<'a> {
    let run = recording.meta().run.as_ref();
    let calibrations = recording.calibrations();
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    AnnexClock {
        name: run.map(|run| run.clock.into()),
        invariant: run.map(|run| run.clock_invariant),
        nominal_ticks_per_second: recording.header().ticks_per_second,
        measured_ticks_per_second: finite(calibrations.measured_rate()),
        rate_spread_ppm: finite(calibrations.rate_spread_ppm()),
        calibrations: calibrations.used,
        set_aside: calibrations.set_aside,
        uncertainty_ns: recording.clock().span_ns(region.first, calibrations.uncertainty),
    }
}

fn recorder<'a>(recording: &'a Recording<'_>) -> AnnexRecorder<'a> {
    let cost = recording.cost();
    let lanes = recording.lanes().iter().filter(|(id, _)| *id != LaneId::RECORDER);
    let lanes = lanes.filter(|(_, lane)| lane.records > 0).filter_map(|(id, lane)| {
        let counted = lane.counters()?;
        Some(AnnexLane {
            lane: id.0,
            name: lane.claim.map(|claim| claim.name.into()),
            dropped_records: counted.dropped_records,
            dropped_groups: counted.dropped_groups,
            truncated: counted.truncated,
            out_of_order: counted.out_of_order,
            high_water: counted.high_water,
        })
    });
    AnnexRecorder {
        record_ns: cost.map(|cost| cost.record_ns),
        span_ns: cost.map(|cost| cost.span_ns),
        unnamed: recording.meta().cost.map_or(0, |cost| cost.unnamed),
        ring_slots: recording.meta().run.map(|run| run.ring_slots).filter(|&slots| slots > 0),
        lanes: lanes.collect(),
    }
}
