//! Kinds of records.

use crate::{Level, Planes};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal $level:ident $plane:ident,)*) => {
        /// What a record says. 0 is never written: a zeroed slot is empty.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $code,)*
        }

        impl Kind {
            /// Every kind of this version, by code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The kind with this code; `None` for 0 and for kinds of newer versions.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The kind's name in every output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The least level that records it. (A continuation follows the level of its head.)
            pub const fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }

            /// Which of the first four words of its payload are ticks, the first in the lowest bit.
            pub const fn ticks_in_payload(self) -> u8 {
                match self {
                    Self::Span | Self::Op => 0b0001,
                    Self::Gap | Self::Level => 0b0011,
                    Self::ClockSync => 0b0110,
                    Self::DeviceInterval => 0b1000,
                    _ => 0,
                }
            }

            /// The plane that it is evidence for.
            pub const fn plane(self) -> Planes {
                match self {
                    $(Self::$name => Planes::$plane,)*
                }
            }
        }
    };
}

kinds! {
    /// A host interval, written when it ends.
    Span = 1 "span" TIMING HOST_TIME,
    /// A step begins or ends on its lane.
    Step = 2 "step" PULSE HOST_TIME,
    /// An operation.
    Op = 3 "op" TIMING OPERATIONS,
    /// Up to five input tensors of the group's Op.
    OpInput = 4 "op_input" TIMING OPERATIONS,
    /// A tensor's metadata.
    Tensor = 5 "tensor" METADATA TENSORS,
    /// Up to five dimensions of the group's head.
    Shape = 6 "shape" TIMING TENSORS,
    /// Statistics of the group's Tensor.
    Stats = 7 "stats" NUMERICS STATISTICS,
    /// A range of values.
    Range = 8 "range" NUMERICS STATISTICS,
    /// One number that the application computed.
    Scalar = 9 "scalar" PULSE SCALARS,
    /// What became of a parameter's gradient.
    Gradient = 10 "gradient" METADATA GRADIENTS,
    /// A storage was allocated.
    Alloc = 11 "alloc" METADATA LOGICAL_MEMORY,
    /// A storage was freed.
    Free = 12 "free" METADATA LOGICAL_MEMORY,
    /// A sample of a device's memory.
    DeviceMemory = 13 "device_memory" METADATA PHYSICAL_MEMORY,
    /// An interval on a device's clock.
    DeviceInterval = 14 "device_interval" TIMING DEVICE_TIMING,
    /// A call, data or static edge.
    Edge = 15 "edge" TIMING HOST_TIME,
    /// The level changed.
    Level = 16 "level" PULSE RECORDER,
    /// A configuration takes effect on a lane.
    Control = 17 "control" PULSE RECORDER,
    /// Records are missing.
    Gap = 18 "gap" PULSE RECORDER,
    /// A breakpoint was hit.
    Hit = 19 "hit" PULSE RECORDER,
    /// A device clock and the host clock, read together.
    ClockSync = 20 "clock_sync" PULSE RECORDER,
}
