//! The bodies, one struct a version.

use serde::{Deserialize, Serialize};

use crate::wire::{StepMark, StepState};
use crate::{
    ClockCode, DType, DeviceCode, GapReason, HostNs, LaneId, Level, NameId, Phase, RunId, SpanId,
    Ticks,
};

/// The run. Strings that the application did not give are empty or `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunV1<'a> {
    /// The run's identity, as in the file header.
    pub run: RunId,
    /// The run's identity as the application calls it.
    pub run_id: &'a str,
    /// What joins this run to others of the same work.
    #[serde(borrow)]
    pub correlation_id: Option<&'a str>,
    /// The entry point, such as `trainer::update`.
    pub entrypoint: &'a str,
    /// The device of the run, such as `cpu` or `cuda:0`.
    pub device: &'a str,
    /// What the run does, unless its steps say otherwise.
    pub phase: Phase,
    /// The invocation that was chosen for capture, from 1.
    pub capture_step: u64,
    /// Invocations before it that warmed up.
    pub warmup_steps: u64,
    /// Every reported span is bounded by device synchronisation.
    pub device_synchronized: bool,
    /// The measured region is bounded by device synchronisation.
    pub measured_region_synchronized: bool,
    /// Version of candle.
    #[serde(borrow)]
    pub candle_version: Option<&'a str>,
    /// Build profile.
    pub profile: &'a str,
    /// Identity of the static analysis that ids were copied from.
    #[serde(borrow)]
    pub analysis_id: Option<&'a str>,
    /// Identity of the build.
    #[serde(borrow)]
    pub build_id: Option<&'a str>,
    /// Host name.
    #[serde(borrow)]
    pub host: Option<&'a str>,
    /// Process id.
    pub pid: Option<u32>,
    /// Rank among the processes of the run.
    pub rank: Option<u32>,
    /// How many processes the run has.
    pub world_size: Option<u32>,
    /// Where the rings are mapped.
    #[serde(borrow)]
    pub rings: Option<&'a str>,
    /// The recording clock's name, such as `tsc`.
    pub clock: &'a str,
    /// Whether the recording clock runs at a constant rate.
    pub clock_invariant: bool,
    /// Records that a lane's ring holds.
    pub ring_slots: u64,
}

/// A tag: a key and a value of the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagV1<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: &'a str,
}

/// An entry of a list of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemV1<'a> {
    /// The string.
    pub text: &'a str,
}

/// What the producer says that it covered: 0 none, 1 partial, 2 complete for each plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContractV1 {
    /// 0 unknown, 1 profiled work, 2 production equivalent.
    pub measurement_scope: u8,
    /// Operations.
    pub operations: u8,
    /// Activations.
    pub activations: u8,
    /// Tensors.
    pub tensors: u8,
    /// Gradients.
    pub gradients: u8,
    /// Logical memory.
    pub logical_memory: u8,
    /// Physical memory.
    pub physical_memory: u8,
    /// Device timing.
    pub device_timing: u8,
}

/// A semantic label that names exactly one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelV1<'a> {
    /// The label.
    pub text: &'a str,
    /// 0 required, 1 required and expected on the GPU, 2 required and on the CPU alone.
    pub list: u8,
}

/// One expected gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientEntryV1<'a> {
    /// Root of the parameters.
    pub root: &'a str,
    /// The parameter.
    pub key: &'a str,
    /// The family that it belongs to.
    pub family: &'a str,
}

/// A family of expected gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientFamilyV1<'a> {
    /// The family.
    pub family: &'a str,
    /// 0 active, 1 inactive, 2 conditional on the data.
    pub expectation: u8,
    /// The least number of present gradients.
    pub min_present: u64,
}

/// What makes runs comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonIdentityV1<'a> {
    /// The implementation under comparison.
    #[serde(borrow)]
    pub implementation_id: Option<&'a str>,
    /// The workload.
    pub workload_id: &'a str,
    /// The model.
    pub model_id: &'a str,
    /// The configuration.
    pub config_id: &'a str,
    /// The data.
    pub data_id: &'a str,
    /// How seeds are drawn.
    pub seed_policy: &'a str,
    /// Examples in a physical batch.
    pub physical_batch: u64,
    /// Physical batches a step.
    pub accumulation_steps: u64,
    /// Precision.
    pub precision: &'a str,
    /// State of the device.
    pub device_state: &'a str,
    /// The pair that the run belongs to.
    #[serde(borrow)]
    pub pair_id: Option<&'a str>,
}

/// Who claimed a lane, and from where on its counters run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneV1<'a> {
    /// The lane.
    pub lane: LaneId,
    /// How often it had been claimed before.
    pub claim: u64,
    /// Position of the claimer's first record.
    pub sequence: u64,
    /// The claiming thread's name, or what the application calls it.
    pub name: &'a str,
    /// The claiming thread's id, 0 when unknown.
    pub thread: u64,
}

/// An entry of the name table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameV1<'a> {
    /// Its id.
    pub id: NameId,
    /// The name.
    pub text: &'a str,
    /// The type of the node, such as `attention`.
    #[serde(borrow)]
    pub node_type: Option<&'a str>,
    /// The node's id in a static analysis.
    #[serde(borrow)]
    pub static_id: Option<&'a str>,
    /// Where the node stands in the source.
    #[serde(borrow)]
    pub source: Option<&'a str>,
}

/// A static call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteV1<'a> {
    /// Its entry in the name table.
    pub name: NameId,
    /// Code of the kind of records that it makes.
    pub kind: u8,
    /// Its level.
    pub level: Level,
    /// Source file.
    pub file: &'a str,
    /// Line in it.
    pub line: u32,
}

