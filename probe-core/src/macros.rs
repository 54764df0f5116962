//! The macros, and what each expands to.

use tmrun_formats::Level;

use crate::probe::CAP;

/// Declares a probe: a type of that name whose one value is the probe. Its memory is a `static`, all
/// zeros; its lanes are claimed one per thread on first use.
///
/// ```
/// use tmrun_probe_core::{probe, scalar, span};
///
/// probe!(static PROBE: lanes = 4, slots = 1 << 10, max_level = 2);
///
/// let _forward = span!(PROBE, "forward");
/// scalar!(PROBE, "loss", 0.5); // nothing is recording: both do nothing
/// ```
///
/// | setting | default | what it is |
/// | --- | --- | --- |
/// | `lanes` | 16 | rings: one for each thread that records |
/// | `slots` | `1 << 14` | records a ring holds (64 bytes each): a power of two, 32 or more |
/// | `names` | 4096 | names that can be interned, with 64 bytes of text for each |
/// | `max_level` | 3 | sites above it are no code at all |
///
/// Another clock follows behind a semicolon: `probe!(static PROBE: lanes = 1; clock = MyClock);`
#[cfg(feature = "std")]
#[macro_export]
macro_rules! probe {
    ($(#[$meta:meta])* $vis:vis static $name:ident $(: $($setting:ident = $value:expr),+ $(,)?)?) => {
        $crate::probe! {
            $(#[$meta])* $vis static $name: $($($setting = $value),+)?; clock = $crate::AutoClock
        }
    };
    ($(#[$meta:meta])* $vis:vis static $name:ident: $($setting:ident = $value:expr),* $(,)?; clock = $clock:ty) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types)]
        $vis struct $name;

        const _: () = {
            const SETTINGS: $crate::Settings = {
                #[allow(unused_mut)]
                let mut settings = $crate::Settings::DEFAULT;
                $(settings.$setting = $value;)*
                settings
            };

            static MEMORY: $crate::Probe<
                $clock,
                { SETTINGS.lanes },
                { SETTINGS.slots },
                { SETTINGS.names },
            > = $crate::Probe::new();
            const MAX_LEVEL: $crate::Level = SETTINGS.cap();

            static VIEW: $crate::ProbeRef<'static, $clock> = MEMORY.view().capped(MAX_LEVEL);

            static ENTRY: $crate::Entry<$clock> = $crate::Entry::new(
                MEMORY.view().capped(MAX_LEVEL),
                // SAFETY: whoever calls it has the contract of `here`, word for word.
                || unsafe { $crate::Target::here(&$name) },
            );

            ::std::thread_local! {
                static LANE: $crate::ThreadLane = const { $crate::ThreadLane::new() };
                static GIVE_BACK: $crate::GiveBack = const { $crate::GiveBack::new() };
            }

            impl $crate::Target for $name {
                type Clock = $clock;
                const MAX_LEVEL: $crate::Level = MAX_LEVEL;

                #[inline(always)]
                fn probe(&self) -> $crate::ProbeRef<'_, $clock> {
                    MEMORY.view()
                }

                #[inline(always)]
                unsafe fn here(&self) -> ::core::option::Option<$crate::Recorder<'_, $clock>> {
                    // SAFETY: the caller's contract.
                    let block = LANE.with(|lane| match unsafe { lane.get() } {
                        ::core::option::Option::Some(block) => {
                            ::core::option::Option::Some(block)
                        }
                        // SAFETY: the caller's contract.
                        ::core::option::Option::None => unsafe {
                            lane.claim(VIEW, &GIVE_BACK, || {
                                LANE.with($crate::ThreadLane::clear)
                            })
                        },
                    })?;
                    // SAFETY: the block is the calling thread's lane of this very probe.
                    ::core::option::Option::Some(unsafe {
                        $crate::Recorder::on(&VIEW, block)
                    })
                }

                #[inline(always)]
                unsafe fn quick_lane(&self) -> &$crate::LaneBlock {
                    // SAFETY: the caller's contract.
                    LANE.with(|lane| unsafe { lane.lane() })
                }
            }

            impl $crate::StaticProbe for $name {
                fn entry() -> &'static $crate::Entry<$clock> {
                    &ENTRY
                }
            }

            #[allow(dead_code)]
            impl $name {
                /// Opens a step on the calling thread's lane; it ends when the guard is dropped.
                $vis fn step(&self, number: u64) -> $crate::StepGuard<'static, $clock> {
                    $crate::Target::step(&$name, number)
                }

                /// Opens a step of this phase, where it differs from the run's.
                $vis fn step_as(
                    &self,
                    number: u64,
                    phase: $crate::Phase,
                ) -> $crate::StepGuard<'static, $clock> {
                    $crate::Target::step_as(&$name, number, phase)
                }

                /// Joins a step that another thread opened.
                $vis fn enter_step(&self, number: u64) -> $crate::StepGuard<'static, $clock> {
                    $crate::Target::enter_step(&$name, number)
                }

                /// Runs `f` on the calling thread's lane if records of this level are wanted.
                #[inline(always)]
                $vis fn at<R>(
                    &self,
                    level: $crate::Level,
                    f: impl for<'l> FnOnce($crate::Recorder<'l, $clock>) -> R,
                ) -> ::core::option::Option<R> {
                    $crate::Target::at(self, level, f)
                }
            }

            impl ::core::ops::Deref for $name {
                type Target = $crate::ProbeRef<'static, $clock>;

                #[inline(always)]
                fn deref(&self) -> &Self::Target {
                    &VIEW
                }
            }
        };
    };
}

