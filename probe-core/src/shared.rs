//! What all lanes of a probe share.

use core::ops::Range;

use tmrun_formats::wire::{DTypeV1, DeviceV1, Frame, LevelChange};
use tmrun_formats::{DType, DeviceCode, Level, LevelSource, NameId, Planes, Ticks};

use crate::codes::CodeTable;
use crate::lane::LaneBlock;
use crate::names::{NameCounters, Names};
use crate::places::PlaceCodes;
use crate::site::Sites;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU32, Ordering, Word, array, const_fn, fence, spin_loop,
};

/// The first code that a file defines by a frame.
pub(crate) const FIRST_DEVICE: u8 = 1;
/// The first code that a file defines by a frame.
pub(crate) const FIRST_DTYPE: u8 = 128;
/// Level changes that may wait for the drain.
const CHANGES: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// Up to which level sites record: 0 while nothing is recording, else the level plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threshold(u8);

impl Threshold {
    pub(crate) const OFF: Self = Self(0);

    pub(crate) const fn of(level: Level) -> Self {
        Self(level.0.saturating_add(1))
    }

    #[inline(always)]
    pub(crate) const fn records(self, level: Level) -> bool {
        level.0 < self.0
    }

    /// The level in force, unless nothing is recording.
    pub(crate) const fn level(self) -> Option<Level> {
        match self.0.checked_sub(1) {
            Some(level) => Some(Level(level)),
            None => None,
        }
    }
}

/// The part of a probe that does not depend on its sizes.
pub(crate) struct Shared {
    threshold: AtomicU8,
    /// Held while the level changes: by whoever changes it, and by the drain as it takes changes.
    changing: AtomicBool,
    changes: [Change; CHANGES],
    changes_len: AtomicU32,
    changes_lost: AtomicU32,
    /// A drain exists.
    pub(crate) draining: AtomicBool,
    pub(crate) sites: Sites,
    pub(crate) names: NameCounters,
    pub(crate) devices: CodeTable<254>,
    pub(crate) dtypes: CodeTable<127>,
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

/// A level change on its way to the recorder's lane.
struct Change {
    asked: Word,
    armed: Word,
    what: AtomicU32,
}

impl Change {
    const_fn! {
        fn new() -> Self {
            Self { asked: Word::new(0), armed: Word::new(0), what: AtomicU32::new(0) }
        }
    }
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

/// Ends an exclusive stretch.
struct Unlock<'s>(&'s AtomicBool);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Shared {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                threshold: AtomicU8::new(0),
                changing: AtomicBool::new(false),
                changes: array![Change::new(); CHANGES],
                changes_len: AtomicU32::new(0),
                changes_lost: AtomicU32::new(0),
                draining: AtomicBool::new(false),
                sites: Sites::new(),
                names: NameCounters::new(),
                devices: CodeTable::new(),
                dtypes: CodeTable::new(),
                places: PlaceCodes::new(),
                no_lane_told: MissedTold::new(),
                #[cfg(feature = "std")]
                mapped: AtomicBool::new(false),
                after_finish: Word::new(0),
                recorder: LaneBlock::new(),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn threshold(&self) -> Threshold {
        Threshold(self.threshold.load(Ordering::Relaxed))
    }

    /// The same, for who has just stored what another thread, having changed it, looks at.
    pub(crate) fn threshold_after_store(&self) -> Threshold {
        fence(Ordering::SeqCst);
        self.threshold()
    }

    /// Hands the frames of these device and dtype codes to `each`.
    pub(crate) fn emit_codes(
        &self,
        names: Names<'_>,
        devices: Range<u8>,
        dtypes: Range<u8>,
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
    }

    /// Runs `f` while nobody else changes the level. Never called by a record.
    fn exclusively<R>(&self, f: impl FnOnce() -> R) -> R {
        while self
            .changing
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spin_loop();
        }
        // However `f` ends: an application's clock that panics in there must not lock out the rest.
        let _unlock = Unlock(&self.changing);
        f()
    }

    /// Arms the sites, as a recording starts.
    pub(crate) fn arm(&self, level: Level, now: fn() -> Ticks) {
        self.exclusively(|| {
            // What a drain that ended unfinished left behind is not of this recording.
            self.changes_len.store(0, Ordering::Relaxed);
            self.changes_lost.store(0, Ordering::Relaxed);
            self.set_threshold(Threshold::of(level), LevelSource::START, now);
        });
    }

    /// Disarms all sites.
    pub(crate) fn disarm(&self, now: fn() -> Ticks) {
        self.exclusively(|| self.set_threshold(Threshold::OFF, LevelSource::APPLICATION, now));
    }

    /// The same in a forked child, where whoever was changing the level is no more.
    #[cfg(feature = "std")]
    pub(crate) fn disarm_in_child(&self, now: fn() -> Ticks) {
        self.changing.store(false, Ordering::Release);
        self.disarm(now);
    }

    /// Changes the level of a recording that runs; else it does nothing.
    pub(crate) fn change_level(&self, to: Level, source: LevelSource, now: fn() -> Ticks) {
        self.exclusively(|| {
            if self.threshold() != Threshold::OFF {
                self.set_threshold(Threshold::of(to), source, now);
            }
        });
    }

    /// Arms the sites up to a level, or disarms all, and leaves word for the recorder's lane.
    fn set_threshold(&self, to: Threshold, source: LevelSource, now: fn() -> Ticks) {
        let from = self.threshold();
        let asked = now();
        self.threshold.store(to.0, Ordering::Relaxed);
        // The other half of `threshold_after_store`.
        fence(Ordering::SeqCst);
        self.sites.arm_all(self);
        let armed = now();
        let Some(new) = to.level() else { return };
        let old = from.level().unwrap_or(new);
        let at = self.changes_len.load(Ordering::Relaxed);
        let Some(change) = self.changes.get(at as usize) else {
            self.changes_lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        change.asked.set(asked.0);
        change.armed.set(armed.0);
        change.what.store(u32::from_le_bytes([old.0, new.0, source.0, 0]), Ordering::Relaxed);
        self.changes_len.store(at + 1, Ordering::Relaxed);
    }

    /// Hands the waiting level changes to `each`, in order, and returns how many were lost because
    /// more came than could wait.
    pub(crate) fn take_changes(&self, mut each: impl FnMut(LevelChange)) -> u32 {
        if self.changes_len.load(Ordering::Relaxed) == 0 {
            return 0; // and none is lost while there is room
        }
        self.exclusively(|| {
            let count = self.changes_len.swap(0, Ordering::Relaxed) as usize;
            for change in self.changes.iter().take(count) {
                let [old, new, source, _] = change.what.load(Ordering::Relaxed).to_le_bytes();
                each(LevelChange {
                    asked: Ticks(change.asked.get()),
                    armed: Ticks(change.armed.get()),
                    old: Level(old),
                    new: Level(new),
                    source: LevelSource(source),
                });
            }
            self.changes_lost.swap(0, Ordering::Relaxed)
        })
    }
}
