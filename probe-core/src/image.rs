//! The part of a probe that outlives the process when it is mapped to a file: names, what the lanes
//! show, and the rings.
//!
//! It is one piece of a probe's memory, page by page, so that a file can be mapped over it where it
//! lies: no pointer changes, and recording costs the same. The parts that are only of a mapped file
//! are there with feature `std`.

use tmrun_formats::LaneId;

use crate::lane::LaneMirror;
use crate::levels::ShownChanges;
#[cfg(feature = "std")]
use crate::names::{BYTES_PER_NAME, Entry, ShownBlock};
use crate::ring::{Ring, Slot};
use crate::shared::Missed;
#[cfg(feature = "std")]
use crate::sync::{AtomicU8, AtomicU32};
use crate::sync::{array, const_fn};

/// Slots of the recorder's own lane.
pub(crate) const RECORDER_SLOTS: usize = 128;

/// What a mapping begins and ends on: a multiple of every page size that the target has.
#[cfg(feature = "std")]
pub(crate) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// The image of a probe.
#[cfg_attr(all(feature = "std", target_arch = "x86_64"), repr(C, align(4096)))]
#[cfg_attr(all(feature = "std", not(target_arch = "x86_64")), repr(C, align(65536)))]
#[cfg_attr(not(feature = "std"), repr(C))]
pub(crate) struct Image<const LANES: usize, const SLOTS: usize, const NAMES: usize> {
    /// What only the keeper of the file writes, and never through this memory.
    #[cfg(feature = "std")]
    kept: [AtomicU32; KEPT / 4],
    pub(crate) no_lane: Missed,
    /// Names that found no room, as the name table counts them.
    #[cfg(feature = "std")]
    pub(crate) unnamed: AtomicU32,
    #[cfg(feature = "std")]
    pub(crate) codes: Codes,
    pub(crate) changes: ShownChanges,
    #[cfg(feature = "std")]
    pub(crate) entries: [Entry; NAMES],
    #[cfg(feature = "std")]
    pub(crate) arena: [ShownBlock; NAMES],
    pub(crate) recorder: LaneMirror,
    pub(crate) recorder_slots: [Slot; RECORDER_SLOTS],
    pub(crate) lanes: [LaneMirror; LANES],
    pub(crate) rings: [[Slot; SLOTS]; LANES],
}

/// Bytes of what only the keeper writes: the header's page, the control page, the run area.
#[cfg(feature = "std")]
pub(crate) const KEPT: usize = 2 * PAGE + tmrun_formats::rings::RunArea::SIZE as usize;

/// Names of device codes from 1 and of dtype codes from 128.
#[cfg(feature = "std")]
pub(crate) struct Codes {
    pub(crate) devices: [AtomicU32; 254],
    pub(crate) dtypes: [AtomicU32; 127],
}

impl<const LANES: usize, const SLOTS: usize, const NAMES: usize> Image<LANES, SLOTS, NAMES> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                #[cfg(feature = "std")]
                kept: array![AtomicU32::new(0); KEPT / 4],
                no_lane: Missed::new(),
                #[cfg(feature = "std")]
                unnamed: AtomicU32::new(0),
                #[cfg(feature = "std")]
                codes: Codes {
                    devices: array![AtomicU32::new(0); 254],
                    dtypes: array![AtomicU32::new(0); 127],
                },
                changes: ShownChanges::new(),
                #[cfg(feature = "std")]
                entries: array![Entry::new(); NAMES],
                #[cfg(feature = "std")]
                arena: array![array![AtomicU8::new(0); BYTES_PER_NAME]; NAMES],
                recorder: LaneMirror::new(),
                recorder_slots: array![Slot::new(); RECORDER_SLOTS],
                lanes: array![LaneMirror::new(); LANES],
                rings: array![array![Slot::new(); SLOTS]; LANES],
            }
        }
    }
}

/// An image without its sizes.
#[derive(Clone, Copy)]
pub(crate) struct ImageRef<'p> {
    #[cfg(feature = "std")]
    pub(crate) kept: &'p [AtomicU32],
    #[cfg(feature = "std")]
    pub(crate) length: usize,
    pub(crate) no_lane: &'p Missed,
    #[cfg(feature = "std")]
    pub(crate) unnamed: &'p AtomicU32,
    #[cfg(feature = "std")]
    pub(crate) codes: &'p Codes,
    pub(crate) changes: &'p ShownChanges,
    #[cfg(feature = "std")]
    pub(crate) entries: &'p [Entry],
    #[cfg(feature = "std")]
    pub(crate) arena: &'p [ShownBlock],
    pub(crate) recorder: &'p LaneMirror,
    pub(crate) recorder_slots: &'p [Slot],
    pub(crate) lanes: &'p [LaneMirror],
    pub(crate) slots: &'p [Slot],
}

impl<const LANES: usize, const SLOTS: usize, const NAMES: usize> Image<LANES, SLOTS, NAMES> {
    pub(crate) const fn view(&self) -> ImageRef<'_> {
        ImageRef {
            #[cfg(feature = "std")]
            kept: &self.kept,
            #[cfg(feature = "std")]
            length: size_of::<Self>(),
            no_lane: &self.no_lane,
            #[cfg(feature = "std")]
            unnamed: &self.unnamed,
            #[cfg(feature = "std")]
            codes: &self.codes,
            changes: &self.changes,
            #[cfg(feature = "std")]
            entries: &self.entries,
            #[cfg(feature = "std")]
            arena: &self.arena,
            recorder: &self.recorder,
            recorder_slots: &self.recorder_slots,
            lanes: &self.lanes,
            slots: self.rings.as_flattened(),
        }
    }
}

impl<'p> ImageRef<'p> {
    /// A lane's memory; `None` for a lane that the probe does not have.
    pub(crate) fn ring(&self, lane: LaneId) -> Option<Ring<'p>> {
        if lane == LaneId::RECORDER {
            return Some(Ring { mirror: self.recorder, slots: self.recorder_slots });
        }
        let (size, lane) = (self.ring_slots(), usize::from(lane.0));
        let slots = self.slots.get(lane * size..(lane + 1) * size)?;
        Some(Ring { mirror: self.lanes.get(lane)?, slots })
    }

    /// Records that a lane's ring holds.
    pub(crate) fn ring_slots(&self) -> usize {
        self.slots.len() / self.lanes.len().max(1)
    }
}
