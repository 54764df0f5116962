//! `candle-graph/trace/10`: one captured step of one run, as JSONL.

mod meta;
mod words;

pub use meta::{
    CaptureContract, ComparisonIdentity, ContractError, CoverageLevel, ExpectedGradient,
    GRADIENT_MANIFEST_SCHEMA, GradientContract, GradientContractError, GradientFamilyContract,
    GradientFamilyExpectation, IdentityError, LabelFault, MeasurementScope, RunError, TimingMode,
    TracePhase, TraceRun,
};
