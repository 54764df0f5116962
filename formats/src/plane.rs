//! Kinds of evidence, each with a coverage of its own.

/// A set of planes. A plane is a kind of evidence: it is captured or missing as a whole, and is
/// never added to another.
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
pub struct Planes(pub u32);

impl Planes {
    /// No plane.
    pub const NONE: Self = Self(0);
    /// Spans, steps and edges on the host clock.
    pub const HOST_TIME: Self = Self(1);
    /// Operations.
    pub const OPERATIONS: Self = Self(1 << 1);
    /// Tensor metadata.
    pub const TENSORS: Self = Self(1 << 2);
    /// Tensor statistics and value ranges.
    pub const STATISTICS: Self = Self(1 << 3);
    /// Gradients of parameters.
    pub const GRADIENTS: Self = Self(1 << 4);
    /// Storage allocations and frees.
    pub const LOGICAL_MEMORY: Self = Self(1 << 5);
    /// Samples of a device's memory.
    pub const PHYSICAL_MEMORY: Self = Self(1 << 6);
    /// Intervals on a device's clock.
    pub const DEVICE_TIMING: Self = Self(1 << 7);
    /// Scalars that the application computed.
    pub const SCALARS: Self = Self(1 << 8);
    /// What the recorder says of itself: levels, control, clocks, hits.
    pub const RECORDER: Self = Self(1 << 9);

    const NAMES: [(Self, &'static str); 10] = [
        (Self::HOST_TIME, "host_time"),
        (Self::OPERATIONS, "operations"),
        (Self::TENSORS, "tensors"),
        (Self::STATISTICS, "statistics"),
        (Self::GRADIENTS, "gradients"),
        (Self::LOGICAL_MEMORY, "logical_memory"),
        (Self::PHYSICAL_MEMORY, "physical_memory"),
        (Self::DEVICE_TIMING, "device_timing"),
        (Self::SCALARS, "scalars"),
        (Self::RECORDER, "recorder"),
    ];

    /// Both sets together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every plane of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the known planes in this set, in order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(plane, _)| self.contains(*plane))
            .map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_names_its_planes_in_order_and_leaves_unknown_ones_out() {
        let set = Planes::SCALARS.union(Planes::OPERATIONS).union(Planes(1 << 31));
        assert_eq!(set.names().collect::<Vec<_>>(), ["operations", "scalars"]);
        assert!(set.contains(Planes::SCALARS) && !set.contains(Planes::TENSORS));
        assert_eq!(Planes::NONE.names().count(), 0);
        assert_eq!(Planes(u32::MAX).names().count(), 10);
    }
}
