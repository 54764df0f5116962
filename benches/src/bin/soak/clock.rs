//! A clock that stops the recorder's thread when it is told to: who drains reads it at every look.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tmrun_probe_core::{AutoClock, Clock, Ticks};

/// The best clock there is, and a brake on the recorder.
#[derive(Debug)]
pub(crate) enum Stalling {}

/// Microseconds that the recorder is to stand still, once.
static STALL: AtomicU64 = AtomicU64::new(0);

/// The recorder's thread stands still for so long, as soon as it looks.
pub(crate) fn stall(time: Duration) {
    STALL.store(time.as_micros() as u64, Ordering::Relaxed);
}

#[derive(Clone, Copy)]
enum Who {
    Unknown,
    Producer,
    Recorder,
}

thread_local! {
    static WHO: Cell<Who> = const { Cell::new(Who::Unknown) };
}

impl Clock for Stalling {
    const NAME: &'static str = AutoClock::NAME;

    fn name() -> &'static str {
        AutoClock::name()
    }

    #[inline]
    fn ticks() -> Ticks {
        if !matches!(WHO.get(), Who::Producer) {
            look();
        }
        AutoClock::ticks()
    }

    fn ticks_per_second() -> u64 {
        AutoClock::ticks_per_second()
    }

    fn is_invariant() -> bool {
        AutoClock::is_invariant()
    }
}

#[cold]
fn look() {
    if matches!(WHO.get(), Who::Unknown) {
        let recorder = std::thread::current().name() == Some("tmrun recorder");
        WHO.set(if recorder { Who::Recorder } else { Who::Producer });
    }
    if matches!(WHO.get(), Who::Recorder) {
        let micros = STALL.swap(0, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(micros));
    }
}
