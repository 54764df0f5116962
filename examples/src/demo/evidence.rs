//! What a recording says of the run, gathered from the file.

use std::collections::{BTreeMap, HashMap};

use tmrun::scan::{Clock, RecordChunk, Recording, StepState};
use tmrun::severed::{Severed, of_recording};
use tmrun_formats::wire::{
    Alloc, DeviceMemory, Gradient, Kind, Record, RecordHeader, Scalar, Span, Stats, Step, flags,
};
use tmrun_formats::{GradientState, LaneId, SpanId, SpanKind, Ticks};

/// What a recording says of the run.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// How long each step took, in order.
    pub steps: Vec<StepTime>,
    /// The duration of the measured region.
    pub measured_ns: Option<u64>,
    /// Time in the parts of a step, by name.
    pub parts: BTreeMap<String, PartTime>,
    /// Time in each layer, by address.
    pub layers: BTreeMap<String, LayerTime>,
    /// Each scalar by label: the steps and their values, in order.
    pub scalars: BTreeMap<String, Vec<(u64, f64)>>,
    /// What became of the gradient of each parameter.
    pub gradients: BTreeMap<String, GradientCounts>,
    /// Where the gradients of parameters that never had one likely stop.
    pub severed: Vec<Severed>,
    /// The first gradient that was not finite.
    pub bad_gradient: Option<NonFinite>,
    /// The first tensor in whose statistics NaN or an infinity was counted.
    pub bad_tensor: Option<NonFinite>,
    /// Bytes of the storages that were recorded as allocated.
    pub allocated: u64,
    /// Bytes that the process had in memory: least and greatest.
    pub resident: Option<(u64, u64)>,
}

/// How long a step took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// Its number.
    pub number: u64,
    /// Nanoseconds from its first mark to its last.
    pub ns: u64,
}

/// Time in one part of a step: in all spans of that name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartTime {
    /// How many there were.
    pub calls: u64,
    /// Nanoseconds in them.
    pub total_ns: u64,
    /// Nanoseconds in them and in no span within.
    pub own_ns: u64,
}

/// Time in one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerTime {
    /// The layer's type.
    pub kind: String,
    /// How often it was called.
    pub calls: u64,
    /// Nanoseconds in it and in what it called.
    pub total_ns: u64,
    /// Nanoseconds in it alone.
    pub own_ns: u64,
}

/// How often a gradient was what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GradientCounts {
    /// Finite and not zero.
    pub present: u64,
    /// Not there.
    pub missing: u64,
    /// Zero everywhere.
    pub zero: u64,
    /// NaN or infinity was in it.
    pub non_finite: u64,
}

/// Something that was not finite, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonFinite {
    /// The step, 0 outside any.
    pub step: u64,
    /// The layer or the parameter.
    pub name: String,
}

impl Evidence {
    /// Reads a recording from beginning to end.
    pub fn of(recording: &Recording<'_>) -> Self {
        let clock = recording.clock();
        let mut gather = Gather {
            recording,
            clock,
            found: Self { severed: of_recording(recording), ..Self::default() },
            within: HashMap::new(),
            begun: HashMap::new(),
        };
        for chunk in recording.record_chunks() {
            let mut state = chunk.step();
            for group in chunk.groups() {
                gather.group(&chunk, &mut state, group);
            }
        }
        gather.found
    }

    /// The step whose time is the greatest.
    pub fn slowest_step(&self) -> Option<StepTime> {
        self.steps.iter().copied().max_by_key(|step| step.ns)
    }

    /// The first step whose value of this scalar is not finite.
    pub fn first_non_finite(&self, label: &str) -> Option<u64> {
        let mut series = self.scalars.get(label)?.iter();
        series.find(|(_, value)| !value.is_finite()).map(|(step, _)| *step)
    }
}

/// The pass over the records. A lane's records come in their order; the demo has one lane.
struct Gather<'r> {
    recording: &'r Recording<'r>,
    clock: Clock<'r>,
    found: Evidence,
    /// Time of the spans within a span whose own record is still to come.
    within: HashMap<(LaneId, SpanId), u64>,
    /// When the open step of a lane began.
    begun: HashMap<LaneId, Ticks>,
}

