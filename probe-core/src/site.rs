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
        if site.armed.compare_exchange(NEW, DISARMED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let link = core::ptr::from_ref(site).cast_mut();
            let _ = self.newest.fetch_update(Ordering::AcqRel, Ordering::Acquire, |newest| {
                site.next.store(newest, Ordering::Relaxed);
                Some(link)
            });
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
