//! What the metadata frames say.

use std::collections::BTreeMap;

use tmrun_formats::wire::{
    CalibrationV1, Chunk, ClockV1, ComparisonIdentityV1, ContractV1, ControlV1, DTypeV1, DeviceV1,
    Frame, FrameError, GradientEntryV1, GradientFamilyV1, HoleV1, LabelV1, LaneStartV1, LaneV1,
    OpenSpanV1, PartV1, RecorderCostV1, RemovedV1, RunV1, SiteV1, TagV1, TerminalV1, TotalsV1,
};
use tmrun_formats::{ClockCode, DType, DecodeError, DeviceCode, LaneId};

use super::names::Names;

/// The metadata of a file, in file order. All text lies in the file.
#[derive(Debug, Clone, Default)]
pub struct Meta<'a> {
    /// The run; the first frame counts.
    pub run: Option<RunV1<'a>>,
    /// Tags.
    pub tags: Vec<TagV1<'a>>,
    /// Cargo features of the program.
    pub cargo_features: Vec<&'a str>,
    /// Its cfg flags.
    pub cfg: Vec<&'a str>,
    /// What the producer says that it covered; the last frame counts.
    pub contract: Option<ContractV1>,
    /// Semantic labels.
    pub labels: Vec<LabelV1<'a>>,
    /// Expected gradients, in manifest order.
    pub gradient_entries: Vec<GradientEntryV1<'a>>,
    /// Families of expected gradients.
    pub gradient_families: Vec<GradientFamilyV1<'a>>,
    /// What makes runs comparable.
    pub comparison: Option<ComparisonIdentityV1<'a>>,
    /// The name table.
    pub names: Names<'a>,
    /// Call sites.
    pub sites: Vec<SiteV1<'a>>,
    /// Element types from code 128.
    pub dtypes: BTreeMap<DType, DTypeV1<'a>>,
    /// Devices.
    pub devices: BTreeMap<DeviceCode, DeviceV1<'a>>,
    /// Device clocks.
    pub clocks: BTreeMap<ClockCode, ClockV1<'a>>,
    /// Configurations that Control records refer to.
    pub controls: Vec<ControlV1<'a>>,
    /// Spans that were open at the end.
    pub open_spans: Vec<OpenSpanV1>,
    /// How the run ended; the first frame counts.
    pub terminal: Option<TerminalV1<'a>>,
    /// What recording costs; the last frame counts.
    pub cost: Option<RecorderCostV1>,
    /// Positions that are known to hold no records.
    pub holes: Vec<HoleV1>,
    /// Which of several files of the recording it is; the last frame counts.
    pub part: Option<PartV1<'a>>,
    /// Where the file takes up lanes of earlier files.
    pub starts: BTreeMap<LaneId, LaneStartV1>,
    /// Files of the recording that were removed, by the number of the first.
    pub removed: BTreeMap<u64, RemovedV1>,
    /// Frames of kinds or versions that this version does not know.
    pub unknown_frames: u64,
    pub(super) calibrations: Vec<CalibrationV1>,
    /// Where the frame of the run starts.
    pub(super) run_offset: u64,
}

/// Where the frames about lanes go.
pub(super) trait LaneFrames<'a> {
    fn claim(&mut self, claim: LaneV1<'a>);
    fn totals(&mut self, totals: TotalsV1, offset: u64);
}

impl<'a> Meta<'a> {
    /// Takes in the frames of a chunk. Every frame that does not hold is told to `wrong`, and the
    /// others are taken all the same.
    pub(super) fn read(
        &mut self,
        chunk: &Chunk<'a>,
        lanes: &mut dyn LaneFrames<'a>,
        mut wrong: impl FnMut(DecodeError),
    ) {
        for raw in chunk.frames() {
            let raw = match raw {
                Ok(raw) => raw,
                Err(error) => {
                    wrong(error);
                    continue;
                }
            };
            match raw.decode() {
                Ok(frame) => {
                    if let Some(what) = self.take(frame, lanes, chunk.offset, raw.offset) {
                        let (offset, expected, found) = (raw.offset, 1, 2);
                        wrong(DecodeError::Malformed { what, offset, expected, found });
                    }
                }
                Err(FrameError::Unknown { .. }) => {
                    self.unknown_frames = self.unknown_frames.saturating_add(1);
                }
                Err(FrameError::Decode(error)) => wrong(error),
            }
        }
    }

