//! A site or a node that comes while the level or a focus changes.

use loom::sync::Arc;
use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, NameId};

use super::check;
use crate::levels::{Threshold, ThresholdCell};
use crate::names::{ArenaBlock, Entry, Names, Node};
use crate::shared::Shared;
use crate::site::{Owner, Site};
use crate::sync::AtomicU32;

/// What a probe has of this: two names, of which the first is the pattern of the focus.
struct Asking {
    shared: Shared,
    entries: [Entry; 2],
    index: [[AtomicU32; 2]; 2],
    arena: [ArenaBlock; 2],
    focused: [ThresholdCell; 2],
}

const PATTERN: NameId = NameId(1);

impl Asking {
    fn new() -> Arc<Self> {
        let asking = Self {
            shared: Shared::new(),
            entries: core::array::from_fn(|_| Entry::new()),
            index: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU32::new(0))),
            arena: core::array::from_fn(|_| ArenaBlock::new()),
            focused: core::array::from_fn(|_| ThresholdCell::new()),
        };
        assert_eq!(asking.names().intern(&Node::named("*")), PATTERN);
        Arc::new(asking)
    }

    fn names(&self) -> Names<'_> {
        let Self { shared, entries, index, arena, focused } = self;
        let (counters, levels) = (&shared.names, &shared.levels);
        Names { counters, entries, index, arena, focused, levels, shown: None }
    }

    fn set_level(&self, level: Level) {
        let (shared, to) = (&self.shared, Threshold::of(level));
        shared
            .levels
            .exclusively(|| shared.rearm(&self.names(), || shared.levels.threshold.set(to)));
    }

    fn set_focus(&self, to: Threshold) {
        let (shared, names) = (&self.shared, self.names());
        shared.levels.exclusively(|| shared.rearm(&names, || shared.levels.foci.set(PATTERN, to)));
    }

    /// Whether the site records.
    fn reach(&self, site: &'static Site) -> bool {
        let (shared, names) = (&self.shared, self.names());
        let owner = Owner::of(shared);
        let decide = |site| shared.sites.decide(site, owner, PATTERN, shared, &names);
        site.armed(owner, decide).is_some()
    }

    /// Up to what the foci ask for of the second name.
    fn focused(&self) -> Threshold {
        self.focused[1].get()
    }
}

/// A site of level 1. (It is never freed: sites are static.)
fn new_site() -> &'static Site {
    Box::leak(Box::new(Site::new("site", Kind::Span, Level::TIMING, "model", 1)))
}

#[test]
fn a_new_site_ends_up_as_the_last_change_says() {
    check(3, |turn| {
        let (asking, site) = (Asking::new(), new_site());
        asking.set_level(Level::PULSE);
        let (changer, reacher) = (asking.clone(), asking.clone());
        turn.both(move || changer.set_level(Level::TIMING), move || reacher.reach(site));
        assert!(asking.reach(site), "the level is 1, and the site asks for it");
    });
}

#[test]
fn threads_that_reach_a_site_together_link_it_once_and_miss_nothing() {
    check(3, |turn| {
        let (asking, site) = (Asking::new(), new_site());
        asking.set_level(Level::TIMING);
        let (one, another) = (asking.clone(), asking.clone());
        assert_eq!(turn.both(move || one.reach(site), move || another.reach(site)), (true, true));
        assert!(asking.reach(site));
        assert_eq!(asking.shared.sites.iter().count(), 1);
    });
}

#[test]
fn a_new_site_ends_up_as_the_last_focus_says() {
    for last in [Threshold::of(Level::TIMING), Threshold::OFF] {
        check(3, move |turn| {
            let (asking, site) = (Asking::new(), new_site());
            asking.set_level(Level::PULSE);
            if last == Threshold::OFF {
                asking.set_focus(Threshold::of(Level::TIMING));
            }
            let (changer, reacher) = (asking.clone(), asking.clone());
            turn.both(move || changer.set_focus(last), move || reacher.reach(site));
            assert_eq!(asking.reach(site), last != Threshold::OFF);
        });
    }
}

#[test]
fn a_new_node_ends_up_as_the_last_focus_says() {
    for last in [Threshold::of(Level::TIMING), Threshold::OFF] {
        check(3, move |turn| {
            let asking = Asking::new();
            asking.set_level(Level::PULSE);
            if last == Threshold::OFF {
                asking.set_focus(Threshold::of(Level::TIMING));
            }
            let (changer, namer) = (asking.clone(), asking.clone());
            let intern = move || namer.names().intern(&Node::named("node"));
            assert_eq!(turn.both(move || changer.set_focus(last), intern).1, NameId(2));
            assert_eq!(asking.focused(), last);
        });
    }
}
