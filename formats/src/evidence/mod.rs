//! `candle-graph/evidence/5`: what one trace was found to say, each statement with what it rests on.
//!
//! Guarantees:
//!
//! - The types are those of `evidence.json`, one module a top-level key; nothing here derives them.
//! - [`Evidence`] reads back what it writes, and its text is that of `candle-graph` 0.10.1, key by key;
//!   see [`published`](crate::published) for what that promises.
//! - Health codes are one enumeration, [`HealthCode`], with the rule and the severity of each.
//! - A [`Graph`] is there only of a complete and structurally valid capture; a capability that is
//!   [`Invalid`](CapabilityLevel::Invalid) or [`Unavailable`](CapabilityLevel::Unavailable) says why.
//!
//! ```
//! use tmrun_formats::evidence::{Capability, CapabilityLevel, Fact, FactValue};
//!
//! let capability: Capability<'_> =
//!     serde_json::from_str(r#"{"level":"partial","source":"trace","reason":"no ops"}"#)?;
//! assert!(capability.level.is_available() && capability.level != CapabilityLevel::Complete);
//!
//! let fact = r#"{"code":"outer_wall_time","label":"Wall time","value":{"kind":"duration_ns","value":7},"source":"s1","capability":"outer_wall_time"}"#;
//! let read: Fact<'_> = serde_json::from_str(fact)?;
//! assert_eq!(read.value, FactValue::DurationNs(7));
//! assert_eq!(serde_json::to_string(&read)?, fact);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod activations;
mod capability;
mod claim;
mod gpu;
mod graph;
mod health;
mod memory;
mod packet;
mod stats;
mod timing;
mod totals;

pub use activations::{
    Activation, ActivationSource, ActivationTiming, Activations, ByteNanoseconds,
};
pub use capability::{Capabilities, Capability, CapabilityKind, CapabilityLevel};
pub use claim::{Fact, FactCode, FactValue, Finding, FindingCode};
pub use gpu::{
    Gpu, GpuArtifact, GpuBinding, GpuCapture, GpuCaptureCorrelation, GpuCaptureRun, GpuCaptureTool,
    GpuCorrelation, GpuCorrelationMode, GpuCoverage, GpuDuplicate, GpuHardware, GpuLedger,
    GpuPhase, GpuProvenance, GpuReportLimit, GpuRowKind, GpuStatus, GpuSummaryRow, GpuTimelineRow,
};
pub use graph::{
    Graph, GraphDeviceCost, GraphDeviceTiming, GraphEdge, GraphGradient, GraphHeavySpan,
    GraphHostCost, GraphNode, GraphNodeKind, GraphSchema, GraphScope, GraphSummary, GraphTensor,
};
pub use health::{Health, HealthCode, HealthCoverage, HealthIssue, HealthSeverity, SeverityRule};
pub use memory::{
    LogicalDeviceMemory, LogicalMemory, LogicalMemoryPeak, LogicalMemoryPoint, Memory,
    PhysicalDeviceMemory, PhysicalMemory, PhysicalMemoryPoint, StorageLifetime,
};
pub use packet::{Evidence, EvidenceSchema};
pub use stats::TensorStats;
pub use timing::{Timing, TimingClock, TimingSpan};
pub use totals::Totals;
