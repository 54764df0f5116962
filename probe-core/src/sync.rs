//! The one place that knows which atomics the target has, and whether a model checker runs the code.
//!
//! Everything a lane holds is an atomic with relaxed access: on every target a plain load or store,
//! and no aliasing argument is needed anywhere. The orderings that matter are named by the methods that
//! have them: `publish` and `observe`, of a [`Word`] and of a [`Position`].
//!
//! In unit tests with `--cfg loom` the atomics are those of the checker, and `src/models/` runs this
//! crate's own code on them. They cannot be made in a constant: what holds atomics is made by a
//! `const_fn!`, of `array!`s. A static that no model looks at takes its atomics from `core`.

#[cfg(not(all(loom, test)))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence},
};
#[cfg(all(loom, test))]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence},
};

#[cfg(all(target_has_atomic = "64", not(all(loom, test))))]
use core::sync::atomic::AtomicU64;
#[cfg(all(loom, test))]
use loom::sync::atomic::AtomicU64;

/// A constructor of what holds atomics: `const`, but in a model.
#[cfg(not(all(loom, test)))]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis const fn $($rest)* };
}
#[cfg(all(loom, test))]
macro_rules! const_fn {
    ($($function:tt)*) => { $($function)* };
}

/// An array of so many, each made anew.
#[cfg(not(all(loom, test)))]
macro_rules! array {
    ($each:expr; $n:expr) => {
        [const { $each }; $n]
    };
}
#[cfg(all(loom, test))]
macro_rules! array {
    ($each:expr; $n:expr) => {
        core::array::from_fn::<_, { $n }, _>(|_| $each)
    };
}

/// A struct of words that are all zero.
macro_rules! words {
    ($name:ident { $($field:ident),* $(,)? }) => {
        $name { $($field: $crate::sync::Word::new(0)),* }
    };
}

pub(crate) use {array, const_fn, words};

/// A 64-bit value with one writer, which any thread may read.
#[cfg(target_has_atomic = "64")]
#[repr(transparent)]
pub(crate) struct Word(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Word {
    const_fn! {
        pub(crate) fn new(value: u64) -> Self {
            Self(AtomicU64::new(value))
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Makes everything written before it visible to whoever observes this value.
    #[inline(always)]
    pub(crate) fn publish(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    pub(crate) fn observe(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A 64-bit value with one writer, which any thread may read: where the target has no 64-bit
/// atomics the high half is kept twice, written before and after the low half, and a reader that
/// finds the two copies equal, reading in the other order, has a whole value.
#[cfg(not(target_has_atomic = "64"))]
pub(crate) struct Word {
    first: AtomicU32,
    low: AtomicU32,
    second: AtomicU32,
}

#[cfg(not(target_has_atomic = "64"))]
impl Word {
    pub(crate) const fn new(value: u64) -> Self {
        let high = (value >> 32) as u32;
        Self {
            first: AtomicU32::new(high),
            low: AtomicU32::new(value as u32),
            second: AtomicU32::new(high),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        loop {
            let second = self.second.load(Ordering::Acquire);
            let low = self.low.load(Ordering::Acquire);
            if self.first.load(Ordering::Acquire) == second {
                return u64::from(second) << 32 | u64::from(low);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        let high = (value >> 32) as u32;
        self.first.store(high, Ordering::Release);
        self.low.store(value as u32, Ordering::Release);
        self.second.store(high, Ordering::Release);
    }

    /// Makes everything written before it visible to whoever observes this value: each half does.
    #[inline(always)]
    pub(crate) fn publish(&self, value: u64) {
        self.set(value);
    }

    pub(crate) fn observe(&self) -> u64 {
        self.get()
    }
}

/// Eight little-endian bytes of a slot.
#[cfg(target_has_atomic = "64")]
#[repr(transparent)]
pub(crate) struct SlotWord(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl SlotWord {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value.to_le(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        u64::from_le(self.0.load(Ordering::Relaxed))
    }

    /// What it holds, as plain memory is read: the checker holds it against every store.
    ///
    /// # Safety
    ///
    /// Nothing stores to it meanwhile.
    #[cfg(all(loom, test))]
    pub(crate) unsafe fn get_plain(&self) -> u64 {
        // SAFETY: the caller promises that nothing stores to it.
        u64::from_le(unsafe { self.0.unsync_load() })
    }
}

/// Eight little-endian bytes of a slot.
#[cfg(not(target_has_atomic = "64"))]
#[repr(C, align(8))]
pub(crate) struct SlotWord([AtomicU32; 2]);

#[cfg(not(target_has_atomic = "64"))]
impl SlotWord {
    pub(crate) const fn new() -> Self {
        Self([AtomicU32::new(0), AtomicU32::new(0)])
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        let [low, high] = &self.0;
        low.store((value as u32).to_le(), Ordering::Relaxed);
        high.store(((value >> 32) as u32).to_le(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        let [low, high] = &self.0;
        let half = |word: &AtomicU32| u64::from(u32::from_le(word.load(Ordering::Relaxed)));
        half(low) | half(high) << 32
    }
}

/// Four little-endian bytes of a slot.
#[cfg(not(all(loom, test)))]
#[repr(transparent)]
pub(crate) struct SlotHalf(AtomicU32);

#[cfg(not(all(loom, test)))]
impl SlotHalf {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u32) {
        self.0.store(value.to_le(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u32 {
        u32::from_le(self.0.load(Ordering::Relaxed))
    }
}

/// A position of a ring as one side publishes it and the other observes it: the low bits of a
/// 64-bit counter, all of them where the target has 64-bit words. Both sides keep the full counter
/// and are never a whole ring apart, so the observer can complete it.
#[repr(align(128))]
pub(crate) struct Position(AtomicUsize);

impl Position {
    const_fn! {
        pub(crate) fn new(value: u64) -> Self {
            Self(AtomicUsize::new(value as usize))
        }
    }

    /// Makes everything written before it visible to whoever observes this value.
    #[inline(always)]
    pub(crate) fn publish(&self, value: u64) {
        self.0.store(value as usize, Ordering::Release);
    }

    /// The full counter, which is at or a little after `known`.
    #[inline(always)]
    pub(crate) fn observe(&self, known: u64) -> u64 {
        let ahead = self.0.load(Ordering::Acquire).wrapping_sub(known as usize);
        known.wrapping_add(ahead as u64)
    }
}
