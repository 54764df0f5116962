//! The memory of a session: a probe with one lane, whose sizes are chosen when it is opened.
//!
//! It is what a `static` [`Probe`](crate::Probe) is, part for part, in pages of its own that go when
//! the session does: so every session begins with an empty name table, and pages that nothing was
//! stored to take no room.

use core::alloc::{Layout, LayoutError};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::io;

use tmrun_formats::Level;

use super::SessionClock;
use super::pages::Pages;
use crate::image::{Codes, ImageRef, KEPT, PAGE, RECORDER_SLOTS};
use crate::lane::{LaneBlock, LaneMirror};
use crate::levels::{ShownChanges, ThresholdCell};
use crate::names::{ArenaBlock, Entry, ShownBlock};
use crate::probe::ProbeRef;
use crate::ring::Slot;
use crate::shared::{Missed, Shared};
use crate::sync::AtomicU32;

/// How much a session can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Records of the ring: a power of two, 32 or more.
    pub(super) slots: usize,
    pub(super) names: usize,
}

/// Pages that hold a probe. They outlive every view of it: see [`Memory::probe`].
#[derive(Debug)]
pub(super) struct Memory {
    probe: ProbeRef<'static, SessionClock>,
    _pages: Pages,
}

impl Memory {
    /// An idle probe of these sizes.
    pub(super) fn new(sizes: Sizes) -> io::Result<Self> {
        let plan = Plan::of(sizes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let pages = Pages::new(plan.length, PAGE)?;
        // SAFETY: the pages are zeros, as long as the plan says, and begin on a multiple of PAGE, which
        // no part's alignment exceeds.
        let probe = unsafe { plan.probe(pages.start()) };
        Ok(Self { probe, _pages: pages })
    }

    /// The probe.
    ///
    /// # Safety
    ///
    /// Nothing of the answer, and nothing that was made of it, is used once this memory is dropped.
    /// (The list of probes that were recorded does not count: it forgets this one by then.)
    pub(super) unsafe fn probe(&self) -> ProbeRef<'static, SessionClock> {
        self.probe
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        crate::recording::forget(&self.probe);
    }
}

/// `count` values of `T`, so many bytes behind the beginning.
struct Part<T> {
    at: usize,
    count: usize,
    of: PhantomData<T>,
}

impl<T> Part<T> {
    /// Its place behind everything that is planned so far.
    fn behind(planned: &mut Layout, count: usize) -> Result<Self, LayoutError> {
        let (all, at) = planned.extend(Layout::array::<T>(count)?)?;
        *planned = all;
        Ok(Self { at, count, of: PhantomData })
    }

    /// The values.
    ///
    /// # Safety
    ///
    /// From `start` on lie the bytes that were planned, so aligned, for `'p`, and nothing but these
    /// values is where they are.
    unsafe fn all<'p>(&self, start: NonNull<u8>) -> &'p [T] {
        // SAFETY: as the caller promises. All zeros are `count` values of every `T` that is planned:
        // atomics and cells of zero, no pointer (see the test below).
        unsafe { NonNull::slice_from_raw_parts(start.add(self.at).cast(), self.count).as_ref() }
    }

    /// The first of them.
    ///
    /// # Safety
    ///
    /// As for [`all`](Self::all); there is one.
    unsafe fn one<'p>(&self, start: NonNull<u8>) -> &'p T {
        // SAFETY: as the caller promises.
        unsafe { start.add(self.at).cast().as_ref() }
    }
}

/// Where the parts lie. Those of the image are in the order of [`Image`](crate::image::Image), on pages
/// that a file may be mapped over.
struct Plan {
    shared: Part<Shared>,
    lanes: Part<LaneBlock>,
    entries: Part<Entry>,
    index: Part<[AtomicU32; 2]>,
    arena: Part<ArenaBlock>,
    focused: Part<ThresholdCell>,
    kept: Part<AtomicU32>,
    no_lane: Part<Missed>,
    unnamed: Part<AtomicU32>,
    codes: Part<Codes>,
    changes: Part<ShownChanges>,
    shown_entries: Part<Entry>,
    shown_arena: Part<ShownBlock>,
    recorder: Part<LaneMirror>,
    recorder_slots: Part<Slot>,
    mirrors: Part<LaneMirror>,
    slots: Part<Slot>,
    /// Bytes of all, and of the image alone: whole pages.
    length: usize,
    image: usize,
}

