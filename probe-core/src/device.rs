//! What a timer of devices records: intervals, readings of a device's clock, and what is missing of
//! them. It does so on a lane of its own, some time after the work was launched from another.

use tmrun_formats::wire::{ClockSync, DeviceInterval, Gap, RecordHeader};
use tmrun_formats::{
    ClockCode, DeviceCode, GapReason, LaneId, Level, NameId, Planes, SpanId, StreamId, Ticks,
};

use crate::clock::Clock;
use crate::record::Recorder;

/// From where work was launched: its lane, the span that was open there, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Just before the work was handed to the device.
    pub ticks: Ticks,
    /// The lane of the launching thread.
    pub lane: LaneId,
    /// Low half of the id of the span that was open on it, 0 for none.
    pub span: u32,
}

/// A stretch of time on a device's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceIntervalFact {
    /// The device.
    pub device: DeviceCode,
    /// Which of its clocks.
    pub clock: ClockCode,
    /// The stream.
    pub stream: StreamId,
    /// Start, in nanoseconds of that clock.
    pub start_ns: u64,
    /// End, in nanoseconds of that clock.
    pub end_ns: u64,
    /// From where it was launched.
    pub launch: Launch,
    /// The host's tick at which its end was seen.
    pub seen: Ticks,
}

/// Device evidence that is missing from a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceGap {
    /// Why.
    pub reason: GapReason,
    /// The lane of the thread that launched the work; [`LaneId::RECORDER`] for no lane in particular.
    pub lane: LaneId,
    /// The tick of the first that is missing.
    pub first: Ticks,
    /// The tick of the last.
    pub last: Ticks,
    /// How many intervals or samples; 0 where nobody could count them.
    pub records: u64,
    /// [`Planes::DEVICE_TIMING`], [`Planes::PHYSICAL_MEMORY`], or both.
    pub planes: Planes,
    /// What refused, in words, as a name; none where the reason says it all.
    pub why: NameId,
}

impl<C: Clock> Recorder<'_, C> {
    /// The innermost span that is open on the lane.
    #[inline(always)]
    pub fn open_span(&self) -> SpanId {
        self.block().current().id
    }

    /// Whether so many records would find room on the lane now, or would be dropped. Who can wait with
    /// what it has to say asks first.
    pub fn has_room(&self, records: u32) -> bool {
        self.block().has_room::<C>(records.into())
    }

    /// What is launched now from this lane.
    #[inline(always)]
    pub fn launch(&self) -> Launch {
        Launch { ticks: C::ticks(), lane: self.lane(), span: self.block().enclosing() }
    }

    /// A stretch of time on a device's own clock, by what it was of.
    pub fn device_interval(&self, name: NameId, fact: &DeviceIntervalFact) {
        let DeviceIntervalFact { device, clock, stream, start_ns, end_ns, launch, seen } = *fact;
        let header = RecordHeader {
            ticks: launch.ticks,
            name,
            ..RecordHeader::of::<DeviceInterval>(Level::TIMING)
        };
        let payload = DeviceInterval {
            start: start_ns,
            end: end_ns,
            stream,
            seen,
            span: launch.span,
            lane: launch.lane,
            device,
            clock,
        };
        self.store_between(header, (launch.ticks, seen), &payload);
    }

    /// A device's clock and the host's, read together: at `device_ns` the host's was between the two
    /// ticks.
    pub fn clock_sync(&self, clock: ClockCode, device_ns: u64, before: Ticks, after: Ticks) {
        let header = RecordHeader { ticks: before, ..RecordHeader::of::<ClockSync>(Level::PULSE) };
        let payload = ClockSync { device_ns, before, after, clock };
        self.store_between(header, (before, after), &payload);
    }

    /// Says that device evidence is missing.
    pub fn device_gap(&self, gap: &DeviceGap) {
        let DeviceGap { reason, lane, first, last, records, planes, why } = *gap;
        let header =
            RecordHeader { ticks: first, name: why, ..RecordHeader::of::<Gap>(Level::PULSE) };
        let payload = Gap { first, last, records, groups: records, planes, lane, reason };
        self.store_between(header, (first, last), &payload);
    }
}
