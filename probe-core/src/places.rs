//! Codes of devices by where they are, so that a record's device costs one load and no text.

use core::fmt::Write;

use tmrun_formats::DeviceCode;

use crate::probe::ProbeRef;
use crate::sync::{AtomicU8, Ordering, array, const_fn};

/// Ordinals of a backend whose code is kept.
const KEPT: usize = 32;

/// Where a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DevicePlace {
    /// The processor: `cpu`.
    Cpu,
    /// A CUDA device by its ordinal: `cuda:0`.
    Cuda(u32),
    /// A Metal device by its ordinal: `metal:0`.
    Metal(u32),
}

impl DevicePlace {
    /// The index of its code, for the devices whose code is kept.
    fn index(self) -> Option<usize> {
        let kept = |ordinal: u32| usize::try_from(ordinal).ok().filter(|&at| at < KEPT);
        match self {
            Self::Cpu => Some(0),
            Self::Cuda(ordinal) => kept(ordinal).map(|at| 1 + at),
            Self::Metal(ordinal) => kept(ordinal).map(|at| 1 + KEPT + at),
        }
    }
}

impl core::fmt::Display for DevicePlace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Metal(ordinal) => write!(f, "metal:{ordinal}"),
        }
    }
}

/// The codes that are known already; 0 is none. A code never changes once it is given.
pub(crate) struct PlaceCodes([AtomicU8; 1 + 2 * KEPT]);

impl PlaceCodes {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self(array![AtomicU8::new(0); 1 + 2 * KEPT])
        }
    }
}

impl<C> ProbeRef<'_, C> {
    /// The code of the device at this place, by the name that the place shows as. The first call for
    /// a place defines it as [`device`](Self::device) does; later ones are one load, for the
    /// processor and the first 32 devices of a backend.
    #[inline]
    pub fn device_at(&self, place: DevicePlace) -> DeviceCode {
        let kept = place.index().and_then(|at| self.shared.places.0.get(at));
        match kept.map(|code| code.load(Ordering::Relaxed)) {
            None | Some(0) => self.define_place(place, kept),
            Some(code) => DeviceCode(code),
        }
    }

    #[cold]
    #[inline(never)]
    fn define_place(&self, place: DevicePlace, keep: Option<&AtomicU8>) -> DeviceCode {
        let mut name = Name::default();
        // The longest name, `metal:4294967295`, fits.
        let _ = write!(name, "{place}");
        let code = self.device(name.as_str());
        if let Some(keep) = keep {
            keep.store(code.0, Ordering::Relaxed);
        }
        code
    }
}

/// A short text without an allocation.
#[derive(Default)]
struct Name {
    bytes: [u8; 16],
    len: usize,
}

impl Name {
    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let place = self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;
    use crate::{AutoClock, Probe};

    #[test]
    fn a_place_has_the_code_of_its_name() {
        static PROBE: Probe<AutoClock, 1, 32> = Probe::new();
        let probe = PROBE.view();
        let places = [
            (DevicePlace::Metal(u32::MAX), "metal:4294967295"),
            (DevicePlace::Cuda(0), "cuda:0"),
            (DevicePlace::Cpu, "cpu"),
            (DevicePlace::Cuda(31), "cuda:31"),
            (DevicePlace::Metal(31), "metal:31"),
            (DevicePlace::Cuda(32), "cuda:32"),
        ];
        let codes = places.map(|(place, _)| probe.device_at(place));
        assert_eq!(codes.map(|code| code.0), [1, 2, 3, 4, 5, 6]);
        for ((place, name), code) in places.into_iter().zip(codes) {
            assert_eq!((probe.device_at(place), probe.device(name)), (code, code), "{name}");
        }
    }
}
