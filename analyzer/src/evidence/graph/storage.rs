//! Storage of spans and operations.

use super::super::Index;
use super::super::memory::{Lifetimes, Named};
use super::peaks::{self, Peak};
use tmrun_formats::trace::{CoverageLevel, TraceDocument};

/// What is known of the storage of each node; nothing of what was not observed, unless all of it is
/// declared to be there.
pub(super) struct Storage {
    /// What was allocated in each span itself.
    pub spans: Vec<Option<u64>>,
    /// What was allocated by each operation.
    pub ops: Vec<Option<u64>>,
    /// What was live of each span and what hangs under it.
    pub peaks: Vec<Option<Peak>>,
}

impl Storage {
    pub fn of(trace: &TraceDocument<'_>, index: &Index<'_>, lifetimes: &Lifetimes) -> Self {
        let spans = trace.spans.len();
        let mut storage = Self {
            spans: vec![None; spans],
            ops: vec![None; trace.ops.len()],
            peaks: vec![None; spans],
        };
        if trace.memory.is_empty() {
            return storage;
        }
        storage.peaks = peaks::of(trace, index, lifetimes);
        if trace.run.capture_contract.logical_memory == CoverageLevel::Complete {
            storage.spans.fill(Some(0));
            for (peak, span) in storage.peaks.iter_mut().zip(&trace.spans) {
                *peak = peak.or(span.duration_ns.map(|_| Peak::default()));
            }
        }
        for lifetime in &lifetimes.all {
            if let Some(bytes) = lifetime.span.get().and_then(|span| storage.spans.get_mut(span)) {
                *bytes = Some(bytes.unwrap_or(0).saturating_add(lifetime.bytes));
            }
            if let Named::One(op) = lifetime.named
                && let Some(bytes) = storage.ops.get_mut(op as usize)
            {
                *bytes = Some(bytes.unwrap_or(0).saturating_add(lifetime.bytes));
            }
        }
        storage
    }

    pub fn peak(&self, span: usize) -> Option<Peak> {
        self.peaks.get(span).copied().flatten()
    }

    pub fn of_span(&self, span: usize) -> Option<u64> {
        self.spans.get(span).copied().flatten()
    }
}
