//! Of `candle-graph/runtime` JSON, from anyone.

use std::collections::{BTreeMap, HashMap};

use tmrun_formats::runtime::{GradientState, OperationObservation, RuntimeDocument};

use super::{Call, Severed, find, steps::Parameters};

/// Where the gradients of parameters that never had one likely stop. The order of operations is that of
/// their ids. (What the run declared of its gradients is not in such a document: parameters that are frozen
/// by intent, before a layer that cuts, look like others.)
#[must_use]
pub fn of_runtime(trace: &RuntimeDocument) -> Vec<Severed> {
    let mut parameters = Parameters::default();
    for fact in &trace.gradients {
        let is_missing = fact.state == GradientState::Missing;
        parameters.add(&fact.root, &fact.key, fact.step, is_missing);
    }
    let tracked = tracked(trace);
    let mut calls: BTreeMap<Option<u64>, Vec<Call<'_, &str>>> = BTreeMap::new();
    for op in &trace.operations {
        if let Some(call) = call(op, &tracked) {
            calls.entry(op.step).or_default().push(call);
        }
    }
    parameters.in_each_step(|step, parameters| {
        find(step, calls.get(&step).map_or(&[][..], |calls| calls), parameters)
    })
}

/// By step and layer, whether the layer's outputs were on the way to a gradient; `None` where some were and
/// some not.
type Tracked<'a> = HashMap<(Option<u64>, &'a str), Option<bool>>;

fn call<'a>(op: &'a OperationObservation, tracked: &Tracked<'_>) -> Option<Call<'a, &'a str>> {
    let layer = op.static_id.as_deref().or(op.source.as_deref())?;
    Some(Call {
        layer,
        op: &op.op,
        inputs: op.inputs.iter().map(String::as_str).collect(),
        output: op.output.as_deref(),
        tracked: tracked.get(&(op.step, layer)).copied().flatten(),
    })
}

fn tracked(trace: &RuntimeDocument) -> Tracked<'_> {
    let mut tracked = Tracked::new();
    for tensor in &trace.tensors {
        let Some(layer) = tensor.static_id.as_deref().or(tensor.source.as_deref()) else {
            continue;
        };
        let all = tracked.entry((tensor.step, layer)).or_insert(Some(tensor.requires_grad));
        if *all != Some(tensor.requires_grad) {
            *all = None;
        }
    }
    tracked
}
