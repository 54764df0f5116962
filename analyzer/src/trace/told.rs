//! What a trace has no place for, and what stands in it otherwise than it was recorded.

use std::collections::BTreeMap;

use tmrun_formats::LaneId;
use tmrun_formats::trace::{CoverageLevel, GradientContract};

use crate::scan::Gap;

macro_rules! left_out {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// Something that has no place in a trace, or would say there what was not recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LeftOut {
            $($(#[$doc])* $name,)*
        }

        impl LeftOut {
            /// What it is called in `tmrun.json`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

left_out! {
    /// Records of kinds that this version does not know.
    Unknown "unknown_records",
    /// Facts of a moment of the region that belong to another step: the one that was open on their lane, or
    /// on that which launched them.
    OtherStep "facts_of_another_step",
    /// Spans around the region, or beside it, that had not ended when the recording did.
    OpenSpan "open_spans",
    /// Tensors without all of their dimensions.
    TensorShape "tensors_without_shape",
    /// Statistics over another number of elements than the tensor has, or that a float cannot hold.
    Stats "statistics_that_contradict",
    /// Ranges of values, which a trace has no place for.
    Range "value_ranges",
    /// Frees of storage of which no allocation is known.
    Free "frees_of_unknown_storage",
    /// Allocations and frees of storage that nothing identifies.
    Storage "memory_events_of_unidentified_storage",
    /// Samples of device memory that say nothing.
    EmptySample "empty_device_memory_samples",
    /// Samples of the memory of devices that found no code, and are not told apart.
    OtherDevice "device_memory_samples_without_a_code",
    /// Device intervals of devices or clocks that found no code, and are not told apart.
    OtherClock "device_intervals_without_a_code",
    /// Device intervals of no length.
    EmptyInterval "empty_device_intervals",
    /// Device intervals whose stamps say nothing.
    InvalidInterval "device_intervals_with_invalid_stamps",
    /// Gradients whose norm is not known, or does not go with their state.
    Gradient "gradients_without_their_norm",
    /// Edges between spans that do not lie directly within one another.
    CallEdge "call_edges_elsewhere",
    /// Edges between tensors, one of which no operation and no tensor event speaks of.
    DataEdge "data_edges_of_unknown_tensors",
    /// Edges between nodes of a static analysis.
    StaticEdge "static_edges",
    /// Configurations, breakpoints and readings of device clocks.
    Recorder "recorder_facts",
}

/// A plane that the run declared to be complete, and of which something is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refuted {
    /// The plane, as the contract calls it.
    pub plane: &'static str,
    /// What was declared.
    pub declared: CoverageLevel,
    /// What the trace declares instead.
    pub instead: CoverageLevel,
    /// Why, for people.
    pub because: String,
}

/// All of that.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// What was left out, and how often.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Spans that hang elsewhere than was recorded.
    pub moved_spans: Vec<MovedSpan>,
    /// Facts that hang elsewhere than was recorded.
    pub moved_facts: Vec<MovedFacts>,
    /// Storages that were live when the region began, and their bytes.
    pub carried: (u64, u64),
    /// Storages whose end is not known, and whose name another one took: what the later one is called.
    pub renamed_storages: Vec<String>,
    /// Operations whose inputs' bytes are not known, and stand as 0.
    pub unknown_input_bytes: u64,
    /// Operations whose dimensions nobody gave, and which stand as scalars.
    pub unknown_shapes: u64,
    /// Operations of which not all inputs fit their records.
    pub truncated_inputs: u64,
    /// Names that no intact frame defines.
    pub unnamed: u64,
    /// Tensor events of tensors that nothing identifies.
    pub unidentified_tensors: u64,
    /// Values that are not finite, which JSON cannot tell apart.
    pub non_finite: Vec<NonFinite>,
    /// Planes that were declared to be complete and are not.
    pub refuted: Vec<Refuted>,
    /// Why there are not the host times of all spans, for people: some may be lost.
    pub host_time: Option<String>,
    /// The gradients that the run expected, where the trace cannot hold it to them because it does not
    /// have all.
    pub gradient_contract: Option<GradientContract>,
    /// What is missing of the region.
    pub gaps: Vec<Gap>,
}

/// A span that hangs elsewhere than was recorded: what it hung on is lost, or does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSpan {
    /// Its id.
    pub id: String,
    /// The id of the span that it hung on, whether the trace has that or not.
    pub recorded: String,
    /// The id of the one that it hangs on.
    pub parent: String,
}

/// Facts of a lane that hang elsewhere than was recorded, of one span on one other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFacts {
    /// The lane.
    pub lane: LaneId,
    /// The id of the span that they were recorded within; `None` where the half of it that they say does
    /// not tell which.
    pub recorded: Option<String>,
    /// The id of the span that they hang on.
    pub span_id: String,
    /// How many there are.
    pub facts: u64,
}

/// What a value was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOf {
    /// A tensor's elements.
    Tensor,
    /// A number.
    Scalar,
    /// A gradient's norm.
    Gradient,
}

impl ValueOf {
    /// What it is called in `tmrun.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Scalar => "scalar",
            Self::Gradient => "gradient",
        }
    }
}

/// A value that is not finite, or several of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonFinite {
    /// What it is a value of.
    pub of: ValueOf,
    /// What was looked at; of a gradient `root/key`.
    pub label: String,
    /// The span that it was recorded within.
    pub span_id: String,
    /// When, in nanoseconds of the trace.
    pub timestamp_ns: u64,
    /// NaN. (Of a gradient without a norm nobody knows what it was: all three say nothing then.)
    pub nan: u64,
    /// Positive infinity; `None` where only the infinities together are known.
    pub positive: Option<u64>,
    /// Infinities together.
    pub infinite: u64,
}

impl Told {
    pub(super) fn leave_out(&mut self, what: LeftOut) {
        let count = self.left_out.entry(what).or_default();
        *count = count.saturating_add(1);
    }

    /// How often something was left out.
    pub fn count(&self, what: LeftOut) -> u64 {
        self.left_out.get(&what).copied().unwrap_or_default()
    }
}
