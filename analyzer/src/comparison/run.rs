//! One run, without its trace.

use tmrun_formats::evidence::{HealthCode, HealthSeverity};
use tmrun_formats::trace::{RunOutcome, TraceDocument, TraceRun};

use crate::bundle::AnnexRefuted;
use crate::evidence::{EvidenceError, Index, health};

/// One run, reduced to what a comparison looks at.
#[derive(Debug, Clone)]
pub struct Run {
    /// What its first line says.
    pub(super) meta: TraceRun,
    /// What makes it structurally invalid: each code once, in the order of its issues.
    pub(super) errors: Vec<HealthCode>,
    /// Why it failed, if it did.
    pub(super) failed: Option<String>,
    /// How long each measured region took that ended.
    pub(super) measured: Vec<u64>,
    /// Its statistics, in the order of the file.
    pub(super) stats: Vec<Stats>,
    /// What its bundle says was promised and is not kept.
    pub(super) refuted: Vec<AnnexRefuted<'static>>,
}

/// What a comparison looks at of one event of statistics.
#[derive(Debug, Clone)]
pub(super) struct Stats {
    pub(super) label: String,
    pub(super) rms: f64,
    pub(super) abs_max: f64,
    pub(super) non_finite: u64,
}

impl Run {
    /// Reduces a trace.
    ///
    /// # Errors
    /// A trace of too many events.
    pub fn of(trace: &TraceDocument<'_>) -> Result<Self, EvidenceError> {
        let health = health::of(trace, &Index::of(trace)?);
        let mut errors = Vec::new();
        for (code, severity) in health::codes(&health) {
            if severity == HealthSeverity::Error && !errors.contains(&code) {
                errors.push(code);
            }
        }
        let stats = trace.tensor_stats.iter().map(|stats| Stats {
            label: stats.label.clone().into_owned(),
            rms: stats.rms,
            abs_max: stats.abs_max,
            non_finite: stats.non_finite,
        });
        Ok(Self {
            meta: trace.run.clone(),
            errors,
            failed: (trace.terminal.outcome == RunOutcome::Failed)
                .then(|| trace.terminal.reason.as_deref().unwrap_or_default().to_owned()),
            measured: measured(trace).collect(),
            stats: stats.collect(),
            refuted: Vec::new(),
        })
    }

    /// Adds what its bundle says was refuted, for messages.
    #[must_use]
    pub fn with_refuted(self, refuted: Vec<AnnexRefuted<'static>>) -> Self {
        Self { refuted, ..self }
    }
}

/// How long each measured region took that ended, in the order of the spans' ids.
pub(crate) fn measured(trace: &TraceDocument<'_>) -> impl Iterator<Item = u64> {
    let spans = trace.by_id.iter().filter_map(|&span| trace.spans.get(span));
    spans.filter(|span| span.measured).filter_map(|span| span.duration_ns)
}
