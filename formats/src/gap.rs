//! Why records are missing.

use crate::codes::codes;

/// The two classes of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapClass {
    /// The level, the focus or a slice left it out: no damage, but nothing is complete either.
    NotRequested,
    /// It was asked for and is missing. Only this class changes an exit code.
    Lost,
}

impl GapClass {
    /// The class's name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotRequested => "not_requested",
            Self::Lost => "lost",
        }
    }
}

codes! {
    /// Why records are missing. Codes below 16 are *not requested*, all others are *lost*.
    GapReason {
        /// The level in force did not ask for the plane.
        LEVEL = 1 "level",
        /// A focus left the node out.
        FOCUS = 2 "focus",
        /// Steps or files that nobody asked to keep.
        LEFT_OUT = 3 "left-out",
        /// The file is a slice of a larger one, and this is no evidence of what it was made for.
        SLICED = 4 "sliced",
        /// The lane's ring was full.
        OVERRUN = 16 "overrun",
        /// A flight recorder wrote over the oldest records.
        LAPPED = 17 "lapped",
        /// Every lane was taken.
        NO_LANE = 18 "no-lane",
        /// The file could not be written.
        SINK_FAILED = 19 "sink-failed",
        /// The process died while the record was being stored, or the file breaks off before it.
        TORN = 20 "torn",
        /// Bytes of the file do not pass their checks.
        CORRUPT = 21 "corrupt",
        /// A forked child does not record into its parent's file.
        FORK = 22 "fork",
        /// Recorded after the run was finished.
        AFTER_FINISH = 23 "after-finish",
        /// More spans were open on the lane than it can hold.
        TOO_DEEP = 24 "too-deep",
        /// No free event in the device's pool.
        POOL_EXHAUSTED = 32 "pool-exhausted",
        /// The work was being captured into a graph.
        GRAPH_CAPTURE = 33 "graph-capture",
        /// Recorded from a thread whose stream is another one.
        WRONG_THREAD = 34 "wrong-thread",
        /// The device had not finished when the run did.
        NOT_READY = 35 "not-ready",
        /// The driver refused.
        DRIVER_ERROR = 36 "driver-error",
        /// There is no driver, or no device.
        DRIVER_UNAVAILABLE = 37 "driver-unavailable",
    }
}

impl GapReason {
    /// The class that the reason belongs to. An unknown reason counts as lost.
    pub const fn class(self) -> GapClass {
        if self.0 != 0 && self.0 < 16 { GapClass::NotRequested } else { GapClass::Lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_asked_for_is_not_requested() {
        let not_requested =
            [GapReason::LEVEL, GapReason::FOCUS, GapReason::LEFT_OUT, GapReason::SLICED];
        for &reason in GapReason::KNOWN {
            let class = reason.class();
            let expected = if not_requested.contains(&reason) { "not_requested" } else { "lost" };
            assert_eq!(class.name(), expected, "{:?}", reason.name());
        }
    }
}
