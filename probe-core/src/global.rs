//! The installed probe: what libraries record on, which cannot name the program's probe.

use std::sync::atomic::AtomicPtr;

use tmrun_formats::{Level, NameId, Phase};

use crate::clock::AutoClock;
use crate::lane::LaneBlock;
use crate::probe::{CAP, Probe, ProbeRef};
use crate::record::{Recorder, Target};
use crate::site::{Owner, Site, Waiting};
use crate::step::StepGuard;
use crate::sync::Ordering;
use crate::thread::ThreadLane;

/// A probe that [`probe!`](crate::probe) declared: its lanes belong to threads.
pub trait StaticProbe: Target + Copy + Send + Sync + 'static {
    /// What is known of it without its type.
    #[doc(hidden)]
    fn entry() -> &'static Entry<Self::Clock>;
}

/// A declared probe without its type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Entry<C: 'static> {
    probe: ProbeRef<'static, C>,
    /// The probe's own look-up of the calling thread's lane, so that what records through the probe
    /// and what records through [`Global`] are on one lane.
    here: fn() -> Option<Recorder<'static, C>>,
}

impl<C> Entry<C> {
    /// What the macro knows. Whoever calls `here` has the contract of [`Target::here`].
    pub const fn new(
        probe: ProbeRef<'static, C>,
        here: fn() -> Option<Recorder<'static, C>>,
    ) -> Self {
        Self { probe, here }
    }
}

/// Stands in until a probe is installed: nothing ever records it, and it has no room for names, which
/// would mean something else on the probe that comes.
static NOWHERE: Entry<AutoClock> =
    Entry::new(MEMORY.view().without_room().capped(Level::PULSE), || None);
static MEMORY: Probe<AutoClock, 1, 32, 1> = Probe::new();
static INSTALLED: AtomicPtr<Entry<AutoClock>> = AtomicPtr::new((&raw const NOWHERE).cast_mut());
static WAITING: Waiting = Waiting::new();

std::thread_local! {
    /// The calling thread's lane of the installed probe, once it was looked up.
    static HERE: ThreadLane = const { ThreadLane::new() };
}

/// Makes this probe the one that [`Global`] stands for, and with it `span!("name")`,
/// `measured!("name")` and `scalar!("label", value)` without a target: those of libraries, which
/// cannot name the program's probe. Once in a process; a program does it before it starts the
/// recording. What was reached before records nothing and costs what a disarmed site costs; from here
/// on all of it records.
///
/// The probe has the clock that [`probe!`](crate::probe) takes by itself: reading it is part of the
/// library's own code.
///
/// ```
/// use tmrun_probe_core::{install, probe, scalar, span};
///
/// probe!(static PROBE: lanes = 4, slots = 1 << 10);
///
/// fn forward() { // of some library
///     let _span = span!("forward");
///     scalar!("loss", 0.5);
/// }
///
/// install(PROBE)?;
/// forward();
/// # Ok::<(), tmrun_probe_core::AlreadyInstalled>(())
/// ```
///
/// # Errors
///
/// When a probe is installed already, also the same one.
pub fn install<P: StaticProbe<Clock = AutoClock>>(probe: P) -> Result<(), AlreadyInstalled> {
    let _ = probe;
    let nowhere = (&raw const NOWHERE).cast_mut();
    let entry = core::ptr::from_ref(P::entry()).cast_mut();
    INSTALLED
        .compare_exchange(nowhere, entry, Ordering::AcqRel, Ordering::Acquire)
        .map_err(|_| AlreadyInstalled)?;
    WAITING.wake(owner());
    Ok(())
}

/// A probe is installed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyInstalled;

impl core::fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a probe is installed already: a program installs one, once")
    }
}

impl core::error::Error for AlreadyInstalled {}

/// The probe that the program [installed](install), as a [`Target`]: `span!(Global, node)`,
/// `Global.at(level, …)`. Until one is installed nothing is recorded.
///
/// Two levels cap it: the features `max-level-N` of this crate, above which a site is no code at all,
/// and the installed probe's [`max_level`](ProbeRef::max_level), above which a site is never armed.
#[derive(Debug, Clone, Copy)]
pub struct Global;

