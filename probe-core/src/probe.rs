//! The probe: lanes, their rings, names and levels, in one value that needs no set-up.

use core::marker::PhantomData;

use tmrun_formats::{ClockCode, DType, DeviceCode, LaneId, Level, NameId};

use crate::clock::Clock;
use crate::codes::DeviceClock;
use crate::image::{Image, ImageRef};
use crate::lane::LaneBlock;
use crate::levels::ThresholdCell;
#[cfg(feature = "std")]
use crate::names::Shown;
use crate::names::{ArenaBlock, BYTES_PER_NAME, Entry, Names, Node};
use crate::record::Lane;
use crate::ring::Slot;
use crate::shared::{FIRST_CLOCK, FIRST_DEVICE, FIRST_DTYPE, Shared};
use crate::sync::{AtomicU32, Ordering, array, const_fn};

/// A recorder's memory: `LANES` rings of `SLOTS` records, a table of `NAMES` names (with 64 bytes
/// of text for each), and the clock that stamps the records.
///
/// It is const-constructible and all zeros, so that a `static` probe lies in .bss; nothing is ever
/// allocated. `SLOTS` is a power of two and at least 32: a gap and the largest group always fit an
/// empty ring.
pub struct Probe<C, const LANES: usize, const SLOTS: usize, const NAMES: usize = 4096> {
    shared: Shared,
    lanes: [LaneBlock; LANES],
    entries: [Entry; NAMES],
    index: [[AtomicU32; 2]; NAMES],
    arena: [ArenaBlock; NAMES],
    focused: [ThresholdCell; NAMES],
    image: Image<LANES, SLOTS, NAMES>,
    clock: PhantomData<fn() -> C>,
}

impl<C: Clock, const LANES: usize, const SLOTS: usize, const NAMES: usize>
    Probe<C, LANES, SLOTS, NAMES>
{
    const_fn! {
        /// An idle probe.
        pub fn new() -> Self {
            const {
                assert!(SLOTS.is_power_of_two() && SLOTS >= 32, "a power of two, 32 or more slots");
                assert!(LANES > 0 && LANES < LaneId::RECORDER.0 as usize, "1 to 65,534 lanes");
                assert!(NAMES > 0 && NAMES <= u32::MAX as usize / BYTES_PER_NAME, "1 to 2^26 names");
            }
            Self {
                shared: Shared::new(),
                lanes: array![LaneBlock::new(); LANES],
                entries: array![Entry::new(); NAMES],
                index: array![array![AtomicU32::new(0); 2]; NAMES],
                arena: array![ArenaBlock::new(); NAMES],
                focused: array![ThresholdCell::new(); NAMES],
                image: Image::new(),
                clock: PhantomData,
            }
        }
    }

    /// The same probe without its sizes.
    #[inline(always)]
    pub const fn view(&self) -> ProbeRef<'_, C> {
        ProbeRef {
            shared: &self.shared,
            lanes: &self.lanes,
            entries: &self.entries,
            index: &self.index,
            arena: &self.arena,
            focused: &self.focused,
            image: self.image.view(),
            max_level: Level::MAX,
            clock: PhantomData,
        }
    }
}

/// The level above which the features `max-level-N` leave all code out; the greatest one without.
pub(crate) const CAP: Level = if cfg!(feature = "max-level-0") {
    Level::PULSE
} else if cfg!(feature = "max-level-1") {
    Level::TIMING
} else if cfg!(feature = "max-level-2") {
    Level::METADATA
} else {
    Level::MAX
};

impl<C: Clock, const LANES: usize, const SLOTS: usize, const NAMES: usize> Default
    for Probe<C, LANES, SLOTS, NAMES>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<C, const LANES: usize, const SLOTS: usize, const NAMES: usize> core::fmt::Debug
    for Probe<C, LANES, SLOTS, NAMES>
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Probe")
            .field("lanes", &LANES)
            .field("slots", &SLOTS)
            .field("names", &NAMES)
            .finish_non_exhaustive()
    }
}

/// A probe without its sizes: what lanes, drains and recorders work on.
pub struct ProbeRef<'p, C> {
    pub(crate) shared: &'p Shared,
    pub(crate) lanes: &'p [LaneBlock],
    pub(crate) entries: &'p [Entry],
    pub(crate) index: &'p [[AtomicU32; 2]],
    pub(crate) arena: &'p [ArenaBlock],
    /// What the foci ask for of each node, by its id from 1.
    pub(crate) focused: &'p [ThresholdCell],
    pub(crate) image: ImageRef<'p>,
    /// The greatest level that can be asked for: what is compiled in.
    pub(crate) max_level: Level,
    pub(crate) clock: PhantomData<fn() -> C>,
}

impl<C> Clone for ProbeRef<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for ProbeRef<'_, C> {}

