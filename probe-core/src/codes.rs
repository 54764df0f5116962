//! One-byte codes that a recording defines as it goes: devices, their clocks, and element types of its
//! own.

use core::ops::Range;

use tmrun_formats::{DeviceCode, NameId};

use crate::sync::{AtomicBool, AtomicU8, AtomicU32, Ordering, array, const_fn};

/// Names by code, from 0 on; it only grows. Finding a code is a short walk: do it at set-up.
pub(crate) struct CodeTable<const N: usize>([AtomicU32; N]);

impl<const N: usize> CodeTable<N> {
    const_fn! {
        pub(crate) fn new() -> Self {
            const { assert!(N < u8::MAX as usize) }
            Self(array![AtomicU32::new(0); N])
        }
    }

    /// The code of this name, defined if it is new; `None` when the table is full or there is no
    /// name.
    pub(crate) fn code(&self, name: NameId) -> Option<u8> {
        if name.is_none() {
            return None;
        }
        (0_u8..).zip(&self.0).find_map(|(code, place)| {
            let found = place
                .compare_exchange(0, name.0, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|found| found, |_| name.0);
            (found == name.0).then_some(code)
        })
    }

    /// How many codes are defined.
    pub(crate) fn count(&self) -> u8 {
        self.0.iter().take_while(|place| place.load(Ordering::Acquire) != 0).count() as u8
    }

    /// These codes and their names.
    pub(crate) fn range(&self, codes: Range<u8>) -> impl Iterator<Item = (u8, NameId)> + '_ {
        let name = |code: u8| Some(NameId(self.0.get(usize::from(code))?.load(Ordering::Acquire)));
        codes.filter_map(move |code| Some((code, name(code)?)))
    }
}

/// Clocks of devices by code, from 0 on; it only grows.
pub(crate) struct ClockTable([ClockPlace; ClockTable::SIZE]);

/// A place of the table. Whoever stores its name has it, and says when the rest is there too.
struct ClockPlace {
    name: AtomicU32,
    backend: AtomicU32,
    device: AtomicU8,
    ready: AtomicBool,
}

/// A clock of a device: its name, and what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceClock {
    pub(crate) name: NameId,
    pub(crate) device: DeviceCode,
    pub(crate) backend: NameId,
}

/// A set of places, a bit for each.
pub(crate) type Clocks = u64;

impl ClockTable {
    const SIZE: usize = Clocks::BITS as usize;

    const_fn! {
        pub(crate) fn new() -> Self {
            Self(array![ClockPlace {
                name: AtomicU32::new(0),
                backend: AtomicU32::new(0),
                device: AtomicU8::new(0),
                ready: AtomicBool::new(false),
            }; ClockTable::SIZE])
        }
    }

    /// The code of this clock, defined if it is new; `None` when the table is full or the clock has
    /// no name. (Two threads that define a clock at the same moment may each have a code for it.)
    pub(crate) fn code(&self, clock: DeviceClock) -> Option<u8> {
        if clock.name.is_none() {
            return None;
        }
        (0_u8..).zip(&self.0).find_map(|(code, place)| {
            let taken =
                place.name.compare_exchange(0, clock.name.0, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                place.backend.store(clock.backend.0, Ordering::Relaxed);
                place.device.store(clock.device.0, Ordering::Relaxed);
                place.ready.store(true, Ordering::Release);
                return Some(code);
            }
            (place.get() == Some(clock)).then_some(code)
        })
    }

    /// The places that are defined.
    pub(crate) fn defined(&self) -> Clocks {
        let places = (0_u32..).zip(&self.0).filter(|(_, place)| place.get().is_some());
        places.fold(0, |all, (at, _)| all | 1 << at)
    }

    /// These codes and their clocks.
    pub(crate) fn of(&self, clocks: Clocks) -> impl Iterator<Item = (u8, DeviceClock)> + '_ {
        let places = (0_u8..).zip(&self.0).filter(move |(code, _)| clocks & 1 << code != 0);
        places.filter_map(|(code, place)| Some((code, place.get()?)))
    }
}

impl ClockPlace {
    fn get(&self) -> Option<DeviceClock> {
        let ready = self.ready.load(Ordering::Acquire);
        ready.then(|| DeviceClock {
            name: NameId(self.name.load(Ordering::Relaxed)),
            device: DeviceCode(self.device.load(Ordering::Relaxed)),
            backend: NameId(self.backend.load(Ordering::Relaxed)),
        })
    }
}
