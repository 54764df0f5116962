//! Recording clocks. One read is most of what a record costs, so the choice of clock is the choice
//! of the probe's cost.

use tmrun_formats::Ticks;

/// A clock to stamp records with. It need not be related to real time at all, but it should not
/// run backwards; a reader clamps what does.
pub trait Clock: 'static {
    /// What a full ring does. It goes with the clock because both are decided when the loop is
    /// compiled: a probe that never writes over a record pays nothing for one that does.
    const OVERRUN: Overrun = Overrun::DropNewest;

    /// Its name in the file.
    const NAME: &'static str;

    /// The name of the clock that is in use, where that is decided at run time.
    fn name() -> &'static str {
        Self::NAME
    }

    /// The time now. Called once for an event and twice for a span: it should be a few instructions.
    fn ticks() -> Ticks;

    /// Whether reading it is [`quick_ticks`](Self::quick_ticks); decided once and for all.
    #[doc(hidden)]
    fn is_quick() -> bool {
        true
    }

    /// The time now, by a clock that is quick: with no question whether it is.
    #[doc(hidden)]
    #[inline(always)]
    fn quick_ticks() -> Ticks {
        Self::ticks()
    }

    /// The nominal rate.
    fn ticks_per_second() -> u64;

    /// Whether the rate is constant.
    fn is_invariant() -> bool {
        true
    }
}

/// What happens to a record that finds its ring full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// It is dropped and counted; nothing stored is written over.
    DropNewest,
    /// It is stored over the oldest one, as a flight recorder does: the ring always holds the last
    /// records, and what was written over before it was drained is counted as lapped.
    Overwrite,
}

/// The clock `C` on rings that keep the newest records: `Probe<Overwrite<AutoClock>, 4, 1024>`, or
/// `clock = Overwrite<AutoClock>` in `probe!`.
#[derive(Debug, Clone, Copy)]
pub struct Overwrite<C>(core::marker::PhantomData<C>);

impl<C: Clock> Clock for Overwrite<C> {
    const OVERRUN: Overrun = Overrun::Overwrite;
    const NAME: &'static str = C::NAME;

    fn name() -> &'static str {
        C::name()
    }

    #[inline(always)]
    fn ticks() -> Ticks {
        C::ticks()
    }

    fn is_quick() -> bool {
        C::is_quick()
    }

    #[inline(always)]
    fn quick_ticks() -> Ticks {
        C::quick_ticks()
    }

    fn ticks_per_second() -> u64 {
        C::ticks_per_second()
    }

    fn is_invariant() -> bool {
        C::is_invariant()
    }
}

/// The best clock of the target: the invariant time-stamp counter on x86-64, the virtual counter on
/// aarch64, otherwise (feature `std`) the operating system's monotonic clock.
///
/// An x86-64 whose counter is not invariant uses the operating system's clock too, where there is
/// one; without `std` it uses the counter and the file says that its rate may change.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", feature = "std"))]
#[derive(Debug, Clone, Copy)]
pub enum AutoClock {}

#[cfg(target_arch = "x86_64")]
mod auto {
    use super::{AutoClock, Clock, Ticks};
    use core::arch::x86_64::{__cpuid, _rdtsc};
    use core::sync::atomic::{AtomicU8, Ordering};

    /// 1 is the operating system's clock. Decided before anybody has a lane.
    static FALLBACK: AtomicU8 = AtomicU8::new(0);
    /// Somebody has decided it. (It takes an instruction that a virtual machine traps.)
    #[cfg(feature = "std")]
    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    impl Clock for AutoClock {
        const NAME: &'static str = "tsc";

        #[inline(always)]
        fn ticks() -> Ticks {
            #[cfg(feature = "std")]
            if FALLBACK.load(Ordering::Relaxed) != 0 {
                return monotonic();
            }
            counter()
        }

        #[cfg(feature = "std")]
        fn is_quick() -> bool {
            choose();
            FALLBACK.load(Ordering::Relaxed) == 0
        }

        #[inline(always)]
        fn quick_ticks() -> Ticks {
            counter()
        }

        fn ticks_per_second() -> u64 {
            #[cfg(feature = "std")]
            {
                choose();
                if FALLBACK.load(Ordering::Relaxed) != 0 {
                    return super::MonotonicClock::ticks_per_second();
                }
                super::measured_rate(Self::ticks)
            }
            #[cfg(not(feature = "std"))]
            nominal_rate()
        }

        #[cfg(feature = "std")]
        fn name() -> &'static str {
            if FALLBACK.load(Ordering::Relaxed) != 0 {
                return super::MonotonicClock::NAME;
            }
            Self::NAME
        }

