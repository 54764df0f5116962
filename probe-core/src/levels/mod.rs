//! What is asked for: a level for every node, and foci, which ask for more of some.
//!
//! A site's own byte (`site.rs`) and a node's (`names.rs`) say what it comes to for them, so that
//! recording looks at no pattern. Whoever changes the level or a focus stores the change and then
//! goes through all of them; whoever adds a site or a node adds it and then looks at what is asked
//! for. So one of the two sees the other ([`Levels::settle`]).

mod change;
mod foci;
mod shown;

use tmrun_formats::Level;

use crate::names::Names;
use crate::sync::{AtomicBool, AtomicU8, AtomicU32, Ordering, const_fn, fence};

use change::Changes;
pub(crate) use change::{Stated, Taken};
pub use foci::FocusError;
pub(crate) use foci::{FOCI, Foci};
pub(crate) use shown::ShownChanges;

/// Up to which level something records: 0 for not at all, else the level plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

    /// The level in force, unless nothing is asked for.
    pub(crate) const fn level(self) -> Option<Level> {
        match self.0.checked_sub(1) {
            Some(level) => Some(Level(level)),
            None => None,
        }
    }
}

/// A threshold that other threads read.
pub(crate) struct ThresholdCell(AtomicU8);

impl ThresholdCell {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self(AtomicU8::new(0))
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Threshold {
        Threshold(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, threshold: Threshold) {
        self.0.store(threshold.0, Ordering::Relaxed);
    }
}

/// The level and the foci of a probe.
pub(crate) struct Levels {
    /// Of every node: off while nothing is recording.
    pub(crate) threshold: ThresholdCell,
    /// The most that is asked for of any node.
    reach: ThresholdCell,
    pub(crate) foci: Foci,
    /// How often any of it has changed.
    generation: AtomicU32,
    /// Held while it changes: by whoever changes it, and by the drain as it takes changes.
    changing: AtomicBool,
    changes: Changes,
}

impl Levels {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                threshold: ThresholdCell::new(),
                reach: ThresholdCell::new(),
                foci: Foci::new(),
                generation: AtomicU32::new(0),
                changing: AtomicBool::new(false),
                changes: Changes::new(),
            }
        }
    }

    /// What is asked for of every node.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> Threshold {
        self.threshold.get()
    }

    /// The most that is asked for of any node.
    #[inline(always)]
    pub(crate) fn reach(&self) -> Threshold {
        self.reach.get()
    }

    /// What is asked for of a site of this name. A site without one is given its node at each call:
    /// it may be any.
    pub(crate) fn of_site(&self, name: &str, names: &Names<'_>) -> Threshold {
        if name.is_empty() {
            return self.reach();
        }
        self.threshold().max(self.foci.of(name, names))
    }

    /// What the foci ask for of a node of this name.
    pub(crate) fn of_focus(&self, name: &str, names: &Names<'_>) -> Threshold {
        self.foci.of(name, names)
    }

    /// Does `store`, which looks at what is asked for and stores what it comes to somewhere, until
    /// nothing changes meanwhile.
    ///
    /// The place was made known before the call. Whoever changes what is asked for counts the
    /// generation up, and then looks for places; a fence there and two here are in one order. If
    /// they do not find the place, the first fence here is behind theirs, and `store` sees the
    /// change. If they do, both store to the place: if this store is the later one, the second fence
    /// here is behind theirs, the generation is seen to have changed, and it is done again.
    pub(crate) fn settle(&self, mut store: impl FnMut()) {
        fence(Ordering::SeqCst);
        loop {
            // Who sees a generation sees what was asked for when it began.
            let generation = self.generation.load(Ordering::Acquire);
            store();
            fence(Ordering::SeqCst);
            if self.generation.load(Ordering::Relaxed) == generation {
                return;
            }
        }
    }

    /// Says that what is asked for has changed, before the places are looked for.
    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}
