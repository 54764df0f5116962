//! Foci: patterns of nodes of which more is asked for.

use tmrun_formats::{Level, LevelSource, NameId, Pattern, PatternError};

use super::change::Asked;
use super::{Threshold, ThresholdCell};
use crate::clock::Clock;
use crate::names::Names;
use crate::probe::ProbeRef;
use crate::sync::{AtomicU32, Ordering, array, const_fn};

/// Foci that may be in force at once.
pub(crate) const FOCI: usize = if cfg!(all(loom, test)) { 1 } else { 16 };

/// Why there is no such focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FocusError {
    /// The pattern is none.
    Pattern(PatternError),
    /// So many foci are in force already.
    Full(usize),
    /// The pattern found no room in the name table.
    NoName,
}

impl core::fmt::Display for FocusError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Pattern(error) => error.fmt(f),
            Self::Full(foci) => write!(f, "{foci} foci are in force already: clear one first"),
            Self::NoName => f.write_str("the name table has no room for the focus's pattern"),
        }
    }
}

impl core::error::Error for FocusError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Pattern(error) => Some(error),
            Self::Full(_) | Self::NoName => None,
        }
    }
}

/// The foci in force.
pub(crate) struct Foci([Focus; FOCI]);

struct Focus {
    /// The pattern's entry in the name table; none while the place is free.
    pattern: AtomicU32,
    /// Off while the place is free.
    threshold: ThresholdCell,
}

impl Focus {
    const_fn! {
        fn new() -> Self {
            Self { pattern: AtomicU32::new(0), threshold: ThresholdCell::new() }
        }
    }

    fn pattern(&self) -> Option<NameId> {
        Some(NameId(self.pattern.load(Ordering::Relaxed))).filter(|id| *id != NameId::NONE)
    }
}

impl Foci {
    const_fn! {
        pub(super) fn new() -> Self {
            Self(array![Focus::new(); FOCI])
        }
    }

    /// What they ask for of a node of this name.
    pub(super) fn of(&self, name: &str, names: &Names<'_>) -> Threshold {
        let matching = self.0.iter().filter(|focus| {
            let pattern = focus.pattern().and_then(|id| names.get(id));
            pattern.is_some_and(|node| Pattern::new(node.name).is_ok_and(|p| p.matches(name)))
        });
        matching.map(|focus| focus.threshold.get()).max().unwrap_or(Threshold::OFF)
    }

    /// The most that any asks for.
    pub(super) fn most(&self) -> Threshold {
        self.0.iter().map(|focus| focus.threshold.get()).max().unwrap_or(Threshold::OFF)
    }

    /// Those that are in force, with what they ask for.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NameId, Level)> + '_ {
        self.0.iter().filter_map(|focus| Some((focus.pattern()?, focus.threshold.get().level()?)))
    }

    /// Sets a focus, if there is a place for it; off frees its place.
    pub(crate) fn set(&self, pattern: NameId, threshold: Threshold) {
        let Some(place) = self.place(pattern) else { return };
        let pattern = if threshold == Threshold::OFF { NameId::NONE } else { pattern };
        place.pattern.store(pattern.0, Ordering::Relaxed);
        place.threshold.set(threshold);
    }

    pub(super) fn clear(&self) {
        self.0.iter().filter_map(Focus::pattern).for_each(|pattern| {
            self.set(pattern, Threshold::OFF);
        });
    }

    /// The place of a focus, or one that is free.
    fn place(&self, pattern: NameId) -> Option<&Focus> {
        let of = |pattern| self.0.iter().find(move |focus| focus.pattern() == pattern);
        of(Some(pattern)).or_else(|| of(None))
    }

    /// The level of a focus, 0 while it is not set; `None` when there is no place for it.
    fn level(&self, pattern: NameId) -> Option<Level> {
        self.place(pattern).map(|focus| focus.threshold.get().level().unwrap_or(Level::PULSE))
    }

    /// The focus with this pattern.
    fn named(&self, pattern: &str, names: &Names<'_>) -> Option<NameId> {
        let is_it = |id: &NameId| names.get(*id).is_some_and(|node| node.name == pattern);
        self.0.iter().filter_map(Focus::pattern).find(is_it)
    }
}

