//! Recording: what a lane's owner calls, and what the macros expand to.

use core::marker::PhantomData;

use tmrun_formats::wire::{Kind, Payload, RecordHeader};
use tmrun_formats::{LaneId, Level, NameId, Phase, Planes, Ticks};

use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::probe::ProbeRef;
use crate::site::{Owner, Site};
use crate::step::StepGuard;

/// Something that records can be made on: a [`Lane`], or a probe that finds a lane for the calling
/// thread. The macros take either.
pub trait Target {
    /// The clock that stamps the records.
    type Clock: Clock;

    /// The highest level that is compiled in: sites above it are no code at all.
    const MAX_LEVEL: Level;

    /// The probe behind it.
    fn probe(&self) -> ProbeRef<'_, Self::Clock>;

    /// The recording end of the caller's lane; `None` when there is no lane to be had.
    ///
    /// # Safety
    ///
    /// What is made of the answer does not outlive the caller's hold on the lane: it is used at
    /// once, or it is a guard that keeps the lane from being given back.
    #[doc(hidden)]
    unsafe fn here(&self) -> Option<Recorder<'_, Self::Clock>>;

    /// The caller's lane, or one that nobody ever had, on which nothing can be opened quickly.
    ///
    /// # Safety
    ///
    /// As for [`here`](Self::here).
    #[doc(hidden)]
    unsafe fn quick_lane(&self) -> &LaneBlock;

    /// Runs `f` on the caller's lane. Without a lane the loss is counted, with these planes.
    #[doc(hidden)]
    #[inline(always)]
    fn on_lane<R>(
        &self,
        planes: Planes,
        f: impl for<'l> FnOnce(Recorder<'l, Self::Clock>) -> R,
    ) -> Option<R> {
        // SAFETY: `f` must take any lifetime, so it keeps nothing of the recorder.
        match unsafe { self.here() } {
            Some(recorder) => Some(f(recorder)),
            None => {
                self.probe().image.no_lane.count(planes);
                None
            }
        }
    }

    /// Opens a step on the caller's lane, which ends when the guard is dropped. It does nothing
    /// while nothing is recording.
    #[inline]
    fn step(&self, number: u64) -> StepGuard<'_, Self::Clock> {
        self.step_as(number, Phase::default())
    }

    /// Opens a step of this phase, where it differs from the run's.
    #[inline]
    fn step_as(&self, number: u64, phase: Phase) -> StepGuard<'_, Self::Clock> {
        if !self.probe().records(Level::PULSE) {
            return StepGuard::inert();
        }
        // SAFETY: the guard counts among the lane's guards for as long as it lives.
        match unsafe { self.here() } {
            Some(recorder) => StepGuard::open(recorder, number, phase),
            None => StepGuard::missed(self.probe().image.no_lane),
        }
    }

    /// Joins a step that another lane opened: the records of the caller's lane belong to it until
    /// the guard is dropped.
    #[inline]
    fn enter_step(&self, number: u64) -> StepGuard<'_, Self::Clock> {
        self.step(number)
    }

    /// Runs `f` on the caller's lane if records of this level are wanted, of every node or of some.
    /// Of these, each fact records what is wanted of its own node: [`Recorder::wants`] says so.
    ///
    /// This is how facts that no macro covers are recorded, in any number at once. (Without a lane
    /// they are counted as one record, of any plane that the level in force or a focus asks for.)
    ///
    /// ```
    /// # use tmrun_probe_core::{AutoClock, Level, Probe, Target};
    /// # static PROBE: Probe<AutoClock, 1, 64> = Probe::new();
    /// # let lane = PROBE.view().claim("main").unwrap();
    /// let gap = lane.probe().name("clip/fraction");
    /// lane.at(Level::PULSE, |recorder| recorder.scalar(gap, 0.25));
    /// ```
    #[inline(always)]
    fn at<R>(
        &self,
        level: Level,
        f: impl for<'l> FnOnce(Recorder<'l, Self::Clock>) -> R,
    ) -> Option<R> {
        // What is asked for of every node is decided here, once, for all facts of the closure; what
        // only a focus asks for, by each for its node.
        if level > Self::MAX_LEVEL {
            return None; // before anything is looked at: then it is no code at all
        }
        let of_every_node = self.probe().records_all(level);
        if !self.is_wanted(level) {
            return None;
        }
        // SAFETY: `f` must take any lifetime, so it keeps nothing of the recorder.
        match unsafe { self.here() } {
            Some(recorder) if of_every_node => Some(f(recorder)),
            Some(recorder) => Some(f(recorder.asking(level))),
            None => {
                self.probe().miss(level);
                None
            }
        }
    }

    /// Whether records of this level are compiled in and wanted now.
    #[doc(hidden)]
    #[inline(always)]
    fn is_wanted(&self, level: Level) -> bool {
        level <= Self::MAX_LEVEL && self.probe().records(level)
    }

    /// The name under which a static site is to record; `None` when it is not. (The macros call it.)
    #[doc(hidden)]
    #[inline(always)]
    fn armed(&self, site: &'static Site) -> Option<NameId> {
        let owner = Owner::of(self.probe().shared);
        site.armed(owner, |site| self.probe().decide(site, owner))
    }
}

