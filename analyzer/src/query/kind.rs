//! The questions, in one table.

/// What of an answer can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Nothing: the answer has bounds of its own.
    None,
    /// Which of its rows.
    Rows,
    /// Which of its rows, and rows of which labels.
    Labels,
}

/// What has to be given to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// One invocation.
    Trace,
    /// One invocation that is complete and holds together.
    Graph,
    /// A whole recording.
    Recording,
    /// A whole recording, or one invocation.
    Either,
}

macro_rules! kinds {
    ($($(#[doc = $about:literal])* $kind:ident $name:literal $choice:ident $needs:ident $ours:literal,)*) => {
        /// A question.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $about])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// What it is called on a command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// What it asks.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!($($about),*).trim_ascii(),)*
                }
            }

            /// What of the answer can be chosen.
            pub const fn choice(self) -> Choice {
                match self {
                    $(Self::$kind => Choice::$choice,)*
                }
            }

            /// What has to be given.
            pub const fn needs(self) -> Needs {
                match self {
                    $(Self::$kind => Needs::$needs,)*
                }
            }

            /// Whether the neighbour cannot be asked this.
            pub const fn is_ours(self) -> bool {
                match self {
                    $(Self::$kind => $ours,)*
                }
            }
        }
    };
}

kinds! {
    /// labels of spans, tensors, statistics and gradients, each with how often it occurs
    Labels "labels" Labels Trace false,
    /// the spans with the most host time of their own inside the measured region
    SlowestHost "slowest-host" None Graph false,
    /// the spans that kept a device busy longest, each clock by itself
    SlowestDevice "slowest-device" None Graph false,
    /// the steps of a whole recording by how long they took
    SlowSteps "slow-steps" Rows Recording true,
    /// operations that produce activations, ranked by what each of them costs
    Activations "activations" None Trace false,
    /// the spans and the operations that allocated most
    Heaviest "heaviest" None Graph false,
    /// storage as the program allocates it, and memory as the devices report it
    Memory "memory" None Trace false,
    /// every span, operation and tensor as a node, with times and bytes; with --all the edges too
    Spans "spans" Labels Graph false,
    /// tensors, as they were seen
    Tensors "tensors" Labels Trace false,
    /// statistics of tensors, and scalars
    TensorStats "tensor-stats" Labels Trace false,
    /// what became of each parameter's gradient
    Gradients "gradients" Labels Trace false,
    /// how far each kind of question can be answered, and why not further
    Capabilities "capabilities" None Trace false,
    /// what is missing, why, when and how much of it
    Gaps "gaps" Rows Either true,
    /// whether reports of Nsight are there, and which
    GpuStatus "gpu-status" None Trace false,
    /// which of Nsight's ranges are which spans
    GpuCorrelation "gpu-correlation" None Trace false,
    /// time on the GPU by range, on Nsight's clock
    GpuPhases "gpu-phases" None Trace false,
    /// kernels by time on the GPU
    GpuKernels "gpu-kernels" None Trace false,
    /// what of Nsight's reports belongs to no span, and what belongs to one and is not there
    GpuAttributionGaps "gpu-attribution-gaps" None Trace false,
}

impl Kind {
    /// The question of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_are_all_different() {
        for (at, &kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(Kind::of(kind.name()), Some(kind));
            let same = |other: &&Kind| other.name() == kind.name();
            assert_eq!(Kind::ALL.iter().position(|other| same(&other)), Some(at));
            assert!(!kind.about().is_empty() && !kind.about().ends_with('.'));
        }
        assert_eq!(Kind::of("everything"), None);
    }
}
