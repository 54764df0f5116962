//! What all lanes of a probe share.

use core::ops::Range;

use tmrun_formats::wire::{ClockV1, DTypeV1, DeviceV1, Frame};
use tmrun_formats::{ClockCode, DType, DeviceCode, NameId, Planes, Ticks};

use crate::codes::{ClockTable, Clocks, CodeTable};
use crate::lane::LaneBlock;
use crate::levels::Levels;
use crate::names::{NameCounters, Names};
use crate::places::PlaceCodes;
use crate::site::Sites;
use crate::sync::{AtomicBool, AtomicU32, Ordering, Word, const_fn};

/// The first code that a file defines by a frame.
pub(crate) const FIRST_DEVICE: u8 = 1;
/// The first code that a file defines by a frame.
pub(crate) const FIRST_DTYPE: u8 = 128;
/// The first code that a file defines by a frame.
pub(crate) const FIRST_CLOCK: u8 = 1;

/// The part of a probe that does not depend on its sizes.
pub(crate) struct Shared {
    pub(crate) levels: Levels,
    /// A drain exists.
    pub(crate) draining: AtomicBool,
    pub(crate) sites: Sites,
    pub(crate) names: NameCounters,
    pub(crate) devices: CodeTable<254>,
    pub(crate) dtypes: CodeTable<127>,
    pub(crate) clocks: ClockTable,
    pub(crate) places: PlaceCodes,
    pub(crate) no_lane_told: MissedTold,
    /// The image is mapped to a file: what is interned is copied there too.
    #[cfg(feature = "std")]
    pub(crate) mapped: AtomicBool,
    /// Records that came after the end of a recording and before the next; the drain that starts
    /// counts them.
    pub(crate) after_finish: Word,
    pub(crate) recorder: LaneBlock,
}

/// Records that found no lane: any thread may count one. The counters only grow. The planes are those
/// of what no Gap record tells of; the drain clears them behind one that does.
///
/// It outlives the process where the image is mapped. For whoever then reads it, the drain leaves here
/// what else a gap of them says; it does not look at that itself.
#[repr(C)]
pub(crate) struct Missed {
    records: AtomicU32,
    groups: AtomicU32,
    planes: AtomicU32,
    base_records: AtomicU32,
    base_groups: AtomicU32,
    /// What no Gap record tells of came behind this moment.
    since: Word,
    looked: Word,
}

impl Missed {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                records: AtomicU32::new(0),
                groups: AtomicU32::new(0),
                planes: AtomicU32::new(0),
                base_records: AtomicU32::new(0),
                base_groups: AtomicU32::new(0),
                since: Word::new(0),
                looked: Word::new(0),
            }
        }
    }

    /// A group of one record found no lane. Whoever sees the record counted sees its planes, and
    /// whoever sees the planes sees the group counted.
    #[cold]
    #[inline(never)]
    pub(crate) fn count(&self, planes: Planes) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.planes.fetch_or(planes.0, Ordering::Release);
        self.records.fetch_add(1, Ordering::Release);
    }

    /// What those were evidence of that no Gap record tells of.
    pub(crate) fn planes(&self) -> Planes {
        Planes(self.planes.load(Ordering::Relaxed))
    }

    /// The drain has looked, and what no Gap record tells of came behind `since`. Stored behind the Gap
    /// record that tells of what came before.
    pub(crate) fn show(&self, since: Ticks, looked: Ticks) {
        self.looked.publish(looked.0);
        self.since.publish(since.0);
    }
}

// Rings are mapped on 64-bit targets only; a model's atomics have a layout of their own.
#[cfg(all(target_pointer_width = "64", not(all(loom, test))))]
const _: () = {
    use core::mem::offset_of;
    use tmrun_formats::rings::MissedImage;

    assert!(offset_of!(Missed, records) == MissedImage::COUNTS);
    assert!(offset_of!(Missed, base_groups) == MissedImage::COUNTS + 16);
    assert!(offset_of!(Missed, since) == MissedImage::SINCE);
    assert!(offset_of!(Missed, looked) == MissedImage::SINCE + 8);
    assert!(size_of::<Missed>() as u64 == MissedImage::SIZE);
};

