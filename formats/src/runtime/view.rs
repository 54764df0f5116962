//! Observations in borrowed form: what the encoder takes, so that a bulk converter allocates no
//! string.

use super::{
    EdgeTimingObservation, GradientFact, GradientState, OperationObservation, TensorObservation,
    ValueObservation,
};

/// A dimension of a shape.
pub trait Dim: Copy {
    /// The number.
    fn dim(self) -> u64;
}

impl Dim for u64 {
    fn dim(self) -> u64 {
        self
    }
}

impl Dim for u32 {
    fn dim(self) -> u64 {
        u64::from(self)
    }
}

impl Dim for usize {
    fn dim(self) -> u64 {
        self as u64
    }
}

/// A borrowed [`TensorObservation`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the owned type")]
pub struct TensorRef<'a, D = u64> {
    pub event_id: &'a str,
    pub static_id: Option<&'a str>,
    pub source: Option<&'a str>,
    pub step: Option<u64>,
    pub shape: &'a [D],
    pub dtype: &'a str,
    pub device: &'a str,
    pub contiguous: bool,
    pub requires_grad: bool,
    pub storage_id: Option<&'a str>,
}

/// A borrowed [`OperationObservation`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the owned type")]
pub struct OperationRef<'a, S = &'a str> {
    pub event_id: &'a str,
    pub op: &'a str,
    pub static_id: Option<&'a str>,
    pub source: Option<&'a str>,
    pub inputs: &'a [S],
    pub output: Option<&'a str>,
    pub step: Option<u64>,
    pub duration_ns: Option<u64>,
}

/// A borrowed [`GradientFact`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the owned type")]
pub struct GradientRef<'a> {
    pub event_id: &'a str,
    pub root: &'a str,
    pub key: &'a str,
    pub state: GradientState,
    pub step: Option<u64>,
    pub norm: Option<f64>,
}

/// A borrowed [`ValueObservation`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the owned type")]
pub struct ValueRef<'a> {
    pub event_id: &'a str,
    pub static_id: Option<&'a str>,
    pub source: Option<&'a str>,
    pub step: Option<u64>,
    pub min: f64,
    pub max: f64,
    pub abs_max: f64,
    pub nonfinite_count: u64,
    pub saturated_count: u64,
}

/// A borrowed [`EdgeTimingObservation`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the owned type")]
pub struct EdgeTimingRef<'a> {
    pub event_id: &'a str,
    pub from_static_id: &'a str,
    pub to_static_id: &'a str,
    pub duration_ns: u64,
    pub step: Option<u64>,
}

impl<'a> From<&'a TensorObservation> for TensorRef<'a, usize> {
    fn from(owned: &'a TensorObservation) -> Self {
        TensorRef {
            event_id: &owned.event_id,
            static_id: owned.static_id.as_deref(),
            source: owned.source.as_deref(),
            step: owned.step,
            shape: &owned.shape,
            dtype: &owned.dtype,
            device: &owned.device,
            contiguous: owned.contiguous,
            requires_grad: owned.requires_grad,
            storage_id: owned.storage_id.as_deref(),
        }
    }
}

impl<'a> From<&'a OperationObservation> for OperationRef<'a, String> {
    fn from(owned: &'a OperationObservation) -> Self {
        OperationRef {
            event_id: &owned.event_id,
            op: &owned.op,
            static_id: owned.static_id.as_deref(),
            source: owned.source.as_deref(),
            inputs: &owned.inputs,
            output: owned.output.as_deref(),
            step: owned.step,
            duration_ns: owned.duration_ns,
        }
    }
}

impl<'a> From<&'a GradientFact> for GradientRef<'a> {
    fn from(owned: &'a GradientFact) -> Self {
        GradientRef {
            event_id: &owned.event_id,
            root: &owned.root,
            key: &owned.key,
            state: owned.state,
            step: owned.step,
            norm: owned.norm,
        }
    }
}

impl<'a> From<&'a ValueObservation> for ValueRef<'a> {
    fn from(owned: &'a ValueObservation) -> Self {
        ValueRef {
            event_id: &owned.event_id,
            static_id: owned.static_id.as_deref(),
            source: owned.source.as_deref(),
            step: owned.step,
            min: owned.min,
            max: owned.max,
            abs_max: owned.abs_max,
            nonfinite_count: owned.nonfinite_count,
            saturated_count: owned.saturated_count,
        }
    }
}

impl<'a> From<&'a EdgeTimingObservation> for EdgeTimingRef<'a> {
    fn from(owned: &'a EdgeTimingObservation) -> Self {
        EdgeTimingRef {
            event_id: &owned.event_id,
            from_static_id: &owned.from_static_id,
            to_static_id: &owned.to_static_id,
            duration_ns: owned.duration_ns,
            step: owned.step,
        }
    }
}
