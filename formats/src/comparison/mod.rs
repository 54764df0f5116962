//! What is said across bundles: `candle-graph/comparison/6`, `campaign/1`, `campaign-status/1` and
//! `series/1`.
//!
//! Guarantees:
//!
//! - A [`Comparison`] says in [`reasons`](Comparison::reasons) everything that made it ineligible; the
//!   codes are the closed set [`ComparisonCode`].
//! - A [`CampaignPlan`] that passes [`check`](CampaignPlan::check) plans every step and every bundle once.
//! - Labels, keys, their order and their `null`s are those of `candle-graph` 0.10.1; see
//!   [`published`](crate::published).
//!
//! ```
//! use tmrun_formats::comparison::{CampaignPlan, PlanFault};
//!
//! let text = r#"{"schema":"candle-graph/campaign/1","campaign_id":"c","entrypoint":"train","planned":[
//!     {"capture_step":1,"bundle":"step-1"},{"capture_step":1,"bundle":"step-1-again"}]}"#;
//! let plan: CampaignPlan<'_> = serde_json::from_str(text)?;
//! assert_eq!(plan.check(), Err(PlanFault::StepTwice { capture_step: 1 }));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod campaign;
mod code;
mod report;
mod series;
mod stats;

pub use campaign::{
    CampaignPlan, CampaignSchema, CampaignStatus, CampaignStatusSchema, CaptureState,
    CaptureStatus, PlanFault, PlannedCapture,
};
pub use code::{ComparisonCode, ComparisonReason};
pub use report::{
    Comparison, ComparisonInput, ComparisonInputs, ComparisonSchema, ComparisonVerdict,
    InputVerification, METRIC,
};
pub use series::{
    COORDINATE, Series, SeriesGradient, SeriesInput, SeriesSchema, SeriesStats, SeriesTime,
};
pub use stats::{ConfidenceInterval, SampleStatistics, TensorStatsComparison, TensorStatsRow};