        fn is_invariant() -> bool {
            (cfg!(feature = "std") && FALLBACK.load(Ordering::Relaxed) != 0) || is_invariant()
        }
    }

    #[inline(always)]
    fn counter() -> Ticks {
        // SAFETY: every x86-64 has the instruction; it has no preconditions.
        Ticks(unsafe { _rdtsc() })
    }

    /// Out of the way, so that reading the counter stays small enough to be inlined everywhere.
    #[cfg(feature = "std")]
    #[cold]
    #[inline(never)]
    fn monotonic() -> Ticks {
        super::MonotonicClock::ticks()
    }

    /// Decides between the counter and the operating system, before the first record.
    #[cfg(feature = "std")]
    fn choose() {
        if CHOSEN.load(Ordering::Acquire) == 0 {
            FALLBACK.store(u8::from(!is_invariant()), Ordering::Relaxed);
            CHOSEN.store(1, Ordering::Release);
        }
    }

    /// CPUID 0x80000007, EDX bit 8 (AMD APM volume 3, appendix E; Intel SDM volume 3, 19.17.1).
    fn is_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }

    /// CPUID 0x15 gives the rate where the processor knows it; else 1 GHz, and the file's
    /// calibration frames, if any, correct it.
    #[cfg(not(feature = "std"))]
    fn nominal_rate() -> u64 {
        if __cpuid(0).eax < 0x15 {
            return 1_000_000_000;
        }
        let leaf = __cpuid(0x15);
        match (leaf.eax, leaf.ebx, leaf.ecx) {
            (0, ..) | (_, 0, _) | (.., 0) => 1_000_000_000,
            (below, above, crystal) => u64::from(crystal) * u64::from(above) / u64::from(below),
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod auto {
    use super::{AutoClock, Clock, Ticks};
    use core::arch::asm;

    impl Clock for AutoClock {
        const NAME: &'static str = "cntvct";

        #[inline(always)]
        fn ticks() -> Ticks {
            let ticks: u64;
            // SAFETY: reads a counter register that user code may read; touches no memory.
            unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
            Ticks(ticks)
        }

        fn ticks_per_second() -> u64 {
            let rate: u64;
            // SAFETY: reads the register that holds the counter's frequency; touches no memory.
            unsafe { asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
            rate
        }
    }
}

#[cfg(all(feature = "std", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod auto {
    use super::{AutoClock, Clock, MonotonicClock, Ticks};

    impl Clock for AutoClock {
        const NAME: &'static str = MonotonicClock::NAME;

        #[inline(always)]
        fn ticks() -> Ticks {
            MonotonicClock::ticks()
        }

        fn ticks_per_second() -> u64 {
            MonotonicClock::ticks_per_second()
        }
    }
}

/// The operating system's monotonic clock, in nanoseconds.
#[cfg(feature = "std")]
#[derive(Debug, Clone, Copy)]
pub enum MonotonicClock {}

#[cfg(feature = "std")]
impl Clock for MonotonicClock {
    const NAME: &'static str = "monotonic";

    #[inline]
    fn ticks() -> Ticks {
        Ticks(host_ns().0)
    }

    fn ticks_per_second() -> u64 {
        1_000_000_000
    }
}

/// The host's monotonic nanosecond: CLOCK_MONOTONIC on Unix, so that processes of one host agree.
#[cfg(all(feature = "std", unix))]
pub(crate) fn host_ns() -> tmrun_formats::HostNs {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer, and the clock exists on every Unix.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    tmrun_formats::HostNs(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The host's monotonic nanosecond, since the first call.
#[cfg(all(feature = "std", not(unix)))]
pub(crate) fn host_ns() -> tmrun_formats::HostNs {
    static EPOCH: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let elapsed = EPOCH.get_or_init(std::time::Instant::now).elapsed();
    tmrun_formats::HostNs(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// The rate of a counter, measured over some milliseconds; calibration frames refine it.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn measured_rate(ticks: fn() -> Ticks) -> u64 {
    static RATE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let before = crate::calibrate::bracket(ticks, host_ns);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let after = crate::calibrate::bracket(ticks, host_ns);
        let ns = u128::from(after.ns.since(before.ns).max(1));
        let rate = u128::from(after.ticks.since(before.ticks)) * 1_000_000_000 / ns;
        u64::try_from(rate).unwrap_or(1_000_000_000).max(1)
    })
}