impl Gather<'_> {
    fn group(&mut self, chunk: &RecordChunk<'_>, state: &mut StepState, group: &[Record]) {
        let Some(head) = group.first() else { return };
        let header = head.header();
        if let Some(step) = head.payload::<Step>() {
            *state = state.after(&header, &step);
            self.step(chunk.lane(), &header, &step);
        }
        let step = state.open.map_or(0, |open| open.number);
        if let Some(span) = head.payload::<Span>() {
            self.span(&header, &span);
        } else if let Some(scalar) = head.payload::<Scalar>() {
            let series = self.found.scalars.entry(self.name(&header)).or_default();
            series.push((step, scalar.value));
        } else if let Some(gradient) = head.payload::<Gradient>() {
            self.gradient(step, &header, &gradient);
        } else if head.kind() == Some(Kind::Tensor) {
            self.tensor(step, &header, group);
        } else if let Some(alloc) = head.payload::<Alloc>() {
            self.found.allocated = self.found.allocated.saturating_add(alloc.bytes);
        } else if let Some(memory) = head.payload::<DeviceMemory>()
            && header.flags & flags::MEMORY_USED != 0
        {
            let (least, greatest) = self.found.resident.unwrap_or((memory.used, memory.used));
            self.found.resident = Some((least.min(memory.used), greatest.max(memory.used)));
        }
    }

    fn name(&self, header: &RecordHeader) -> String {
        self.recording.names().text(header.name).unwrap_or("(unnamed)").to_owned()
    }

    fn ns_between(&self, start: Ticks, end: Ticks) -> u64 {
        self.clock.ns(end).saturating_sub(self.clock.ns(start))
    }

    fn step(&mut self, lane: LaneId, header: &RecordHeader, step: &Step) {
        if header.flags & flags::STEP_MICRO_BATCH != 0 {
            return;
        }
        if header.flags & flags::STEP_END == 0 {
            self.begun.insert(lane, header.ticks);
        } else if let Some(start) = self.begun.remove(&lane) {
            let ns = self.ns_between(start, header.ticks);
            self.found.steps.push(StepTime { number: step.number, ns });
        }
    }

    /// A span's record comes behind those of the spans within it.
    fn span(&mut self, header: &RecordHeader, span: &Span) {
        let ns = self.ns_between(header.ticks, span.end);
        let within = self.within.remove(&(span.own_lane, span.id(header.span))).unwrap_or_default();
        if !span.parent.is_none() {
            *self.within.entry((span.parent_lane, span.parent)).or_default() += ns;
        }
        let own_ns = ns.saturating_sub(within);
        let name = self.name(header);
        if header.flags & flags::SPAN_MEASURED != 0 {
            self.found.measured_ns = Some(ns);
        } else if span.kind == SpanKind::MODULE {
            let kind = self.recording.names().get(header.name).and_then(|name| name.node_type);
            let layer = self.found.layers.entry(name).or_default();
            kind.unwrap_or_default().clone_into(&mut layer.kind);
            layer.calls += 1;
            layer.total_ns += ns;
            layer.own_ns += own_ns;
        } else {
            let part = self.found.parts.entry(name).or_default();
            part.calls += 1;
            part.total_ns += ns;
            part.own_ns += own_ns;
        }
    }

    fn gradient(&mut self, step: u64, header: &RecordHeader, gradient: &Gradient) {
        let name = self.name(header);
        let counts = self.found.gradients.entry(name.clone()).or_default();
        match gradient.state {
            GradientState::PRESENT => counts.present += 1,
            GradientState::MISSING => counts.missing += 1,
            GradientState::ZERO => counts.zero += 1,
            GradientState::NON_FINITE => {
                counts.non_finite += 1;
                self.found.bad_gradient.get_or_insert(NonFinite { step, name });
            }
            _ => {}
        }
    }

    fn tensor(&mut self, step: u64, header: &RecordHeader, group: &[Record]) {
        let stats = group.iter().find_map(|record| record.payload::<Stats>());
        if stats.is_some_and(|stats| stats.nan > 0 || stats.inf > 0) {
            let name = self.name(header);
            self.found.bad_tensor.get_or_insert(NonFinite { step, name });
        }
    }
}
