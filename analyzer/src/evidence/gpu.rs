//! What is said of the GPU where nothing of Nsight was given.

use tmrun_formats::evidence::{
    Gpu, GpuBinding, GpuCorrelation, GpuCorrelationMode, GpuCoverage, GpuLedger, GpuProvenance,
    GpuStatus,
};

/// That nothing of Nsight was given.
#[must_use]
pub fn absent<'d>() -> Gpu<'d> {
    Gpu {
        status: GpuStatus::Unavailable,
        reason: Some("no reports of Nsight were given".into()),
        raw_report: None,
        source_csv: Vec::new(),
        provenance: GpuProvenance {
            binding: GpuBinding::Partial,
            manifest: None,
            diagnostics: vec![
                "there is no capture-manifest.json".into(),
                "without one, nothing says which trace the reports are of".into(),
            ],
        },
        coverage: GpuCoverage::default(),
        correlation: GpuCorrelation {
            mode: GpuCorrelationMode::None.into(),
            clock_aligned: false,
            complete: false,
            ledger: GpuLedger::default(),
            reason: Some("there is no projected range of Nsight".into()),
        },
        diagnostics: Vec::new(),
        limits: std::collections::BTreeMap::new(),
        kernels: Vec::new(),
        runtime_calls: Vec::new(),
        memory_operations: Vec::new(),
        nvtx_ranges: Vec::new(),
        gpu_timeline: Vec::new(),
        phase_attribution: Vec::new(),
    }
}
