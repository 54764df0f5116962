//! What a runtime trace says twice, and differently.
//!
//! - Facts that contradict each other are reported with confidence `unknown`, and neither wins:
//!   [`agreed_tensor`] and [`agreed_gradient`] then answer `None`.
//! - An identity that is not the expected one is reported, and so is one that could not be compared.
//! - The keys of `candle-graph`'s audit mean here what they mean there; [`Extra`] holds what it does
//!   not look at: two facts of one gradient at the same step, every parameter that was ever not
//!   finite and since when, values that were not finite, recorded gaps.
//! - The audit is over an accepted [`RuntimeDocument`]; whether a file is accepted is the reader's
//!   answer and no finding.
//!
//! ```
//! use tmrun::audit::{agreed_gradient, audit};
//! use tmrun_formats::runtime::parse;
//!
//! let trace = parse(concat!(
//!     r#"{"schema":"candle-graph/runtime/3","run":{"entrypoint":"train","profile":"release"},"#,
//!     r#""gradients":[{"event_id":"a","root":"vb","key":"w","state":"present","norm":1.0,"step":3},"#,
//!     r#"{"event_id":"b","root":"vb","key":"w","state":"non_finite","step":3}]}"#,
//! ))?;
//! let report = audit(&trace, None);
//! assert!(report.gradient_conflicts.is_empty(), "a series is no conflict to the neighbour");
//! assert_eq!(report.extra.same_step_gradient_conflicts.len(), 1);
//! assert_eq!(report.extra.earliest_non_finite_step, Some(3));
//! assert_eq!(agreed_gradient(&trace, "vb", "w"), None);
//! # Ok::<(), tmrun_formats::runtime::ReadError>(())
//! ```

mod extra;
mod gradients;
mod identity;
mod report;
mod tensors;
mod text;

pub use extra::{Extra, NonFiniteParameter, NonFiniteValue, ParameterWithout, SameStepConflict};
pub use gradients::agreed_gradient;
pub use identity::{ExpectedIdentity, IdentityField, IdentityMismatch, check_identity};
pub use report::{
    AuditReport, GradientConflict, ObservationConfidence, ParamIdentity, TensorConflict,
    TensorConflictKind,
};
pub use tensors::agreed_tensor;

use tmrun_formats::runtime::RuntimeDocument;

/// Looks at everything. `expected` is the identity that the trace should carry, if there is one.
#[must_use]
pub fn audit(trace: &RuntimeDocument, expected: Option<&ExpectedIdentity>) -> AuditReport {
    let groups = gradients::by_parameter(trace);
    let gradient_conflicts = gradients::conflicts(&groups);
    let settled = gradients::settled(&groups, &gradient_conflicts);
    let extra = extra::look(trace, &groups, &settled, expected);
    AuditReport {
        missing_gradients: settled.missing,
        non_finite_gradients: settled.non_finite,
        zero_gradients: settled.zero,
        tensor_conflicts: tensors::conflicts(trace),
        gradient_conflicts,
        identity_mismatches: expected.map_or_else(Vec::new, |it| check_identity(trace, it)),
        first_non_finite_step: gradients::first_non_finite_step(trace),
        saturating_activations: extra::saturating(trace),
        extra,
    }
}
