//! Changes of what is asked for, and their way to the recorder's lane.

use tmrun_formats::rings::ChangeCell;
use tmrun_formats::wire::LevelChange;
use tmrun_formats::{Level, LevelSource, NameId, Ticks};

use super::{Levels, ShownChanges, Threshold};
use crate::clock::Clock;
use crate::names::Names;
use crate::probe::ProbeRef;
use crate::shared::Shared;
use crate::sync::{AtomicBool, AtomicU32, Ordering, Word, array, const_fn, spin_loop};

/// Changes that may wait for the drain.
pub(super) const WAITING: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// The changes that wait. Only who holds `changing` touches them.
pub(super) struct Changes {
    waiting: [Waiting; WAITING],
    len: AtomicU32,
    lost: AtomicU32,
    /// How many changes there were.
    all: Word,
}

struct Waiting {
    asked: Word,
    armed: Word,
    /// The focus; none for the level of every node.
    focus: AtomicU32,
    what: AtomicU32,
}

impl Waiting {
    const_fn! {
        fn new() -> Self {
            Self {
                asked: Word::new(0),
                armed: Word::new(0),
                focus: AtomicU32::new(0),
                what: AtomicU32::new(0),
            }
        }
    }
}

impl Changes {
    const_fn! {
        pub(super) fn new() -> Self {
            Self {
                waiting: array![Waiting::new(); WAITING],
                len: AtomicU32::new(0),
                lost: AtomicU32::new(0),
                all: Word::new(0),
            }
        }
    }

    fn clear(&self, shown: &ShownChanges) {
        self.len.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        shown.announced(self.all.get());
        shown.taken(self.all.get());
    }

    /// Shows what is about to be asked for, from this moment on.
    fn announce(&self, shown: &ShownChanges, changes: &[Asked], asked: Ticks) {
        let (all, len) = (self.all.get(), self.len.load(Ordering::Relaxed) as usize);
        let room = changes.iter().take(WAITING.saturating_sub(len));
        for (number, &Asked { focus, old, new, source }) in (all..).zip(room) {
            let change = LevelChange { asked, armed: Ticks(0), old, new, source };
            shown.announce(&ChangeCell { number, focus, change });
        }
        shown.announced(all.wrapping_add(changes.len() as u64));
    }

    fn push(&self, shown: &ShownChanges, focus: NameId, change: LevelChange) {
        let (all, len) = (self.all.get(), self.len.load(Ordering::Relaxed));
        self.all.set(all.wrapping_add(1));
        let Some(place) = self.waiting.get(len as usize) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let LevelChange { asked, armed, old, new, source } = change;
        place.asked.set(asked.0);
        place.armed.set(armed.0);
        place.focus.store(focus.0, Ordering::Relaxed);
        place.what.store(u32::from_le_bytes([old.0, new.0, source.0, 0]), Ordering::Relaxed);
        self.len.store(len + 1, Ordering::Relaxed);
        shown.made(all, armed);
    }

    fn take(&self, shown: &ShownChanges, tell: impl Fn(Taken)) {
        let len = self.len.swap(0, Ordering::Relaxed) as usize;
        for place in self.waiting.iter().take(len) {
            let [old, new, source, _] = place.what.load(Ordering::Relaxed).to_le_bytes();
            let change = LevelChange {
                asked: Ticks(place.asked.get()),
                armed: Ticks(place.armed.get()),
                old: Level(old),
                new: Level(new),
                source: LevelSource(source),
            };
            tell(Taken::Change(NameId(place.focus.load(Ordering::Relaxed)), change));
        }
        match self.lost.swap(0, Ordering::Relaxed) {
            0 => {}
            lost => tell(Taken::Lost(lost)),
        }
        shown.taken(self.all.get());
    }
}

/// What the drain takes.
pub(crate) enum Taken {
    /// A change, with its focus: none for the level of every node.
    Change(NameId, LevelChange),
    /// So many were lost because more came than could wait.
    Lost(u32),
}

impl Levels {
    /// Hands what waits to `tell`, in order, which makes records of it.
    pub(crate) fn take_changes(&self, shown: &ShownChanges, tell: impl Fn(Taken)) {
        if self.changes.len.load(Ordering::Relaxed) == 0 {
            return; // and none is lost while there is room
        }
        self.exclusively(|| self.changes.take(shown, tell));
    }

