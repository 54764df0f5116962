//! Of a `candle-graph/trace`, which is of one step.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use tmrun_formats::trace::{
    GradientContract, GradientFamilyExpectation, GradientState, SpanKind, TraceDocument,
};

use super::{Call, Severed, find, steps::Parameters};

/// Where the gradients that are missing in a trace likely stop. `contract` says which are missing by intent;
/// it is the trace's own, or what the run declared where the trace could not be held to it.
#[must_use]
pub fn of_trace(trace: &TraceDocument<'_>, contract: Option<&GradientContract>) -> Vec<Severed> {
    let frozen = contract.map_or_else(HashSet::new, frozen);
    let mut parameters = Parameters::default();
    for fact in &trace.gradients {
        if !frozen.contains(&(&*fact.root, &*fact.key)) {
            let is_missing = fact.state == GradientState::Missing;
            parameters.add(&fact.root, &fact.key, None, is_missing);
        }
    }
    parameters.in_each_step(|step, parameters| find(step, &calls(trace), parameters))
}

/// The parameters that should have no gradient.
fn frozen(contract: &GradientContract) -> HashSet<(&str, &str)> {
    let families = contract.families.iter();
    let inactive = families.filter(|it| it.expectation == GradientFamilyExpectation::Inactive);
    let inactive: HashSet<&str> = inactive.map(|family| &*family.family).collect();
    let expected = contract.expected.iter().filter(|it| inactive.contains(&*it.family));
    expected.map(|it| (&*it.root, &*it.key)).collect()
}

/// The operations in the order in which they ended. The layer of one is the module that it was recorded
/// within, else what its output is called.
fn calls<'t>(trace: &'t TraceDocument<'_>) -> Vec<Call<'t, &'t str>> {
    let mut outputs: HashMap<&str, (bool, Option<&str>)> = HashMap::new();
    for tensor in &trace.tensors {
        outputs.insert(&tensor.tensor_id, (tensor.requires_grad, tensor.label.as_deref()));
    }
    let mut ops: Vec<_> = trace.ops.iter().collect();
    // What is within another ends with it at the latest, and began later.
    ops.sort_by_key(|op| {
        (op.timestamp_ns.saturating_add(op.duration_ns), Reverse(op.timestamp_ns))
    });
    let call = |op: &'t tmrun_formats::trace::Op<'_>| {
        let span = trace.span(&op.span_id);
        let module = span.filter(|span| span.kind == SpanKind::Module).map(|span| &*span.name);
        let output = op.output.as_deref();
        let seen = output.and_then(|output| outputs.get(output));
        let label = seen.and_then(|(_, label)| *label);
        let layer = module.or(label).or(span.map(|span| &*span.name))?;
        let tracked = seen.map(|(tracked, _)| *tracked);
        let inputs = op.inputs.iter().map(|input| &**input).collect();
        Some(Call { layer, op: &op.op_name, inputs, output, tracked })
    };
    ops.into_iter().filter_map(call).collect()
}