/// The settings of `probe!`.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Rings.
    pub lanes: usize,
    /// Records a ring holds.
    pub slots: usize,
    /// Names that can be interned.
    pub names: usize,
    /// The highest level that is compiled in.
    pub max_level: u8,
}

impl Settings {
    /// 16 rings of 1 MiB, 4096 names, every level.
    pub const DEFAULT: Self = Self { lanes: 16, slots: 1 << 14, names: 4096, max_level: 3 };

    /// The highest level that is compiled in, less what a feature `max-level-N` leaves out.
    pub const fn cap(&self) -> Level {
        if self.max_level < CAP.0 { Level(self.max_level) } else { CAP }
    }
}

/// Opens a span that ends when the guard is dropped: `span!(target, "name")`, or in a library
/// `span!("name")`, on the probe that the program installed (`install`).
///
/// The name is a literal, or a [`NameId`](crate::NameId) that was interned before:
/// `span!(PROBE, node)`. What it stands for may follow, in any order:
///
/// ```
/// # use tmrun_probe_core::{probe, span, Target};
/// # probe!(static PROBE: lanes = 1, slots = 64);
/// let node = PROBE.name("encoder.layers.3");
/// let _step = span!(PROBE, "forward", step = FORWARD);
/// let _layer = span!(PROBE, node, kind = MODULE);
/// ```
///
/// The target is a probe (which finds the thread's lane), a [`Lane`](crate::Lane), or `Global`.
#[macro_export]
macro_rules! span {
    ($name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::span!($crate::Global, $name $(, $setting = $value)*)
    };
    ($target:expr, $name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(open_span, &$target, $name, None, TIMING, FUNCTION $(, $setting = $value)*)
    };
    ($target:expr, $node:expr $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(open_span, &$target, "", Some($node), TIMING, FUNCTION $(, $setting = $value)*)
    };
}

/// Opens the measured region, at level 0: the one span whose duration is the run's or the step's. It
/// takes what [`span!`](crate::span) takes.
#[macro_export]
macro_rules! measured {
    ($name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::measured!($crate::Global, $name $(, $setting = $value)*)
    };
    ($target:expr, $name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(open_span, &$target, $name, None, PULSE, MEASURED $(, $setting = $value)*)
    };
    ($target:expr, $node:expr $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(open_span, &$target, "", Some($node), PULSE, MEASURED $(, $setting = $value)*)
    };
}

/// Begins a [`DetachedSpan`](crate::DetachedSpan), which may end on another thread:
/// `detached!("request")` on the installed probe, or `detached!(target, "request")`. It takes what
/// [`span!`](crate::span) takes.
#[macro_export]
macro_rules! detached {
    ($name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::detached!($crate::Global, $name $(, $setting = $value)*)
    };
    ($target:expr, $name:literal $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(begin_detached, $target, $name, None, TIMING, FUNCTION $(, $setting = $value)*)
    };
    ($target:expr, $node:expr $(, $setting:ident = $value:ident)* $(,)?) => {
        $crate::__span!(begin_detached, $target, "", Some($node), TIMING, FUNCTION $(, $setting = $value)*)
    };
}

/// Records one number: `scalar!(target, "label", value)`, or in a library `scalar!("label", value)`. The
/// value is not computed when nothing
/// records it.
#[macro_export]
macro_rules! scalar {
    ($label:literal, $value:expr $(,)?) => {
        $crate::scalar!($crate::Global, $label, $value)
    };
    ($target:expr, $label:literal, $value:expr $(,)?) => {{
        static SITE: $crate::Site = $crate::__site!($label, Scalar, PULSE);
        $crate::record_scalar(&$target, &SITE, || $value)
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __span {
    ($open:ident, $target:expr, $name:literal, $node:expr, $level:ident, $shape:ident $(, $setting:ident = $value:ident)*) => {{
        static SITE: $crate::Site = $crate::__site!($name, Span, $level);
        const SHAPE: $crate::SpanShape =
            $crate::SpanShape::$shape $(.$setting($crate::__shape!($setting, $value)))*;
        #[allow(unused_imports)]
        use ::core::option::Option::{None, Some};
        $crate::$open($target, &SITE, $node, SHAPE)
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __shape {
    (step, $value:ident) => {
        $crate::ExecutionStep::$value
    };
    (kind, $value:ident) => {
        $crate::SpanKind::$value
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($name:literal, $kind:ident, $level:ident) => {
        $crate::Site::new(
            $name,
            $crate::Kind::$kind,
            $crate::Level::$level,
            ::core::file!(),
            ::core::line!(),
        )
    };
}
