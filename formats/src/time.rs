//! Time: ticks of the recording clock and nanoseconds of the host are different types, and only a
//! [`ClockMap`](crate::ClockMap) turns one into the other.

/// Ticks of the clock that stamped the record.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[repr(transparent)]
pub struct Ticks(pub u64);

/// Nanoseconds of the host's monotonic clock.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[repr(transparent)]
pub struct HostNs(pub u64);

impl Ticks {
    /// How many ticks lie between `earlier` and this; 0 when the clock ran backwards.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl HostNs {
    /// How many nanoseconds lie between `earlier` and this; 0 when it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