impl<C> core::fmt::Debug for ProbeRef<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProbeRef")
            .field("lanes", &self.lanes.len())
            .field("slots", &self.ring_slots())
            .finish_non_exhaustive()
    }
}

impl<'p, C> ProbeRef<'p, C> {
    /// Records that a lane's ring holds.
    pub fn ring_slots(&self) -> usize {
        self.image.ring_slots()
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The same where sites above this level are compiled out: nobody can ask for more. (`probe!` calls
    /// it with its `max_level`.)
    #[doc(hidden)]
    pub const fn capped(mut self, level: Level) -> Self {
        if level.0 < self.max_level.0 {
            self.max_level = level;
        }
        self
    }

    /// The greatest level that can be asked for: of a probe that `probe!` declared its `max_level`, or
    /// less where a feature `max-level-N` leaves more out. Who asks for more gets this, and the recording
    /// says so.
    pub const fn max_level(&self) -> Level {
        self.max_level
    }

    /// The same without lanes and without room for names.
    #[cfg(feature = "std")]
    pub(crate) const fn without_room(self) -> Self {
        Self { lanes: &[], entries: &[], index: &[], arena: &[], focused: &[], ..self }
    }

    /// The same for who needs no clock.
    #[cfg(feature = "std")]
    pub(crate) const fn without_clock(self) -> ProbeRef<'p, ()> {
        let Self { shared, lanes, entries, index, arena, focused, image, max_level, .. } = self;
        let clock = PhantomData;
        ProbeRef { shared, lanes, entries, index, arena, focused, image, max_level, clock }
    }

    pub(crate) fn names(&self) -> Names<'p> {
        let (entries, index, arena) = (self.entries, self.index, self.arena);
        #[cfg(feature = "std")]
        let shown = Some(Shown {
            mapped: &self.shared.mapped,
            entries: self.image.entries,
            arena: self.image.arena,
            unnamed: self.image.unnamed,
        });
        #[cfg(not(feature = "std"))]
        let shown = None;
        let (counters, levels) = (&self.shared.names, &self.shared.levels);
        Names { counters, entries, index, arena, focused: self.focused, levels, shown }
    }

    /// Shows all names, codes and claims once more: for whoever has just mapped the image.
    #[cfg(feature = "std")]
    pub(crate) fn show_all(&self) {
        self.names().show_all();
        let shown = &self.image.codes;
        for (code, name) in self.shared.devices.range(0..self.shared.devices.count()) {
            show(shown.devices.get(usize::from(code)), name);
        }
        for (code, name) in self.shared.dtypes.range(0..self.shared.dtypes.count()) {
            show(shown.dtypes.get(usize::from(code)), name);
        }
        self.lanes.iter().for_each(LaneBlock::show_claims);
    }

