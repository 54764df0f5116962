//! A site that is reached for the first time while the level changes.

use loom::sync::Arc;
use tmrun_formats::wire::Kind;
use tmrun_formats::{Level, LevelSource, NameId};

use super::Still;
use crate::clock::Clock;
use crate::shared::Shared;
use crate::site::Site;

/// A site of level 1. (It is never freed: sites are static.)
fn new_site() -> &'static Site {
    Box::leak(Box::new(Site::new("site", Kind::Span, Level::TIMING, "model", 1)))
}

fn reach(site: &'static Site, shared: &Shared) -> bool {
    site.is_armed(|site| shared.sites.register(site, NameId(1), shared))
}

#[test]
fn a_new_site_ends_up_as_the_last_change_says() {
    loom::model(|| {
        let (shared, site) = (Arc::new(Shared::new()), new_site());
        shared.arm(Level::PULSE, Still::ticks);
        let changer = loom::thread::spawn({
            let shared = shared.clone();
            move || shared.change_level(Level::TIMING, LevelSource::APPLICATION, Still::ticks)
        });
        reach(site, &shared);
        changer.join().unwrap();
        assert!(reach(site, &shared), "the level is 1, and the site asks for it");
    });
}

#[test]
fn threads_that_reach_a_site_together_link_it_once() {
    loom::model(|| {
        let (shared, site) = (Arc::new(Shared::new()), new_site());
        let other = loom::thread::spawn({
            let shared = shared.clone();
            move || reach(site, &shared)
        });
        shared.arm(Level::TIMING, Still::ticks);
        reach(site, &shared);
        other.join().unwrap();
        assert!(reach(site, &shared));
        assert_eq!(shared.sites.iter().count(), 1);
    });
}
