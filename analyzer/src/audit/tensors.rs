//! Observations of one static tensor that differ.

use super::report::{ObservationConfidence, TensorConflict, TensorConflictKind};
use std::collections::{BTreeMap, BTreeSet};
use tmrun_formats::runtime::{RuntimeDocument, TensorObservation};

/// One way two observations can differ, and how the value is shown.
type Attribute = (TensorConflictKind, fn(&TensorObservation) -> String);

const ATTRIBUTES: [Attribute; 5] = [
    (TensorConflictKind::Dtype, |tensor| tensor.dtype.clone()),
    (TensorConflictKind::Device, |tensor| tensor.device.clone()),
    (TensorConflictKind::Shape, |tensor| format!("{:?}", tensor.shape)),
    (TensorConflictKind::Layout, |tensor| tensor.contiguous.to_string()),
    (TensorConflictKind::RequiresGrad, |tensor| tensor.requires_grad.to_string()),
];

/// One conflict for each attribute of a static tensor that has more than one value. Steps make no
/// difference: a shape that changes with the step conflicts.
pub(super) fn conflicts(trace: &RuntimeDocument) -> Vec<TensorConflict> {
    let mut conflicts = Vec::new();
    for (static_id, group) in by_static_id(trace) {
        if agree(&group) {
            continue;
        }
        for (kind, show) in ATTRIBUTES {
            let values: BTreeSet<String> = group.iter().map(|tensor| show(tensor)).collect();
            if values.len() > 1 {
                conflicts.push(TensorConflict {
                    static_id: static_id.to_owned(),
                    kind,
                    values: values.into_iter().collect(),
                    confidence: ObservationConfidence::Unknown,
                });
            }
        }
    }
    conflicts
}

/// The static tensors whose conflicts are all between steps: within a step their observations agree,
/// as with a smaller last batch.
pub(super) fn varying_by_step(trace: &RuntimeDocument) -> Vec<String> {
    let mut varying = Vec::new();
    for (static_id, group) in by_static_id(trace) {
        if agree(&group) || group.iter().any(|tensor| tensor.step.is_none()) {
            continue;
        }
        let mut steps: BTreeMap<Option<u64>, Vec<&TensorObservation>> = BTreeMap::new();
        for tensor in group {
            steps.entry(tensor.step).or_default().push(tensor);
        }
        if steps.values().all(|group| agree(group)) {
            varying.push(static_id.to_owned());
        }
    }
    varying
}

/// What is known of a static tensor: its first observation if every one says the same, and `None` if
/// there is none or they conflict.
#[must_use]
pub fn agreed_tensor<'a>(
    trace: &'a RuntimeDocument,
    static_id: &str,
) -> Option<&'a TensorObservation> {
    let mut group = trace.tensors.iter().filter(|it| it.static_id.as_deref() == Some(static_id));
    let first = group.next()?;
    group.all(|other| same(first, other)).then_some(first)
}

fn by_static_id(trace: &RuntimeDocument) -> BTreeMap<&str, Vec<&TensorObservation>> {
    let mut groups: BTreeMap<&str, Vec<&TensorObservation>> = BTreeMap::new();
    for tensor in &trace.tensors {
        if let Some(static_id) = tensor.static_id.as_deref() {
            groups.entry(static_id).or_default().push(tensor);
        }
    }
    groups
}

fn agree(group: &[&TensorObservation]) -> bool {
    group.windows(2).all(|pair| match pair {
        [first, second] => same(first, second),
        _ => true,
    })
}

/// Whether two observations agree in every attribute above; no text is made for that.
fn same(first: &TensorObservation, second: &TensorObservation) -> bool {
    first.dtype == second.dtype
        && first.device == second.device
        && first.shape == second.shape
        && first.contiguous == second.contiguous
        && first.requires_grad == second.requires_grad
}
