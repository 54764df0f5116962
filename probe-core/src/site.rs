//! Static call sites.

use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, NameId};

use crate::shared::Shared;
use crate::sync::{AtomicPtr, AtomicU8, AtomicU32, Ordering, const_fn};

/// The site asks for nothing.
pub(crate) const DISARMED: u8 = 0;
/// The site records.
pub(crate) const ARMED: u8 = 1;
/// The site was never reached, and its probe does not know it.
const NEW: u8 = 2;
/// A thread is making the site known to its probe. (Disarmed in the meantime, it would lose what
/// another thread records at it.)
const JOINING: u8 = 3;
/// The site was reached before there was a probe to know it, and is being put where it waits for one.
const QUEUEING: u8 = 4;
/// The site has waited for its probe, which is there now and does not know it yet. (It is not new, so
/// that no site waits twice: who disarms one that waits need not fear that it does so again.)
const WOKEN: u8 = 5;

/// A static call site: what the macros put beside each call.
///
/// It belongs to the first probe that reaches it: a site that calls with targets of several probes
/// records by the level of that one, and its name is known to that one only.
///
/// Whether it records is one byte, so that a site which does not costs one load and one branch.
pub struct Site {
    armed: AtomicU8,
    level: Level,
    kind: Kind,
    line: u32,
    id: AtomicU32,
    name: &'static str,
    file: &'static str,
    next: AtomicPtr<Site>,
}

