//! What a recording keeps: how large its files are, which of them stay, and which steps are in them.

use std::time::Duration;

use super::ProfileRun;
use crate::clock::Clock;
use crate::drain::Look;

/// What a run asks to be kept; everything, in one file, without.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Retain {
    pub(super) max_file: Option<u64>,
    pub(super) keep_first: Option<u64>,
    pub(super) keep_last: Option<u64>,
    every_nth: Option<u64>,
    dump: Vec<DumpOn>,
    seconds: Option<Duration>,
}

/// What makes a recording keep its last seconds: see [`ProfileRun::dump_on`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpOn(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Longer(Duration),
    Times(u32),
    NotFinite,
}

impl DumpOn {
    /// A step that takes longer than this.
    pub const fn step_longer_than(time: Duration) -> Self {
        Self(What::Longer(time))
    }

    /// A step that takes more than so many times what steps took lately. (The first eight are only
    /// learnt from.)
    pub const fn slow_step(times: u32) -> Self {
        Self(What::Times(times))
    }

    /// A scalar, a statistic of a tensor, or a gradient that is not finite.
    pub const fn not_finite() -> Self {
        Self(What::NotFinite)
    }
}

/// How many seconds are kept when nobody says.
const SECONDS: Duration = Duration::from_secs(10);

impl Retain {
    /// How much of the time before stays, where something is waited for.
    pub(super) fn seconds(&self) -> Option<Duration> {
        (!self.dump.is_empty()).then(|| self.seconds.unwrap_or(SECONDS))
    }

    /// Whether there may be more than one file.
    pub(super) fn has_parts(&self) -> bool {
        self.max_file.is_some() || self.seconds().is_some()
    }

    /// How many of the last files stay in any case; all without.
    pub(super) fn last(&self) -> Option<u64> {
        let last = self.keep_last.map(|last| last.max(1));
        let removes = self.seconds().is_some() || self.keep_first.is_some();
        last.or(removes.then_some(1))
    }

    /// What the drain has to look for.
    pub(super) fn look<C: Clock>(&self, first_step: u64) -> Look {
        let mut look = Look { steps: self.has_parts(), ..Look::default() };
        look.every = self.every_nth.map(|n| (first_step, n));
        for on in &self.dump {
            match on.0 {
                What::Longer(time) => lower(&mut look.watch.longest, ticks_of::<C>(time)),
                What::Times(times) => lower(&mut look.watch.times, times.into()),
                What::NotFinite => look.watch.not_finite = true,
            }
        }
        look
    }
}

/// Whatever is beyond the higher one of two bounds is beyond the lower one too.
fn lower(bound: &mut Option<u64>, to: u64) {
    *bound = Some(bound.map_or(to, |bound| bound.min(to)));
}

/// So much time by this clock.
pub(super) fn ticks_of<C: Clock>(time: Duration) -> u64 {
    let ticks = time.as_nanos() * u128::from(C::ticks_per_second()) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Long runs.
impl ProfileRun {
    /// A file that has grown to so many bytes (a mebibyte at least) ends, and the recording goes on
    /// in another one: behind `run.tmrun` comes `run.0002.tmrun`. Each is complete by itself. All of
    /// them stay, unless [`keep_first`](Self::keep_first) or [`keep_last`](Self::keep_last) says
    /// otherwise; a file that was removed shows in the later ones as a gap that was not requested.
    #[must_use]
    pub fn max_file(mut self, bytes: u64) -> Self {
        self.retain.max_file = Some(bytes.max(1 << 20));
        self
    }

    /// Of the files, the first so many stay, and the last one. (With [`dump_on`](Self::dump_on), all
    /// that it keeps too.)
    #[must_use]
    pub fn keep_first(mut self, files: u64) -> Self {
        self.retain.keep_first = Some(files);
        self
    }

    /// Of the files, the last so many stay (the one that is being written is the last). With
    /// [`dump_on`](Self::dump_on) they do however old they are, beside all that it keeps.
    #[must_use]
    pub fn keep_last(mut self, files: u64) -> Self {
        self.retain.keep_last = Some(files);
        self
    }

    /// Of the steps, only every n-th stays, from the one that the run begins with; what belongs to no
    /// step stays too. What is left out is a gap that was not requested.
    #[must_use]
    pub fn every_nth_step(mut self, n: u64) -> Self {
        self.retain.every_nth = Some(n.max(1));
        self
    }

    /// Keeps the last seconds when this happens, and whenever it happens again. The recording is cut
    /// into files of half of [`keep_seconds`](Self::keep_seconds) each, or less where
    /// [`max_file`](Self::max_file) says so. When a file ends, those are removed that ended longer ago
    /// than `keep_seconds`, but for the ones that were there when it happened. So the last seconds are
    /// always there, also when the run fails. May be called for several things; each of them counts.
    #[must_use]
    pub fn dump_on(mut self, what: DumpOn) -> Self {
        self.retain.dump.push(what);
        self
    }

    /// How much [`dump_on`](Self::dump_on) keeps of the time before, by the clock of the probe, in
    /// however many files that is; 10 seconds without.
    #[must_use]
    pub fn keep_seconds(mut self, seconds: u64) -> Self {
        self.retain.seconds = Some(Duration::from_secs(seconds.max(1)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicClock;

    #[test]
    fn of_two_of_a_kind_the_lower_one_counts_in_any_order() {
        let longer = |ms| DumpOn::step_longer_than(Duration::from_millis(ms));
        let some = [longer(20), DumpOn::slow_step(3), DumpOn::not_finite()];
        let more = [longer(5), DumpOn::slow_step(9), longer(10), DumpOn::slow_step(4)];
        let watched = |dump: Vec<DumpOn>| {
            let look = Retain { dump, ..Retain::default() }.look::<MonotonicClock>(1);
            (look.watch.longest, look.watch.times, look.watch.not_finite)
        };
        let lowest = (Some(ticks_of::<MonotonicClock>(Duration::from_millis(5))), Some(3), true);
        assert_eq!(watched([&some[..], &more].concat()), lowest);
        assert_eq!(watched([&more[..], &some].concat()), lowest);
        assert_eq!(watched(Vec::new()), (None, None, false));
    }
}