impl Plan {
    fn of(Sizes { slots, names }: Sizes) -> Result<Self, LayoutError> {
        let mut all = Layout::new::<()>();
        let (shared, lanes) = (Part::behind(&mut all, 1)?, Part::behind(&mut all, 1)?);
        let (entries, index) = (Part::behind(&mut all, names)?, Part::behind(&mut all, names)?);
        let (arena, focused) = (Part::behind(&mut all, names)?, Part::behind(&mut all, names)?);
        all = all.align_to(PAGE)?.pad_to_align();
        let kept = Part::behind(&mut all, KEPT / size_of::<AtomicU32>())?;
        let (no_lane, unnamed) = (Part::behind(&mut all, 1)?, Part::behind(&mut all, 1)?);
        let (codes, changes) = (Part::behind(&mut all, 1)?, Part::behind(&mut all, 1)?);
        let shown_entries = Part::behind(&mut all, names)?;
        let shown_arena = Part::behind(&mut all, names)?;
        let recorder = Part::behind(&mut all, 1)?;
        let recorder_slots = Part::behind(&mut all, RECORDER_SLOTS)?;
        let (mirrors, slots) = (Part::behind(&mut all, 1)?, Part::behind(&mut all, slots)?);
        let length = all.pad_to_align().size();
        let image = length - kept.at;
        Ok(Self {
            shared,
            lanes,
            entries,
            index,
            arena,
            focused,
            kept,
            no_lane,
            unnamed,
            codes,
            changes,
            shown_entries,
            shown_arena,
            recorder,
            recorder_slots,
            mirrors,
            slots,
            length,
            image,
        })
    }

    /// The probe that zeros are.
    ///
    /// # Safety
    ///
    /// From `start` on, a multiple of PAGE, lie `length` bytes, all zeros, which are for this probe
    /// alone for as long as it is used.
    unsafe fn probe(&self, start: NonNull<u8>) -> ProbeRef<'static, SessionClock> {
        // SAFETY: the parts were planned one behind the other, each so aligned, none beyond `length`;
        // the caller promises the rest.
        unsafe {
            ProbeRef {
                max_level: Level::MAX,
                shared: self.shared.one(start),
                lanes: self.lanes.all(start),
                entries: self.entries.all(start),
                index: self.index.all(start),
                arena: self.arena.all(start),
                focused: self.focused.all(start),
                image: ImageRef {
                    kept: self.kept.all(start),
                    length: self.image,
                    no_lane: self.no_lane.one(start),
                    unnamed: self.unnamed.one(start),
                    codes: self.codes.one(start),
                    changes: self.changes.one(start),
                    entries: self.shown_entries.all(start),
                    arena: self.shown_arena.all(start),
                    recorder: self.recorder.one(start),
                    recorder_slots: self.recorder_slots.all(start),
                    lanes: self.mirrors.all(start),
                    slots: self.slots.all(start),
                },
                clock: PhantomData,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probe;

    #[test]
    fn an_idle_probe_is_all_zeros() {
        static PROBE: Probe<SessionClock, 2, 32, 4> = Probe::new();
        let length = size_of_val(&PROBE) / size_of::<usize>();
        let words = (&raw const PROBE).cast::<usize>();
        // (Volatile: the compiler must not conclude anything from bytes that lie between fields.)
        // SAFETY: a static that nobody uses but this test, which lies in .bss, between its fields too.
        let is_zero = |at| unsafe { words.add(at).read_volatile() == 0 };
        assert!((0..length).all(is_zero));
    }

    #[test]
    fn parts_do_not_overlap_and_the_image_is_whole_pages() {
        for (slots, names) in [(32, 1), (32, 7), (1 << 16, 1 << 16), (64, 4096)] {
            let memory = Memory::new(Sizes { slots, names }).unwrap();
            // SAFETY: it is dropped behind its last use.
            let probe = unsafe { memory.probe() };
            let range = |start: *const u8, length: usize| (start as usize, start as usize + length);
            fn of<T>(part: &[T]) -> (*const u8, usize) {
                (part.as_ptr().cast(), size_of_val(part))
            }
            let image = probe.image;
            let parts = [
                of(core::slice::from_ref(probe.shared)),
                of(probe.lanes),
                of(probe.entries),
                of(probe.index),
                of(probe.arena),
                of(probe.focused),
                of(image.kept),
                of(core::slice::from_ref(image.no_lane)),
                of(core::slice::from_ref(image.unnamed)),
                of(core::slice::from_ref(image.codes)),
                of(core::slice::from_ref(image.changes)),
                of(image.entries),
                of(image.arena),
                of(core::slice::from_ref(image.recorder)),
                of(image.recorder_slots),
                of(image.lanes),
                of(image.slots),
            ];
            let parts = parts.map(|(start, length)| range(start, length));
            assert!(parts.is_sorted_by(|before, behind| before.1 <= behind.0), "{parts:?}");
            assert_eq!((probe.entries.len(), probe.ring_slots()), (names, slots));
            let (first, last) = (image.kept.as_ptr() as usize, parts[parts.len() - 1].1);
            assert!(first.is_multiple_of(PAGE) && image.length.is_multiple_of(PAGE));
            assert!(last <= first + image.length && first + image.length - last < PAGE);
        }
    }

    #[test]
    fn sizes_that_no_memory_has_are_an_error() {
        assert!(Memory::new(Sizes { slots: 1 << 62, names: 4 }).is_err());
    }
}