impl<C> ProbeRef<'_, C> {
    /// The names of these patterns, for foci to start with: the last level that a pattern is given,
    /// and no pattern that asks for nothing.
    #[cfg(feature = "std")]
    pub(crate) fn foci<'f>(
        &self,
        asked: impl IntoIterator<Item = (&'f str, Level)>,
    ) -> Result<Vec<(NameId, Level)>, FocusError> {
        let mut foci: Vec<(NameId, Level)> = Vec::new();
        for (pattern, level) in asked {
            let name = self.pattern(pattern)?;
            foci.retain(|(other, _)| *other != name);
            foci.push((name, level.min(self.max_level)));
        }
        foci.retain(|(_, level)| *level > Level::PULSE);
        if foci.len() > FOCI { Err(FocusError::Full(FOCI)) } else { Ok(foci) }
    }

    /// The name of a pattern.
    fn pattern(&self, pattern: &str) -> Result<NameId, FocusError> {
        Pattern::new(pattern).map_err(FocusError::Pattern)?;
        match self.name(pattern) {
            NameId::NONE => Err(FocusError::NoName),
            name => Ok(name),
        }
    }
}

impl<C: Clock> ProbeRef<'_, C> {
    /// Asks for at least this level of the nodes and sites whose names match a pattern, whatever the
    /// level of the others is, until it is [cleared](Self::clear_focus) or the recording ends. The
    /// same pattern again changes its level; level 0 clears it. Up to 16 are in force at once, and
    /// the greatest of those that match counts.
    ///
    /// ```
    /// # use tmrun_probe_core::{Level, probe};
    /// # probe!(static PROBE: lanes = 1, slots = 64);
    /// PROBE.set_focus("encoder.layers.3.**", Level::NUMERICS)?;
    /// # Ok::<(), tmrun_probe_core::FocusError>(())
    /// ```
    ///
    /// `**` is any number of segments; [`Pattern`] says the rest. As [`set_level`](Self::set_level)
    /// it is of the recording that runs, becomes a Level record, and is not for the hot loop: it
    /// walks sites and names.
    ///
    /// # Errors
    ///
    /// When the pattern is none, or there is no place for it.
    pub fn set_focus(&self, pattern: &str, level: Level) -> Result<(), FocusError> {
        self.set_focus_from(pattern, level, LevelSource::APPLICATION)
    }

    pub(crate) fn set_focus_from(
        &self,
        pattern: &str,
        level: Level,
        source: LevelSource,
    ) -> Result<(), FocusError> {
        let (levels, new) = (&self.shared.levels, level.min(self.max_level));
        if new == Level::PULSE || levels.threshold() == Threshold::OFF {
            Pattern::new(pattern).map_err(FocusError::Pattern)?;
            self.clear_focus_from(pattern, source);
            return Ok(());
        }
        let focus = self.pattern(pattern)?;
        levels.exclusively(|| {
            if levels.threshold() == Threshold::OFF {
                return Ok(());
            }
            let Some(old) = levels.foci.level(focus) else {
                return Err(FocusError::Full(FOCI));
            };
            self.change(&[Asked { focus, old, new, source }], || {
                levels.foci.set(focus, Threshold::of(new));
            });
            Ok(())
        })
    }

    /// Ends a focus. A pattern that none has is none to end.
    pub fn clear_focus(&self, pattern: &str) {
        self.clear_focus_from(pattern, LevelSource::APPLICATION);
    }

    pub(crate) fn clear_focus_from(&self, pattern: &str, source: LevelSource) {
        let levels = &self.shared.levels;
        levels.exclusively(|| {
            let Some(focus) = levels.foci.named(pattern, &self.names()) else { return };
            let Some(old) = levels.foci.level(focus) else { return };
            self.change(&[Asked { focus, old, new: Level::PULSE, source }], || {
                levels.foci.set(focus, Threshold::OFF);
            });
        });
    }
}