/// What a dtype code from 128 stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DTypeV1<'a> {
    /// The code.
    pub code: DType,
    /// Its name.
    pub name: &'a str,
    /// Bits an element, 0 when unknown.
    pub bits: u16,
}

/// What a device code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceV1<'a> {
    /// The code.
    pub code: DeviceCode,
    /// Its name, such as `cpu` or `cuda:0`.
    pub name: &'a str,
}

/// What a clock code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockV1<'a> {
    /// The code.
    pub code: ClockCode,
    /// Its name.
    pub name: &'a str,
    /// The device that it belongs to.
    pub device: DeviceCode,
    /// What reads it.
    pub backend: &'a str,
}

/// A reading of the recording clock and the host's together: the host's nanosecond lies within
/// `uncertainty` ticks of `ticks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationV1 {
    /// Middle of the bracket, in ticks.
    pub ticks: Ticks,
    /// The host's monotonic nanosecond.
    pub ns: HostNs,
    /// Half of the bracket, in ticks.
    pub uncertainty: u64,
    /// The sample moved the rate too far; it is noted and not used.
    pub set_aside: bool,
}

/// A configuration that Control records refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlV1<'a> {
    /// Its id.
    pub configuration: u64,
    /// The process-wide level.
    pub level: Level,
    /// What else it sets, as its author encoded it.
    #[serde(borrow)]
    pub body: &'a [u8],
}

/// A span that was open when the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSpanV1 {
    /// Its lane.
    pub lane: LaneId,
    /// Its id.
    pub span: SpanId,
    /// The span around it.
    pub parent: SpanId,
    /// Its name.
    pub name: NameId,
    /// When it began.
    pub start: Ticks,
    /// How many spans are around it.
    pub depth: u16,
}

/// How the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalV1<'a> {
    /// It did what it was to do.
    pub complete: bool,
    /// Why it did not.
    #[serde(borrow)]
    pub reason: Option<&'a str>,
    /// When.
    pub ticks: Ticks,
}

/// The counters of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TotalsV1 {
    /// The lane.
    pub lane: LaneId,
    /// Records that took a position, gaps included: the position of the next one.
    pub records: u64,
    /// Spans that took an id.
    pub spans: u64,
    /// Records that were dropped.
    pub dropped_records: u64,
    /// Groups that were dropped.
    pub dropped_groups: u64,
    /// Facts that were longer than a group and lost their end.
    pub truncated: u64,
    /// Guards that were dropped out of order.
    pub out_of_order: u64,
    /// Most records that waited in the ring.
    pub high_water: u64,
}

/// What recording costs, as calibrated at the start, in thousandths of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecorderCostV1 {
    /// A record.
    pub record: u64,
    /// A span.
    pub span: u64,
    /// Names that did not fit the arena.
    pub unnamed: u64,
}

/// Positions of a lane that hold no records: they were stored, and are lost for a known reason. It
/// stands before the lane's next chunk, or behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoleV1 {
    /// The lane.
    pub lane: LaneId,
    /// The first of the positions.
    pub sequence: u64,
    /// How many they are.
    pub records: u64,
    /// Why they are lost.
    pub reason: GapReason,
}

impl HoleV1 {
    /// The position behind the last of them.
    pub const fn end(&self) -> u64 {
        self.sequence.saturating_add(self.records)
    }
}

/// Which of several files of a recording this one is: behind everything else that it begins with,
/// and with `next` at its end. Files are named without their folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartV1<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// The file before it.
    #[serde(borrow)]
    pub previous: Option<&'a str>,
    /// The file that goes on where this one ends.
    #[serde(borrow)]
    pub next: Option<&'a str>,
    /// Records without a lane that the files before it tell of.
    pub no_lane_records: u64,
    /// Groups of them.
    pub no_lane_groups: u64,
}

/// Where a file takes up a lane of which the files before it have something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaneStartV1 {
    /// The lane.
    pub lane: LaneId,
    /// The position of its first record in this file.
    pub sequence: u64,
    /// Records that were dropped, as the files before it tell.
    pub dropped_records: u64,
    /// Groups of them.
    pub dropped_groups: u64,
}

/// Files of the recording that were removed because nobody asked to keep them. Of several frames
/// with one `first` the last holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemovedV1 {
    /// Number of the first of them.
    pub first: u64,
    /// Number of the last of them.
    pub last: u64,
    /// How many of these were removed.
    pub files: u64,
    /// Records that they had.
    pub records: u64,
    /// When the first of them began.
    pub from: Ticks,
    /// When the last of them ended.
    pub to: Ticks,
}

/// The step that a lane is in at a position, where the marks that led to it are not in the file. It
/// stands before the lane's chunk that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaneStepV1 {
    /// The lane.
    pub lane: LaneId,
    /// The position.
    pub sequence: u64,
    /// The step's number; 0 when none is open.
    pub number: u64,
    /// What the step does.
    pub phase: Phase,
    /// The micro-batch that is open in it.
    pub micro_batch: Option<u32>,
    /// The step stays open when the micro-batch ends.
    pub within_step: bool,
    /// No step mark can have been lost before.
    pub sure: bool,
}

impl LaneStepV1 {
    /// The frame of a state.
    pub fn of(lane: LaneId, sequence: u64, state: StepState) -> Self {
        let StepState { open, sure } = state;
        let place = Self { lane, sequence, sure, ..Self::default() };
        open.map_or(place, |open| Self {
            number: open.number,
            phase: open.phase,
            micro_batch: open.micro_batch,
            within_step: open.within_step,
            ..place
        })
    }

    /// The state that it says.
    pub fn state(&self) -> StepState {
        let open = StepMark {
            number: self.number,
            phase: self.phase,
            micro_batch: self.micro_batch,
            within_step: self.within_step,
        };
        StepState { open: Some(open).filter(|open| open.number != 0), sure: self.sure }
    }
}