impl Site {
    const_fn! {
        /// A site; the macros make it.
        pub fn new(
            name: &'static str,
            kind: Kind,
            level: Level,
            file: &'static str,
            line: u32,
        ) -> Self {
            Self {
                armed: AtomicU8::new(NEW),
                level,
                kind,
                line,
                id: AtomicU32::new(0),
                name,
                file,
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// Whether the site records; `known` makes a new site known to its probe, and says so too.
    #[inline(always)]
    pub(crate) fn is_armed(&'static self, known: impl FnOnce(&'static Self) -> bool) -> bool {
        // Acquire, so that whoever sees the site armed sees its name too (and the drain with it).
        match self.armed.load(Ordering::Acquire) {
            DISARMED => false,
            ARMED => true,
            _ => known(self),
        }
    }

    /// Lets the caller, and nobody else, make the site known; else its state.
    fn join(&self) -> Result<u8, u8> {
        let unknown = |state| matches!(state, NEW | WOKEN).then_some(JOINING);
        self.armed.fetch_update(Ordering::AcqRel, Ordering::Relaxed, unknown)
    }

    /// No level arms the site: it is disarmed, and in no list.
    #[cfg(feature = "std")]
    pub(crate) fn never(&self) {
        if self.join().is_ok() {
            self.armed.store(DISARMED, Ordering::Release);
        }
    }

    /// Its entry in the name table.
    #[inline(always)]
    pub(crate) fn name_id(&self) -> NameId {
        NameId(self.id.load(Ordering::Relaxed))
    }

    /// The text of its name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Its level.
    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// What kind of record it makes.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Source file and line.
    pub(crate) const fn place(&self) -> (&'static str, u32) {
        (self.file, self.line)
    }
}

impl core::fmt::Debug for Site {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Site")
            .field("name", &self.name)
            .field("level", &self.level)
            .field("kind", &self.kind)
            .field("file", &self.file)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// Sites that were reached before their probe was there: they are disarmed, and cost what any disarmed
/// site costs, until they are woken.
#[cfg(feature = "std")]
pub(crate) struct Waiting {
    newest: AtomicPtr<Site>,
}

#[cfg(feature = "std")]
impl Waiting {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { newest: AtomicPtr::new(core::ptr::null_mut()) }
        }
    }

    /// Lets a site wait, unless the probe is there. Whoever brings the probe says so and then wakes
    /// the sites; whoever lets one wait links it and then asks again: one of the two sees the other
    /// (with a sequentially consistent fence between, on either side). The site is disarmed only behind
    /// that: none is disarmed and not woken once that is done.
    pub(crate) fn wait(&self, site: &'static Site, probe_is_there: impl Fn() -> bool) -> bool {
        if probe_is_there() {
            return false;
        }
        let link = site.armed.compare_exchange(NEW, QUEUEING, Ordering::AcqRel, Ordering::Relaxed);
        if link.is_ok() {
            push(&self.newest, site);
        }
        crate::sync::fence(Ordering::SeqCst);
        if probe_is_there() {
            self.wake();
            return false;
        }
        if link.is_ok() {
            // Unless it was woken meanwhile.
            let (seen, unseen) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = site.armed.compare_exchange(QUEUEING, DISARMED, seen, unseen);
        }
        true
    }

    /// Wakes all sites that wait: each makes itself known when it is reached next.
    pub(crate) fn wake(&self) {
        crate::sync::fence(Ordering::SeqCst);
        let mut next = self.newest.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the list links only `&'static Site`s, by `push`.
        while let Some(site) = unsafe { next.as_ref() } {
            // First, because a site that is woken may be linked elsewhere at once.
            next = site.next.load(Ordering::Acquire);
            site.armed.store(WOKEN, Ordering::Release);
        }
    }
}

/// Puts a site in front of a list. Who calls it has changed its state from new or woken: so it is in
/// no list, and nobody else puts it in one.
fn push(newest: &AtomicPtr<Site>, site: &'static Site) {
    let link = core::ptr::from_ref(site).cast_mut();
    let _ = newest.fetch_update(Ordering::AcqRel, Ordering::Acquire, |newest| {
        site.next.store(newest, Ordering::Relaxed);
        Some(link)
    });
}

/// The sites that a probe knows: a list that only grows, newest first.
pub(crate) struct Sites {
    newest: AtomicPtr<Site>,
}

impl Sites {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { newest: AtomicPtr::new(core::ptr::null_mut()) }
        }
    }

    /// Makes a site known, with this name, and arms it as its probe is armed.
    #[cold]
    #[inline(never)]
    pub(crate) fn register(&self, site: &'static Site, name: NameId, shared: &Shared) -> bool {
        // A site that has a name keeps it, also when another thread finds the table full.
        let _ = site.id.compare_exchange(0, name.0, Ordering::Relaxed, Ordering::Relaxed);
        // Two threads may reach a new site together; one of them links it.
        match site.join() {
            Ok(_) => push(&self.newest, site),
            // Its state is another thread's to set, in a moment.
            Err(JOINING | QUEUEING) => return shared.threshold().records(site.level),
            Err(_) => {}
        }
        self.arm(site, shared)
    }

    /// Arms or disarms a site by the level in force, until that level stays the same meanwhile:
    /// whoever changes the level stores it before walking the list, and whoever links a site links
    /// it before looking at the level, so one of the two sees the other. (Each side stores one thing
    /// and then loads another, with a sequentially consistent fence between.)
    fn arm(&self, site: &Site, shared: &Shared) -> bool {
        loop {
            let threshold = shared.threshold_after_store();
            let armed = threshold.records(site.level);
            site.armed.store(if armed { ARMED } else { DISARMED }, Ordering::Release);
            if shared.threshold_after_store() == threshold {
                return armed;
            }
        }
    }

    /// Arms or disarms every site.
    pub(crate) fn arm_all(&self, shared: &Shared) {
        self.iter().for_each(|site| {
            self.arm(site, shared);
        });
    }

    /// The sites, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Site> + use<> {
        let mut next = self.newest.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: the list links only `&'static Site`s, by `register`.
            let site: &'static Site = unsafe { next.as_ref() }?;
            next = site.next.load(Ordering::Acquire);
            Some(site)
        })
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::sync::AtomicBool;
    use crate::{AutoClock, Probe};

    /// Three threads reach the same new sites while a fourth brings their probe, which wants records
    /// of their level. A thread that knows the probe to be there never finds a site disarmed, whatever
    /// the others are in the middle of; and in the end the probe knows every site once.
    #[test]
    fn no_site_that_waits_sleeps_on_once_its_probe_is_there() {
        const SITES: usize = 32;
        for _ in 0..if cfg!(miri) { 3 } else { 400 } {
            let probe: &'static Probe<AutoClock, 1, 32, 64> = Box::leak(Box::new(Probe::new()));
            let shared = probe.view().shared;
            shared.arm(Level::PULSE, || tmrun_formats::Ticks(0));
            let sites: &'static [Site] = Box::leak(Box::new(
                [const { Site::new("site", Kind::Scalar, Level::PULSE, "", 0) }; SITES],
            ));
            let (waiting, there) = (&Waiting::new(), &AtomicBool::new(false));
            let (done, together) = (&AtomicBool::new(false), &Barrier::new(4));
            let reach = |site: &'static Site| {
                site.is_armed(|site| {
                    !waiting.wait(site, || there.load(Ordering::SeqCst))
                        && probe.view().register(site)
                })
            };
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        together.wait();
                        loop {
                            let must = done.load(Ordering::Acquire);
                            for site in sites {
                                assert!(reach(site) || !must, "{site:?} sleeps");
                            }
                            if must {
                                break;
                            }
                        }
                    });
                }
                together.wait();
                there.store(true, Ordering::SeqCst);
                waiting.wake();
                done.store(true, Ordering::Release);
            });
            assert_eq!(shared.sites.iter().count(), SITES);
        }
    }
}