    /// Takes a frame in. When it contradicts an earlier one, that one holds, and what is wrong is
    /// returned.
    fn take(
        &mut self,
        frame: Frame<'a>,
        lanes: &mut dyn LaneFrames<'a>,
        chunk: u64,
        offset: u64,
    ) -> Option<&'static str> {
        match frame {
            Frame::Run(run) => {
                if self.run.is_none() {
                    self.run_offset = offset;
                }
                let kept = *self.run.get_or_insert(run) == run;
                return (!kept).then_some("another Run frame than the first");
            }
            Frame::Tag(tag) => self.tags.push(tag),
            Frame::CargoFeature(item) => self.cargo_features.push(item.text),
            Frame::Cfg(item) => self.cfg.push(item.text),
            Frame::Contract(contract) => self.contract = Some(contract),
            Frame::Label(label) => self.labels.push(label),
            Frame::GradientEntry(entry) => self.gradient_entries.push(entry),
            Frame::GradientFamily(family) => self.gradient_families.push(family),
            Frame::ComparisonIdentity(identity) => self.comparison = Some(identity),
            Frame::Lane(claim) => lanes.claim(claim),
            Frame::Name(name) => {
                let what = "a name's id, which is 0 or has another name already";
                return (!self.names.insert(name)).then_some(what);
            }
            Frame::Site(site) => self.sites.push(site),
            Frame::DType(dtype) => {
                let kept = *self.dtypes.entry(dtype.code).or_insert(dtype) == dtype;
                return (!kept).then_some("a dtype's code, which stands for another already");
            }
            Frame::Device(device) => {
                let kept = *self.devices.entry(device.code).or_insert(device) == device;
                return (!kept).then_some("a device's code, which stands for another already");
            }
            Frame::Clock(clock) => {
                let kept = *self.clocks.entry(clock.code).or_insert(clock) == clock;
                return (!kept).then_some("a clock's code, which stands for another already");
            }
            Frame::Calibration(sample) => self.calibrations.push(sample),
            Frame::Control(control) => self.controls.push(control),
            Frame::OpenSpan(open) => self.open_spans.push(open),
            Frame::Terminal(terminal) => {
                let kept = *self.terminal.get_or_insert(terminal) == terminal;
                return (!kept).then_some("another Terminal frame than the first");
            }
            Frame::Totals(totals) => lanes.totals(totals, chunk),
            Frame::RecorderCost(cost) => self.cost = Some(cost),
            // A hole of no records says nothing.
            Frame::Hole(hole) if hole.records == 0 => {}
            Frame::Hole(hole) => self.holes.push(hole),
            Frame::Part(part) => self.part = Some(part),
            Frame::Removed(removed) => _ = self.removed.insert(removed.first, removed),
            Frame::LaneStart(start) => _ = self.starts.insert(start.lane, start),
            // `Track` applies it where the lane is.
            Frame::LaneStep(_) => {}
            // Of a rings file only.
            Frame::RecordingFile(_) => {}
        }
        None
    }

    /// The name of an element type: fixed below 128, defined by the file from there on.
    pub fn dtype(&self, code: DType) -> Option<&'a str> {
        match self.dtypes.get(&code) {
            Some(dtype) if code.0 >= 128 && code != DType::OTHER => Some(dtype.name),
            _ => code.name(),
        }
    }

    /// The name of a device.
    pub fn device(&self, code: DeviceCode) -> Option<&'a str> {
        self.devices.get(&code).map(|device| device.name).or(code.name())
    }
}
