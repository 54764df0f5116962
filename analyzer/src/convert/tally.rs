//! Counts of what is not in the output, and of what is in it otherwise than it was recorded.

use tmrun_formats::json::Object;

macro_rules! counted {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$item_doc])* $item,)*
        }

        impl $name {
            /// All of them, in the order of the output.
            pub const ALL: &'static [Self] = &[$(Self::$item),*];

            /// Its key in the output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$item => $text,)*
                }
            }
        }
    };
}

counted! {
    /// What the schema has no place for: `not_represented` in the output.
    Absent {
        /// Host intervals.
        Span = "span",
        /// The parts of detached spans on one lane each; the whole is a span.
        Segment = "segment",
        /// Step marks. (The steps of the observations are in them.)
        Step = "step",
        /// Tensors of which not all dimensions are in the file.
        Tensor = "tensor",
        /// Tensors that describe a statistic which is not there.
        Context = "context_tensor",
        /// Statistics without a range of values.
        Stats = "stats",
        /// Ranges of tensors without elements.
        EmptyRange = "empty_range",
        /// Value ranges, in version 1.
        Value = "value",
        /// Gradients in a state that this version does not know.
        Gradient = "gradient",
        /// Allocations.
        Alloc = "alloc",
        /// Frees.
        Free = "free",
        /// Samples of a device's memory.
        DeviceMemory = "device_memory",
        /// Intervals on a device's clock.
        DeviceInterval = "device_interval",
        /// Edges between spans.
        CallEdge = "call_edge",
        /// Edges between tensors.
        DataEdge = "data_edge",
        /// Edges of a kind that this version does not know.
        OtherEdge = "other_edge",
        /// Edges between nodes, before version 3.
        EdgeTiming = "edge_timing",
        /// Changes of the level.
        Level = "level",
        /// Configurations that took effect.
        Control = "control",
        /// Breakpoints that were hit.
        Hit = "hit",
        /// Readings of a device clock and the host's.
        ClockSync = "clock_sync",
        /// Records of kinds that this version does not know.
        Unknown = "unknown",
        /// The run's phase, before version 3, or one that this version does not know.
        Phase = "run.phase",
        /// The steps of tensors, in version 1.
        TensorStep = "tensors.step",
        /// The steps of operations, in version 1.
        OperationStep = "operations.step",
        /// The steps of gradients, in version 1.
        GradientStep = "gradients.step",
        /// Durations of operations, before version 3, or that end before they begin.
        Duration = "operations.duration_ns",
    }
}

counted! {
    /// What stands in the output otherwise than it was recorded: `notes` in the output.
    Note {
        /// Names that no intact frame defines, replaced by a placeholder.
        Unnamed = "unnamed",
        /// Observations before which step marks may have been lost.
        DoubtfulStep = "doubtful_step",
        /// Norms that do not go with their gradient's state, left out.
        DroppedNorm = "dropped_norm",
        /// Operations with more inputs than were recorded.
        TruncatedInputs = "truncated_inputs",
        /// Ranges of which a bound is not finite although no element is said to be so: one is counted.
        RangeBounds = "range_bounds",
        /// The run's metadata is missing; its texts are `unknown`.
        NoRun = "no_run_metadata",
    }
}

/// How often each was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    absent: [u64; Absent::ALL.len()],
    notes: [u64; Note::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self { absent: [0; Absent::ALL.len()], notes: [0; Note::ALL.len()] }
    }
}

impl Tally {
    /// How often this was met.
    pub fn absent(&self, what: Absent) -> u64 {
        self.absent.get(what as usize).copied().unwrap_or_default()
    }

    /// How often this was met.
    pub fn noted(&self, what: Note) -> u64 {
        self.notes.get(what as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn leave_out(&mut self, what: Absent) {
        bump(self.absent.get_mut(what as usize), 1);
    }

    #[inline]
    pub(super) fn note(&mut self, what: Note, times: u64) {
        bump(self.notes.get_mut(what as usize), times);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.absent.iter_mut().zip(other.absent).for_each(|(sum, n)| bump(Some(sum), n));
        self.notes.iter_mut().zip(other.notes).for_each(|(sum, n)| bump(Some(sum), n));
    }

    /// Appends `,"not_represented":{…}`, and `,"notes":{…}` if there is anything to note.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"not_represented\":");
        push(out, Absent::ALL.iter().map(|&what| (what.name(), self.absent(what))));
        if self.notes.iter().any(|&n| n > 0) {
            out.extend_from_slice(b",\"notes\":");
            push(out, Note::ALL.iter().map(|&what| (what.name(), self.noted(what))));
        }
    }
}

fn bump(count: Option<&mut u64>, by: u64) {
    if let Some(count) = count {
        *count = count.saturating_add(by);
    }
}

fn push(out: &mut Vec<u8>, counts: impl Iterator<Item = (&'static str, u64)>) {
    let mut object = Object::begin(out);
    counts.filter(|&(_, n)| n > 0).for_each(|(name, n)| object.u64(name, n));
    object.end();
}