    /// The lane's slots.
    pub(crate) fn slots(&self, lane: LaneId) -> &'p [Slot] {
        self.image.ring(lane).map_or(&[], |ring| ring.slots)
    }

    /// Every lane with its block, the recorder's own last.
    pub(crate) fn all_lanes(&self) -> impl Iterator<Item = (LaneId, &'p LaneBlock)> + use<'p, C> {
        let own = core::iter::once((LaneId::RECORDER, &self.shared.recorder));
        self.application_lanes().chain(own)
    }

    /// Every lane but the recorder's own, with its block.
    pub(crate) fn application_lanes(
        &self,
    ) -> impl Iterator<Item = (LaneId, &'p LaneBlock)> + use<'p, C> {
        (0..).map(LaneId).zip(self.lanes)
    }

    /// The id of a name, interned on first use. It takes some hundred nanoseconds: do it at set-up.
    /// None when the table is full, which is counted; records then go out unnamed.
    pub fn name(&self, name: &str) -> NameId {
        self.node(&Node::named(name))
    }

    /// The id of a node with its type, `static_id` and source. The same node has the same id; the
    /// same name with something else beside it has another.
    pub fn node(&self, node: &Node<'_>) -> NameId {
        self.names().intern(node)
    }

    /// The code of a device, such as `cpu` or `cuda:0`, defined on first use. [`DeviceCode::OTHER`]
    /// when 254 are defined.
    pub fn device(&self, name: &str) -> DeviceCode {
        let name = self.name(name);
        let code = self.shared.devices.code(name);
        #[cfg(feature = "std")]
        show(code.and_then(|at| self.image.codes.devices.get(usize::from(at))), name);
        code.map_or(DeviceCode::OTHER, |at| DeviceCode(FIRST_DEVICE + at))
    }

    /// The code of an element type: a fixed one, or one defined on first use. [`DType::OTHER`] when
    /// 127 are defined.
    pub fn dtype(&self, name: &str) -> DType {
        let fixed = DType::KNOWN.iter().copied().find(|dtype| dtype.name() == Some(name));
        fixed.unwrap_or_else(|| {
            let name = self.name(name);
            let code = self.shared.dtypes.code(name);
            #[cfg(feature = "std")]
            show(code.and_then(|at| self.image.codes.dtypes.get(usize::from(at))), name);
            code.map_or(DType::OTHER, |at| DType(FIRST_DTYPE + at))
        })
    }

    /// The code of a clock of a device, defined on first use; `backend` says what reads it.
    /// [`ClockCode::OTHER`] when 64 are defined.
    pub fn device_clock(&self, name: &str, device: DeviceCode, backend: &str) -> ClockCode {
        let clock = DeviceClock { name: self.name(name), device, backend: self.name(backend) };
        let code = self.shared.clocks.code(clock);
        code.map_or(ClockCode::OTHER, |at| ClockCode(FIRST_CLOCK + at))
    }

    /// The level in force for every node; `None` while nothing is recording.
    pub fn level(&self) -> Option<Level> {
        self.shared.levels.threshold().level()
    }

    /// Whether records of this level are wanted now, of every node or of some.
    #[inline(always)]
    pub fn records(&self, level: Level) -> bool {
        !crate::OFF && self.shared.levels.reach().records(level)
    }

    /// Whether records of this level are wanted now of every node.
    #[inline(always)]
    pub(crate) fn records_all(&self, level: Level) -> bool {
        !crate::OFF && self.shared.levels.threshold().records(level)
    }

    /// Whether records of this level are wanted now of this node: the level in force asks for them,
    /// or a [focus](Self::set_focus).
    #[inline(always)]
    pub fn wants(&self, node: NameId, level: Level) -> bool {
        self.records_all(level) || self.is_in_focus(node, level)
    }

    #[inline(always)]
    fn is_in_focus(&self, node: NameId, level: Level) -> bool {
        let focused = self.focused.get((node.0 as usize).wrapping_sub(1));
        !crate::OFF && focused.is_some_and(|focused| focused.get().records(level))
    }

    /// Records that were made while nothing was recording, by guards that were still open and by
    /// who does not ask for the level; they are in no file. Exact while nobody records.
    pub fn after_finish(&self) -> u64 {
        let counted = self.shared.after_finish.get();
        if self.shared.draining.load(Ordering::Acquire) {
            return counted;
        }
        counted.saturating_add(self.unrecorded())
    }

    /// Records that no recording took or told of, while nothing is recording.
    pub(crate) fn unrecorded(&self) -> u64 {
        let lanes = self.lanes.iter().map(LaneBlock::unrecorded);
        lanes.fold(self.shared.no_lane_told.untold(self.image.no_lane).into(), u64::saturating_add)
    }
}

impl<'p, C: Clock> ProbeRef<'p, C> {
    /// Sets the counters of a lane that nobody has, as if so much had been recorded on it: for tests
    /// of what happens at their far ends.
    #[doc(hidden)]
    pub fn preset_counters(&self, lane: LaneId, position: u64, spans: u64) {
        let block = self.lanes.get(usize::from(lane.0));
        if let (Some(block), Some(ring)) = (block, self.image.ring(lane)) {
            block.preset::<C>(ring, position, spans);
        }
    }

    /// Claims a free lane. Its records carry no step until [`Target::step`](crate::Target::step) or
    /// [`Target::enter_step`](crate::Target::enter_step) opens one.
    ///
    /// # Errors
    ///
    /// When every lane is taken.
    pub fn claim(&self, name: &str) -> Result<Lane<'p, C>, NoLane> {
        self.claim_block(name, 0).map(|block| Lane::new(*self, block)).ok_or(NoLane)
    }

    /// Whether a lane is free, by a look at each: what a thread that finds none pays on every
    /// record.
    pub(crate) fn has_free_lane(&self) -> bool {
        !self.lanes.iter().all(LaneBlock::is_claimed)
    }

    /// Claims a block. (Interning comes first: the name must be there when the drain sees the
    /// claim.)
    #[cold]
    pub(crate) fn claim_block(&self, name: &str, thread: u64) -> Option<&'p LaneBlock> {
        if !self.has_free_lane() {
            return None;
        }
        let name = self.name(name);
        let free = |(id, block): &(LaneId, &'p LaneBlock)| {
            self.image.ring(*id).is_some_and(|ring| block.try_claim::<C>(*id, ring, name, thread))
        };
        (0..).map(LaneId).zip(self.lanes).find(free).map(|(_, block)| block)
    }
}

/// Shows what a code stands for.
#[cfg(feature = "std")]
fn show(place: Option<&AtomicU32>, name: NameId) {
    if let Some(place) = place {
        place.store(name.0, Ordering::Relaxed);
    }
}

/// Every lane is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLane;

impl core::fmt::Display for NoLane {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("every lane of the probe is taken: give it more, or drop one that is not used")
    }
}

impl core::error::Error for NoLane {}
