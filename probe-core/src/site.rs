//! Static call sites.

use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, NameId};

use crate::names::Names;
use crate::shared::Shared;
use crate::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, const_fn};

#[cfg(feature = "std")]
mod waiting;
#[cfg(all(feature = "std", not(all(loom, test))))]
pub(crate) use waiting::Waiting;

/// No probe has reached the site.
const NEW: usize = 0;

/// Whose a site is: the address of what the lanes of its probe share, or, where it was reached through
/// the installed probe, of what stands in for that. With one of these added it is the state of the
/// site, so that one comparison says both whose it is and whether it records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(usize);

/// The site records.
const ARMED: usize = 0;
/// The site does not.
const DISARMED: usize = 1;
/// A thread is making the site known to its probe. (Disarmed in the meantime, it would lose what
/// another thread records at it.)
const JOINING: usize = 2;
/// The site was reached before there was a probe to know it, and is being put where it waits for one.
#[cfg(feature = "std")]
const QUEUEING: usize = 3;
/// The site has waited for its probe, which is there now and does not know it yet. (It is not new, so
/// that no site waits twice: who disarms one that waits need not fear that it does so again.)
const WOKEN: usize = 4;
/// The bits of these.
const STATE: usize = 7;

const _: () = assert!(align_of::<Shared>() > STATE);

impl Owner {
    #[inline(always)]
    pub(crate) fn of(shared: &Shared) -> Self {
        Self(core::ptr::from_ref(shared).addr())
    }

    #[inline(always)]
    const fn state(self, state: usize) -> usize {
        self.0 | state
    }
}

/// A static call site: what the macros put beside each call.
///
/// It belongs to the first probe that reaches it. With targets of that probe it costs one load and
/// one branch while it does not record. With those of another it records just as well (by the level
/// and the names of that one), but looks its name up each time: some hundred nanoseconds. When its
/// probe is dropped it is anybody's again.
pub struct Site {
    /// [`NEW`], or the owner with its state.
    state: AtomicUsize,
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
        /// A site; the macros make it. Without a name it is given a node at each call.
        pub fn new(
            name: &'static str,
            kind: Kind,
            level: Level,
            file: &'static str,
            line: u32,
        ) -> Self {
            Self {
                state: AtomicUsize::new(NEW),
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

    /// The name under which the site records on lanes of this probe; `None` when it does not.
    /// `decide` says so while that is not known.
    #[inline(always)]
    pub(crate) fn armed(
        &'static self,
        owner: Owner,
        decide: impl FnOnce(&'static Self) -> Option<NameId>,
    ) -> Option<NameId> {
        if crate::OFF {
            return None;
        }
        // Acquire, so that whoever sees the site armed sees its name too (and the drain with it).
        let state = self.state.load(Ordering::Acquire);
        if state == owner.state(DISARMED) {
            None
        } else if state == owner.state(ARMED) {
            Some(self.name_id())
        } else {
            decide(self)
        }
    }

    /// Lets the caller, and nobody else, make the site known to this owner.
    fn join(&self, owner: Owner) -> bool {
        let unknown =
            |state| (state == NEW || state == owner.state(WOKEN)).then_some(owner.state(JOINING));
        self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, unknown).is_ok()
    }

    /// No level arms the site: it is disarmed, and in no list.
    #[cfg(feature = "std")]
    pub(crate) fn never(&self, owner: Owner) {
        if self.join(owner) {
            self.state.store(owner.state(DISARMED), Ordering::Release);
        }
    }

    /// Whether no probe knows it.
    pub(crate) fn is_unknown(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state == NEW || state & STATE == WOKEN
    }

    /// Its entry in the name table of its probe.
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

    /// Arms or disarms the site by what its probe asks for.
    fn arm(&self, shared: &Shared, names: &Names<'_>) {
        let owner = Owner(self.state.load(Ordering::Relaxed) & !STATE);
        shared.levels.settle(|| {
            let armed = shared.levels.of_site(self.name, names).records(self.level);
            let state = owner.state(if armed { ARMED } else { DISARMED });
            self.state.store(state, Ordering::Release);
        });
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

    /// Decides for a site whose state does not: makes one that is new known, with this name. One
    /// of another probe, and one that another thread is making known, is none to touch.
    pub(crate) fn decide(
        &self,
        site: &'static Site,
        owner: Owner,
        name: NameId,
        shared: &Shared,
        names: &Names<'_>,
    ) -> Option<NameId> {
        // Two threads may reach a new site together; one of them links it.
        if site.join(owner) {
            site.id.store(name.0, Ordering::Relaxed);
            push(&self.newest, site);
            site.arm(shared, names);
        }
        shared.levels.of_site(site.name, names).records(site.level).then_some(name)
    }

    /// Arms or disarms every site.
    pub(crate) fn arm_all(&self, shared: &Shared, names: &Names<'_>) {
        self.iter().for_each(|site| site.arm(shared, names));
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

impl Drop for Sites {
    /// The probe ends: its sites are anybody's.
    fn drop(&mut self) {
        self.iter().for_each(|site| {
            site.id.store(0, Ordering::Relaxed);
            site.state.store(NEW, Ordering::Release);
        });
    }
}