    /// The same, and then says what is asked for: every change that comes later is one from there.
    pub(crate) fn take_changes_and_state(
        &self,
        shown: &ShownChanges,
        tell: impl Fn(Taken),
        now: fn() -> Ticks,
    ) -> Stated {
        self.exclusively(|| {
            self.changes.take(shown, tell);
            let (at, source) = (now(), LevelSource::START);
            let change = |old, new| LevelChange { asked: at, armed: at, old, new, source };
            let level = self.threshold().level();
            let level = level.map(|level| (NameId::NONE, change(level, level)));
            let foci = self.foci.iter();
            let foci = foci.map(|(focus, level)| (focus, change(Level::PULSE, level)));
            let mut stated = [None; 1 + super::FOCI];
            for (place, said) in stated.iter_mut().zip(level.into_iter().chain(foci)) {
                *place = Some(said);
            }
            stated
        })
    }

    /// Runs `f` while nobody else changes what is asked for. Never called by a record.
    pub(crate) fn exclusively<R>(&self, f: impl FnOnce() -> R) -> R {
        while self
            .changing
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spin_loop();
        }
        // However `f` ends: an application's clock that panics in there must not lock out the rest.
        let _unlock = Unlock(&self.changing);
        f()
    }
}

/// Ends an exclusive stretch.
struct Unlock<'s>(&'s AtomicBool);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What is asked for at one moment: the level, and the foci.
pub(crate) type Stated = [Option<(NameId, LevelChange)>; 1 + super::FOCI];

/// A change before it has its ticks.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) focus: NameId,
    pub(super) old: Level,
    pub(super) new: Level,
    pub(super) source: LevelSource,
}

impl<C: Clock> ProbeRef<'_, C> {
    /// Changes the level of a running recording; while nothing is recording it does nothing. The
    /// change becomes a Level record. It walks the probe's sites; it is not for the hot loop.
    pub fn set_level(&self, level: Level) {
        self.set_level_from(level, LevelSource::APPLICATION);
    }

    pub(crate) fn set_level_from(&self, level: Level, source: LevelSource) {
        let (levels, new) = (&self.shared.levels, level.min(self.max_level));
        levels.exclusively(|| {
            if let Some(old) = levels.threshold().level() {
                let asked = Asked { focus: NameId::NONE, old, new, source };
                self.change(&[asked], || levels.threshold.set(Threshold::of(new)));
            }
        });
    }

    /// Arms the sites as a recording starts, with foci by their patterns: at most as many as there
    /// are places, each pattern once.
    pub(crate) fn arm(&self, level: Level, foci: &[(NameId, Level)]) {
        let (levels, new) = (&self.shared.levels, level.min(self.max_level));
        levels.exclusively(|| {
            // What a drain that ended unfinished left behind is not of this recording.
            levels.changes.clear(self.image.changes);
            let source = LevelSource::START;
            let first = Asked { focus: NameId::NONE, old: new, new, source };
            let mut asked = [first; 1 + super::FOCI];
            for (place, &(focus, new)) in asked.iter_mut().skip(1).zip(foci) {
                *place = Asked { focus, old: Level::PULSE, new, source };
            }
            let asked = asked.get(..=foci.len()).unwrap_or(&asked);
            self.change(asked, || {
                levels.threshold.set(Threshold::of(new));
                for &(focus, level) in foci {
                    levels.foci.set(focus, Threshold::of(level));
                }
            });
        });
    }

    /// Changes what is asked for, arms and disarms accordingly, and leaves word for the recorder's
    /// lane. (The caller holds `changing`.)
    pub(super) fn change(&self, asked: &[Asked], change: impl FnOnce()) {
        let (changes, shown, from) = (&self.shared.levels.changes, self.image.changes, C::ticks());
        changes.announce(shown, asked, from);
        self.shared.rearm(&self.names(), change);
        let to = C::ticks();
        for &Asked { focus, old, new, source } in asked {
            let change = LevelChange { asked: from, armed: to, old, new, source };
            changes.push(shown, focus, change);
        }
    }
}

impl<C> ProbeRef<'_, C> {
    /// Disarms all sites, and forgets the foci.
    pub(crate) fn disarm(&self) {
        let levels = &self.shared.levels;
        levels.exclusively(|| {
            self.shared.rearm(&self.names(), || {
                levels.threshold.set(Threshold::OFF);
                levels.foci.clear();
            });
        });
    }

    /// The same in a forked child, where whoever was changing the level is no more.
    #[cfg(feature = "std")]
    pub(crate) fn disarm_in_child(&self) {
        self.shared.levels.changing.store(false, Ordering::Release);
        self.disarm();
    }
}

impl Shared {
    /// Changes what is asked for, and arms and disarms accordingly. (The caller holds `changing`.)
    pub(crate) fn rearm(&self, names: &Names<'_>, change: impl FnOnce()) {
        let levels = &self.levels;
        let before = levels.foci.most();
        change();
        let (threshold, most) = (levels.threshold(), levels.foci.most());
        levels.reach.set(threshold.max(most));
        levels.changed();
        self.sites.arm_all(self, names);
        if before.max(most) > Threshold::OFF {
            names.focus_all();
        }
    }
}