impl Global {
    /// Opens a step on the calling thread's lane; it ends when the guard is dropped.
    pub fn step(&self, number: u64) -> StepGuard<'static, AutoClock> {
        Target::step(&Self, number)
    }

    /// Opens a step of this phase, where it differs from the run's.
    pub fn step_as(&self, number: u64, phase: Phase) -> StepGuard<'static, AutoClock> {
        Target::step_as(&Self, number, phase)
    }

    /// Joins a step that another thread opened.
    pub fn enter_step(&self, number: u64) -> StepGuard<'static, AutoClock> {
        Target::enter_step(&Self, number)
    }

    /// Runs `f` on the calling thread's lane if records of this level are wanted.
    #[inline(always)]
    pub fn at<R>(
        &self,
        level: Level,
        f: impl for<'l> FnOnce(Recorder<'l, AutoClock>) -> R,
    ) -> Option<R> {
        Target::at(self, level, f)
    }

    /// The id of a name on the installed probe; none, which stays none, until there is one.
    pub fn name(&self, name: &str) -> NameId {
        self.probe().name(name)
    }
}

impl Target for Global {
    type Clock = AutoClock;

    const MAX_LEVEL: Level = CAP;

    #[inline(always)]
    fn probe(&self) -> ProbeRef<'_, AutoClock> {
        installed().probe
    }

    #[inline(always)]
    unsafe fn here(&self) -> Option<Recorder<'_, AutoClock>> {
        // SAFETY: the caller's contract.
        let block = match HERE.with(|here| unsafe { here.get() }) {
            Some(block) => Some(block),
            None => look_up(),
        }?;
        // SAFETY: what is kept is the calling thread's lane of the installed probe. (A thread that
        // has one has seen which probe that is, and another is never installed.)
        Some(unsafe { Recorder::on(&installed().probe, block) })
    }

    #[inline(always)]
    unsafe fn quick_lane(&self) -> &LaneBlock {
        // SAFETY: the caller's contract.
        HERE.with(|here| unsafe { here.lane() })
    }

    #[inline(always)]
    fn is_wanted(&self, level: Level) -> bool {
        !crate::OFF && level <= Self::MAX_LEVEL && {
            let installed = installed();
            level <= installed.probe.max_level() && installed.probe.records(level)
        }
    }

    #[inline(always)]
    fn armed(&self, site: &'static Site) -> Option<NameId> {
        site.armed(owner(), decide)
    }
}

#[inline(always)]
fn installed() -> &'static Entry<AutoClock> {
    // SAFETY: only `&'static`s of entries are stored.
    unsafe { &*INSTALLED.load(Ordering::Acquire) }
}

/// Whose the sites are that are reached through the installed probe, whichever it is: so it is not
/// asked for while they are disarmed.
#[inline(always)]
fn owner() -> Owner {
    Owner::of(MEMORY.view().shared)
}

/// A site is reached whose state does not say whether it records.
#[cold]
#[inline(never)]
fn decide(site: &'static Site) -> Option<NameId> {
    let is_installed = || !core::ptr::eq(INSTALLED.load(Ordering::Acquire), &raw const NOWHERE);
    if WAITING.wait(site, owner(), is_installed) {
        return None;
    }
    let installed = installed();
    if site.level() > installed.probe.max_level() {
        site.never(owner());
        return None;
    }
    installed.probe.decide(site, owner())
}

/// The calling thread's lane of the installed probe, claimed on first use and kept.
#[cold]
#[inline(never)]
fn look_up() -> Option<&'static LaneBlock> {
    let block = (installed().here)()?.block();
    HERE.with(|here| here.keep(block));
    Some(block)
}

/// A thread gives back a lane, which may be the one that is kept.
pub(crate) fn forget() {
    HERE.with(ThreadLane::clear);
}
