//! The rules that a record keeps or breaks by itself. Reader and writer hold the same.

use super::error::Refusal;
use super::{RunOutcome, TensorStats, Terminal};

pub(super) fn tensor_stats(stats: &TensorStats<'_>) -> Result<(), Refusal> {
    if stats.label.trim().is_empty() {
        return Err(Refusal::BlankLabel);
    }
    let (elements, non_finite) = (stats.elements, stats.non_finite);
    // No product of more than 64 bits, even if a later dimension is zero.
    let product = stats.shape.iter().try_fold(1, |product: u64, &dim| product.checked_mul(dim));
    if product != Some(elements) {
        return Err(Refusal::Elements { elements, product });
    }
    if non_finite > elements {
        return Err(Refusal::NonFiniteCount { non_finite, elements });
    }
    let least =
        [("rms", stats.rms, 0.0), ("abs_max", stats.abs_max, 0.0), ("mean", stats.mean, f64::MIN)];
    match least.into_iter().find(|(_, value, least)| !value.is_finite() || value < least) {
        Some((field, value, _)) => Err(Refusal::Statistic { field, value }),
        None => Ok(()),
    }
}

pub(super) fn terminal(terminal: &Terminal<'_>) -> Result<(), Refusal> {
    match (terminal.outcome, terminal.reason.as_deref()) {
        (RunOutcome::Complete, Some(_)) => Err(Refusal::ReasonOfComplete),
        (RunOutcome::Failed, reason) if reason.is_none_or(|reason| reason.trim().is_empty()) => {
            Err(Refusal::FailedWithoutReason)
        }
        _ => Ok(()),
    }
}
