//! `candle-graph/trace/10`: one captured step of one run, as JSONL.

mod meta;
mod words;

pub use meta::{
    CaptureContract, ComparisonIdentity, ContractError, CoverageLevel, ExpectedGradient,
    GRADIENT_MANIFEST_SCHEMA, GradientContract, GradientContractError, GradientFamilyContract,
    GradientFamilyExpectation, IdentityError, LabelFault, MeasurementScope, RunError, TimingMode,
    TracePhase, TraceRun,
};

words::words! {
    /// What a tensor or a storage is for.
    #[derive(Default)]
    MemoryCategory {
        /// A trained parameter.
        Parameter "parameter",
        /// An activation.
        Activation "activation",
        /// A gradient.
        Gradient "gradient",
        /// State of the optimizer.
        Optimizer "optimizer",
        /// Anything else.
        #[default]
        Other "other",
    }
}
