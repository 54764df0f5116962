//! Activations, ranked by each of their costs.

use serde_json::{Value, json};
use tmrun_formats::evidence::{Activation, ActivationTiming, Activations};

use super::page::Bounded;

/// Rows of a ranking.
const ROWS: usize = 50;

pub(super) fn of(profile: &Activations<'_>) -> Value {
    json!({
        "definition": profile.definition,
        "observed_activation_operations": profile.operations.len(),
        "unattributed_activation_storages": profile.unattributed_activation_storages,
        "qualifications": {
            "coverage": profile.coverage,
            "host_time": profile.host_time,
            "device_time": profile.device_time,
            "dense_output": profile.dense_output,
            "logical_memory": profile.logical_memory,
            "physical_memory_attribution": profile.physical_memory_attribution,
        },
        "rankings": {
            "observed_host_duration_ns": top(profile, |op| Some(op.observed_host_duration_ns)),
            "device_busy_ns_by_clock": by_clock(profile),
            "dense_output_bytes": top(profile, |op| op.dense_output_bytes),
            "logical_allocated_bytes": top(profile, |op| op.logical_allocated_bytes),
            "logical_byte_nanoseconds": top(profile, |op| op.logical_byte_nanoseconds),
        },
    })
}

/// The operations that have a cost, the greatest first; among equal ones by id.
pub(super) fn ranked<'p, 'e, K: Ord>(
    profile: &'p Activations<'e>,
    cost: impl Fn(&Activation<'e>) -> Option<K>,
) -> Vec<&'p Activation<'e>> {
    let of = |one| Some((cost(one)?, one));
    let mut rows: Vec<(K, &Activation<'_>)> = profile.operations.iter().filter_map(of).collect();
    rows.sort_by(|(left, a), (right, b)| right.cmp(left).then_with(|| a.id.cmp(&b.id)));
    rows.into_iter().map(|(_, one)| one).collect()
}

fn top<'p, 'e, K: Ord>(
    profile: &'p Activations<'e>,
    cost: impl Fn(&Activation<'e>) -> Option<K>,
) -> Bounded<&'p Activation<'e>> {
    Bounded::of(ranked(profile, cost), ROWS)
}

fn by_clock(profile: &Activations<'_>) -> Bounded<Value> {
    let timings = profile.operations.iter();
    let timings = timings.flat_map(|one| one.device_timings.iter().map(move |time| (one, time)));
    let mut rows: Vec<(&Activation<'_>, &ActivationTiming<'_>)> = timings.collect();
    rows.sort_by(|(left, a), (right, b)| {
        (b.busy_ns, &left.id, &a.device, &a.clock_id).cmp(&(
            a.busy_ns,
            &right.id,
            &b.device,
            &b.clock_id,
        ))
    });
    let row = |(one, time)| json!({ "operation": one, "timing": time });
    Bounded::of(rows.into_iter().map(row), ROWS)
}