/// What the drain has told of these. Only the drain writes it.
pub(crate) struct MissedTold {
    records: AtomicU32,
    groups: AtomicU32,
}

impl MissedTold {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { records: AtomicU32::new(0), groups: AtomicU32::new(0) }
        }
    }

    /// Records that nothing tells of yet.
    pub(crate) fn untold(&self, missed: &Missed) -> u32 {
        missed.records.load(Ordering::Relaxed).wrapping_sub(self.records.load(Ordering::Relaxed))
    }

    /// Takes what was not taken yet, to tell of it: records, groups.
    pub(crate) fn take(&self, missed: &Missed) -> (u32, u32) {
        let since = |all: &AtomicU32, told: &AtomicU32| {
            let all = all.load(Ordering::Acquire);
            let new = all.wrapping_sub(told.load(Ordering::Relaxed));
            told.store(all, Ordering::Relaxed);
            new
        };
        let records = since(&missed.records, &self.records);
        (records, since(&missed.groups, &self.groups))
    }

    /// Every record that was taken is told of: their planes are cleared. Those of a group that is being
    /// counted stay, and with them, since nobody can tell them apart, all others.
    pub(crate) fn clear_planes(&self, missed: &Missed) {
        let planes = missed.planes.swap(0, Ordering::Acquire);
        // A group is one record: as many groups begun as records taken, and none is being counted.
        if missed.groups.load(Ordering::Relaxed) != self.records.load(Ordering::Relaxed) {
            missed.planes.fetch_or(planes, Ordering::Relaxed);
        }
    }

    /// A recording begins behind what was taken so far.
    pub(crate) fn begin(&self, missed: &Missed, now: Ticks) {
        self.clear_planes(missed);
        missed.show(now, now);
        let (records, groups) = (&self.records, &self.groups);
        missed.base_records.store(records.load(Ordering::Relaxed), Ordering::Relaxed);
        missed.base_groups.store(groups.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// In a forked child whose image was mapped: the counters are its own, from zero on.
    #[cfg(feature = "std")]
    pub(crate) fn forget(&self) {
        self.records.store(0, Ordering::Relaxed);
        self.groups.store(0, Ordering::Relaxed);
    }
}

impl Shared {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                levels: Levels::new(),
                draining: AtomicBool::new(false),
                sites: Sites::new(),
                names: NameCounters::new(),
                devices: CodeTable::new(),
                dtypes: CodeTable::new(),
                clocks: ClockTable::new(),
                places: PlaceCodes::new(),
                no_lane_told: MissedTold::new(),
                #[cfg(feature = "std")]
                mapped: AtomicBool::new(false),
                after_finish: Word::new(0),
                recorder: LaneBlock::new(),
            }
        }
    }

    /// Hands the frames of these device, dtype and clock codes to `each`.
    pub(crate) fn emit_codes(
        &self,
        names: Names<'_>,
        devices: Range<u8>,
        dtypes: Range<u8>,
        clocks: Clocks,
        each: &mut dyn FnMut(&Frame<'_>),
    ) {
        let text = |name: NameId| names.get(name).map_or("", |node| node.name);
        for (at, name) in self.devices.range(devices) {
            let code = DeviceCode(FIRST_DEVICE + at);
            each(&Frame::Device(DeviceV1 { code, name: text(name) }));
        }
        for (at, name) in self.dtypes.range(dtypes) {
            let code = DType(FIRST_DTYPE + at);
            each(&Frame::DType(DTypeV1 { code, name: text(name), bits: 0 }));
        }
        for (at, clock) in self.clocks.of(clocks) {
            let (code, device) = (ClockCode(FIRST_CLOCK + at), clock.device);
            let (name, backend) = (text(clock.name), text(clock.backend));
            each(&Frame::Clock(ClockV1 { code, name, device, backend }));
        }
    }
}
