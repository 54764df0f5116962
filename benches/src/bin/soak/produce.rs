//! Threads that record, and count what they do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use tmrun_probe_core::{
    Level, NameId, Overwrite, Range, Stats, Target, TensorFact, probe, scalar, span,
};

use crate::clock::Stalling;
use crate::random::Random;

probe!(pub(crate) static DROPS: lanes = 4, slots = 1 << 12; clock = Stalling);
probe!(pub(crate) static KEEPS: lanes = 4, slots = 1 << 12; clock = Overwrite<Stalling>);

/// A thread after the other, each of which records for a while.
#[derive(Debug)]
pub(crate) struct Producer<'s> {
    stop: &'s AtomicBool,
    /// The recording may end first. Then nothing is recorded of which nobody can say whether it was.
    late: bool,
    random: Random,
    left: u64,
    attempted: u64,
}

impl<'s> Producer<'s> {
    pub(crate) const fn new(stop: &'s AtomicBool, late: bool, seed: u64, most: u64) -> Self {
        Self { stop, late, random: Random::new(seed), left: most, attempted: 0 }
    }

    /// Lives again and again, each time as a new thread. Returns how many records it attempted.
    pub(crate) fn live<'scope>(
        mut self,
        scope: &'scope Scope<'scope, '_>,
        life: fn(&mut Producer<'_>),
    ) -> u64
    where
        's: 'scope,
    {
        while !self.ends() {
            let mut this = self;
            let thread = scope.spawn(move || {
                life(&mut this);
                this
            });
            self = thread.join().expect("a producer does not panic");
        }
        self.attempted
    }

    fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.attempted >= self.left
    }

    /// How many facts this life records: few, some or many.
    fn facts(&mut self) -> u64 {
        let most = [10, 1_000, 100_000][self.random.below(3) as usize];
        self.random.below(most)
    }
}

macro_rules! life {
    ($(#[$doc:meta])* $name:ident, $probe:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(producer: &mut Producer<'_>) {
            // The thread's own lane, or one that is claimed.
            if !producer.late && producer.random.below(2) == 0 {
                record(producer, &$probe, false);
            } else if let Ok(lane) = $probe.claim("claimed") {
                record(producer, &lane, true);
            } else {
                std::thread::yield_now();
            }

            fn record<T: Target>(producer: &mut Producer<'_>, target: &T, mut has_lane: bool) {
                for step in 1..=producer.facts() {
                    if producer.ends() {
                        return;
                    }
                    // Both its marks are records, of which a late one is none.
                    let _step = (!producer.late && step % 16 == 0).then(|| {
                        producer.attempted += 2;
                        target.step(step)
                    });
                    scalar!(*target, "value", {
                        producer.attempted += 1;
                        step as f64
                    });
                    if !has_lane {
                        // Who has no lane cannot tell which spans it would have recorded; this is
                        // counted as one record.
                        has_lane = target.at(Level::PULSE, |_| ()).is_some();
                        producer.attempted += u64::from(!has_lane);
                        continue;
                    }
                    let outer = span!(*target, "outer");
                    let inner = span!(*target, "inner");
                    let spans = [&outer, &inner].map(|span| u64::from(span.id().0 != 0));
                    producer.attempted += spans[0] + spans[1];
                    if step % 8 == 0 && spans[0] == 1 {
                        producer.attempted += statistics(target);
                    }
                }
            }
        }
    };
}

life!(
    /// On rings that drop the newest.
    dropping, DROPS
);
life!(
    /// On rings that keep the newest.
    keeping, KEEPS
);

/// A group of three records, if the level asks for it.
fn statistics<T: Target>(target: &T) -> u64 {
    let recorded = target.at(Level::NUMERICS, |recorder| {
        if !recorder.wants(NameId::NONE) {
            return false;
        }
        let tensor = TensorFact { shape: &[2, 3], ..TensorFact::default() };
        recorder.stats(NameId::NONE, &tensor, true, &Stats::default(), Some(&Range::default()));
        true
    });
    if recorded == Some(true) { 3 } else { 0 }
}
