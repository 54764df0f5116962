//! Sites of libraries, which may be reached before the program has installed a probe.

use super::{DISARMED, NEW, Owner, QUEUEING, Site, WOKEN, push};
use crate::sync::{AtomicPtr, Ordering, const_fn, fence};

/// Sites that were reached before their probe was there: they are disarmed, and cost what any disarmed
/// site costs, until they are woken.
pub(crate) struct Waiting {
    newest: AtomicPtr<Site>,
}

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
    pub(crate) fn wait(
        &self,
        site: &'static Site,
        owner: Owner,
        probe_is_there: impl Fn() -> bool,
    ) -> bool {
        if probe_is_there() {
            return false;
        }
        let queueing = owner.state(QUEUEING);
        let link = site.state.compare_exchange(NEW, queueing, Ordering::AcqRel, Ordering::Relaxed);
        if link.is_ok() {
            push(&self.newest, site);
        }
        fence(Ordering::SeqCst);
        if probe_is_there() {
            self.wake(owner);
            return false;
        }
        if link.is_ok() {
            // Unless it was woken meanwhile.
            let (seen, unseen) = (Ordering::AcqRel, Ordering::Relaxed);
            let disarmed = owner.state(DISARMED);
            let _ = site.state.compare_exchange(queueing, disarmed, seen, unseen);
        }
        true
    }

    /// Wakes all sites that wait: each makes itself known when it is reached next.
    pub(crate) fn wake(&self, owner: Owner) {
        fence(Ordering::SeqCst);
        let mut next = self.newest.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the list links only `&'static Site`s, by `push`.
        while let Some(site) = unsafe { next.as_ref() } {
            // First, because a site that is woken may be linked elsewhere at once.
            next = site.next.load(Ordering::Acquire);
            site.state.store(owner.state(WOKEN), Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;

    use tmrun_formats::Level;
    use tmrun_formats::wire::Kind;

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
            let owner = Owner::of(shared);
            probe.view().arm(Level::PULSE, &[]);
            let sites: &'static [Site] = Box::leak(Box::new(
                [const { Site::new("site", Kind::Scalar, Level::PULSE, "", 0) }; SITES],
            ));
            let (waiting, there) = (&Waiting::new(), &AtomicBool::new(false));
            let (done, together) = (&AtomicBool::new(false), &Barrier::new(4));
            let reach = |site: &'static Site| {
                let decide = |site| {
                    let waits = waiting.wait(site, owner, || there.load(Ordering::SeqCst));
                    if waits { None } else { probe.view().decide(site, owner) }
                };
                site.armed(owner, decide).is_some()
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
                waiting.wake(owner);
                done.store(true, Ordering::Release);
            });
            assert_eq!(shared.sites.iter().count(), SITES);
        }
    }
}
