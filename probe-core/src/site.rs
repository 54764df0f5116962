//! Static call sites.

use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, NameId};

use crate::shared::Shared;
use crate::sync::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// The site asks for nothing.
pub(crate) const DISARMED: u8 = 0;
/// The site records.
pub(crate) const ARMED: u8 = 1;
/// The site was never reached, and its probe does not know it.
const NEW: u8 = 2;

/// A static call site: what the macros put beside each call.
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
    /// A site; the macros make it.
    pub const fn new(
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

    /// Whether the site records; `known` makes a new site known to its probe, and says so too.
    #[inline(always)]
    pub(crate) fn is_armed(&'static self, known: impl FnOnce(&'static Self) -> bool) -> bool {
        match self.armed.load(Ordering::Relaxed) {
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
    count: AtomicU32,
}

impl Sites {
    pub(crate) const fn new() -> Self {
        Self { newest: AtomicPtr::new(core::ptr::null_mut()), count: AtomicU32::new(0) }
    }

    /// Makes a site known, with this name, and arms it as its probe is armed.
    #[cold]
    #[inline(never)]
    pub(crate) fn register(&self, site: &'static Site, name: NameId, shared: &Shared) -> bool {
        site.id.store(name.0, Ordering::Relaxed);
        // Two threads may reach a new site together; one of them links it.
        if site.armed.compare_exchange(NEW, DISARMED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let link = core::ptr::from_ref(site).cast_mut();
            let mut newest = self.newest.load(Ordering::Acquire);
            loop {
                site.next.store(newest, Ordering::Relaxed);
                match self.newest.compare_exchange_weak(
                    newest,
                    link,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => newest = now,
                }
            }
            self.count.fetch_add(1, Ordering::Release);
        }
        self.arm(site, shared)
    }

    /// Arms or disarms a site by the level in force, until that level stays the same meanwhile:
    /// whoever changes the level stores it before walking the list, so one of the two sees the
    /// other.
    fn arm(&self, site: &Site, shared: &Shared) -> bool {
        loop {
            let threshold = shared.threshold();
            let armed = threshold.records(site.level);
            site.armed.store(if armed { ARMED } else { DISARMED }, Ordering::SeqCst);
            if shared.threshold() == threshold {
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

    /// How many sites are known.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// The sites, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Site> {
        let mut next = self.newest.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: the list links only `&'static Site`s, by `register`.
            let site: &'static Site = unsafe { next.as_ref() }?;
            next = site.next.load(Ordering::Acquire);
            Some(site)
        })
    }
}
