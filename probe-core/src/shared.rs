//! What all lanes of a probe share.

use core::ops::Range;

use tmrun_formats::wire::{ClockV1, DTypeV1, DeviceV1, Frame};
use tmrun_formats::{ClockCode, DType, DeviceCode, NameId, Planes};

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

/// Records that found no lane: any thread may count one. The counters only grow, but for the planes,
/// which are taken.
#[repr(C)]
pub(crate) struct Missed {
    records: AtomicU32,
    groups: AtomicU32,
    planes: AtomicU32,
}

impl Missed {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { records: AtomicU32::new(0), groups: AtomicU32::new(0), planes: AtomicU32::new(0) }
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn count(&self, records: u32, planes: Planes) {
        self.planes.fetch_or(planes.0, Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
    }
}

/// What the drain has told of these. Only the drain writes it.
pub(crate) struct MissedTold {
    records: AtomicU32,
    groups: AtomicU32,
}

impl MissedTold {
    const_fn! {
        fn new() -> Self {
            Self { records: AtomicU32::new(0), groups: AtomicU32::new(0) }
        }
    }

    /// Records that nothing tells of yet.
    pub(crate) fn untold(&self, missed: &Missed) -> u32 {
        missed.records.load(Ordering::Relaxed).wrapping_sub(self.records.load(Ordering::Relaxed))
    }

    /// Takes what was not told yet: records, groups, planes.
    pub(crate) fn take(&self, missed: &Missed) -> (u32, u32, Planes) {
        let since = |all: &AtomicU32, told: &AtomicU32| {
            let all = all.load(Ordering::Relaxed);
            let new = all.wrapping_sub(told.load(Ordering::Relaxed));
            told.store(all, Ordering::Relaxed);
            new
        };
        let records = since(&missed.records, &self.records);
        let groups = since(&missed.groups, &self.groups);
        if groups == 0 && records == 0 {
            return (0, 0, Planes::NONE);
        }
        (records, groups, Planes(missed.planes.swap(0, Ordering::Relaxed)))
    }

    /// The counters as they were told: records, groups.
    #[cfg(feature = "std")]
    pub(crate) fn told(&self) -> (u32, u32) {
        (self.records.load(Ordering::Relaxed), self.groups.load(Ordering::Relaxed))
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