impl<C> ProbeRef<'_, C> {
    #[cold]
    #[inline(never)]
    pub(crate) fn decide(&self, site: &'static Site, owner: Owner) -> Option<NameId> {
        if !site.is_unknown() && !self.records(site.level()) {
            return None;
        }
        self.shared.sites.decide(site, owner, self.name(site.name()), self.shared, &self.names())
    }

    /// Something of this level found no lane. Nobody knows what it would have recorded: a closure takes
    /// facts of every level that is asked for, by the level in force or a focus.
    #[cold]
    #[inline(never)]
    fn miss(&self, level: Level) {
        let is_asked = |level: Level| self.records(level);
        let asked = Kind::ALL.iter().filter(|kind| kind.level() <= level || is_asked(kind.level()));
        let asked = asked.map(|kind| kind.plane());
        let asked = asked.filter(|plane| *plane != Planes::RECORDER);
        self.image.no_lane.count(asked.fold(Planes::NONE, Planes::union));
    }
}

/// A lane, claimed. It can be moved to another thread but not shared, and is given back on drop.
pub struct Lane<'p, C> {
    probe: ProbeRef<'p, C>,
    block: &'p LaneBlock,
    /// One owner, one producer: `Send`, but not `Sync`.
    owner: PhantomData<core::cell::Cell<()>>,
}

impl<'p, C> Lane<'p, C> {
    pub(crate) const fn new(probe: ProbeRef<'p, C>, block: &'p LaneBlock) -> Self {
        Self { probe, block, owner: PhantomData }
    }

    /// The lane's recording end, which does not look at the level. Most callers want
    /// [`Target::at`].
    #[inline(always)]
    pub fn recorder(&self) -> Recorder<'_, C> {
        Recorder::new(&self.probe, self.block)
    }
}

impl<C> Drop for Lane<'_, C> {
    fn drop(&mut self) {
        self.block.release();
    }
}

impl<C> core::fmt::Debug for Lane<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Lane").field(&self.block.id()).finish()
    }
}

impl<C: Clock> Target for Lane<'_, C> {
    type Clock = C;
    const MAX_LEVEL: Level = Level::MAX;

    #[inline(always)]
    fn probe(&self) -> ProbeRef<'_, C> {
        self.probe
    }

    #[inline(always)]
    unsafe fn here(&self) -> Option<Recorder<'_, C>> {
        Some(self.recorder())
    }

    #[inline(always)]
    unsafe fn quick_lane(&self) -> &LaneBlock {
        self.block
    }
}

/// The recording end of a lane, for as long as a call lasts.
pub struct Recorder<'l, C> {
    /// By reference: it is handed to code that is not inlined, and a view is some thirty words.
    probe: &'l ProbeRef<'l, C>,
    block: &'l LaneBlock,
    /// The level that asks for what is recorded; none where nobody looks at the level.
    asked: Option<Level>,
    /// Stays on its thread: it must not outlive the thread's claim.
    here: PhantomData<*const ()>,
}

impl<C> Clone for Recorder<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Recorder<'_, C> {}

impl<C> core::fmt::Debug for Recorder<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Recorder").field(&self.block.id()).finish()
    }
}

impl<'l, C> Recorder<'l, C> {
    #[inline(always)]
    pub(crate) const fn new(probe: &'l ProbeRef<'l, C>, block: &'l LaneBlock) -> Self {
        Self { probe, block, asked: None, here: PhantomData }
    }

    /// The same, for what this level asks for.
    #[inline(always)]
    const fn asking(self, level: Level) -> Self {
        Self { asked: Some(level), ..self }
    }

    /// Whether facts of this node are wanted by the level that [`Target::at`] was given; those that
    /// are not do nothing. Ask before a fact is computed that costs something.
    #[inline(always)]
    pub fn wants(&self, node: NameId) -> bool {
        self.asked.is_none_or(|level| self.probe.wants(node, level))
    }

    /// The recording end of this block. (The macros call it.)
    ///
    /// # Safety
    ///
    /// The block is a lane of `probe` that the calling thread owns.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn on(probe: &'l ProbeRef<'l, C>, block: &'l LaneBlock) -> Self {
        Self::new(probe, block)
    }

    /// The probe behind the lane.
    pub const fn probe(&self) -> ProbeRef<'l, C> {
        *self.probe
    }

    /// The time now, on the recording clock.
    #[inline(always)]
    pub fn now(&self) -> Ticks
    where
        C: Clock,
    {
        C::ticks()
    }

    #[inline(always)]
    pub(crate) const fn block(&self) -> &'l LaneBlock {
        self.block
    }

    /// The lane.
    pub fn lane(&self) -> LaneId {
        self.block.id()
    }

    /// The step that is open on the lane, 0 for none.
    pub fn open_step(&self) -> u64 {
        self.block.step()
    }

    /// The header of a record on this lane, in the span that is open.
    #[inline(always)]
    pub(crate) fn header<P: Payload>(
        &self,
        ticks: Ticks,
        name: NameId,
        level: Level,
    ) -> RecordHeader {
        // The level that asked, where one did: it may be above what the kind needs.
        let level = self.asked.unwrap_or(level);
        RecordHeader { ticks, name, span: self.block.enclosing(), ..RecordHeader::of::<P>(level) }
    }

    /// Stores a record that is a group by itself.
    #[inline(always)]
    pub(crate) fn store<P: Payload>(&self, header: RecordHeader, payload: &P)
    where
        C: Clock,
    {
        self.store_between(header, (header.ticks, header.ticks), payload);
    }

    /// The same for a record that speaks of other moments than its own.
    #[inline(always)]
    pub(crate) fn store_between<P: Payload>(
        &self,
        header: RecordHeader,
        edges: (Ticks, Ticks),
        payload: &P,
    ) where
        C: Clock,
    {
        if let Some(mut store) = self.block.reserve::<C>(1, edges, P::KIND.plane()) {
            store.put(header, payload);
            store.publish();
        }
    }
}
