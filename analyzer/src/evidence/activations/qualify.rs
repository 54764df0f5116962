//! How far the costs of activations can be compared.

use std::borrow::Cow;
use tmrun_formats::evidence::{Activation, Activations, Capabilities, Capability, CapabilityLevel};

/// Says of each cost how far it can be compared.
pub fn qualify<'d>(activations: &mut Activations<'d>, capabilities: &Capabilities<'d>) {
    let coverage = capabilities.activation_coverage.clone();
    let operations = &activations.operations;
    let lacking =
        |has: fn(&Activation<'_>) -> bool| operations.iter().filter(|op| !has(op)).count();

    activations.host_time = both("host times", &coverage, &capabilities.nested_host_time);

    let mut dense = coverage.clone();
    let unknown = lacking(|op| op.dense_output_bytes.is_some());
    lower(&mut dense, unknown, "operations whose output has no known size");

    let storages = &capabilities.logical_memory_coverage;
    let mut logical = both("storages", &coverage, storages);
    let strays = usize::try_from(activations.unattributed_activation_storages);
    let strays = strays.unwrap_or(usize::MAX);
    lower(&mut logical, strays, "storages of activations that belong to no single operation");
    let unknown = lacking(|op| op.logical_allocated_bytes.is_some());
    lower(&mut logical, unknown, "operations of whose storage nothing is known");

    let device = both("device times", &coverage, &capabilities.nested_device_time);
    activations.device_time = device_time(device, operations);
    activations.dense_output = dense;
    activations.logical_memory = logical;
    activations.coverage = coverage;
}

/// Device times count for operations that ran on a device, where the span holds nothing else.
fn device_time<'d>(mut state: Capability<'d>, operations: &[Activation<'_>]) -> Capability<'d> {
    if state.level == CapabilityLevel::Invalid {
        return state;
    }
    let on_device = operations.iter().filter(|op| !is_host(&op.device));
    let timed = on_device.clone().filter(|op| !op.device_timings.is_empty()).count();
    let on_device = on_device.count();
    if on_device == 0 {
        return Capability::unavailable(
            "no activation is produced on a device other than the host",
        );
    }
    if timed == 0 {
        return Capability::unavailable(
            "no activation on a device has a device_interval in a span of kind op that it has for \
             itself",
        );
    }
    let untimed = on_device.saturating_sub(timed);
    lower(
        &mut state,
        untimed,
        "operations on a device without a device_interval in a span of kind op of their own",
    );
    state
}

/// The processor, in any case of letters, with a number or without.
fn is_host(device: &str) -> bool {
    let is =
        |prefix: Option<&str>, word: &str| prefix.is_some_and(|it| it.eq_ignore_ascii_case(word));
    is(Some(device), "cpu") || is(device.get(..4), "cpu:")
}

/// What rests on two capabilities: no better than either.
fn both<'d>(what: &str, one: &Capability<'d>, other: &Capability<'d>) -> Capability<'d> {
    let states = [one, other];
    let find = |level| states.into_iter().find(|state| state.level == level);
    if let Some(invalid) = find(CapabilityLevel::Invalid) {
        let reason = Cow::Owned(format!("{what} of activations: {}", invalid.reason));
        return Capability { reason, ..invalid.clone() };
    }
    if let Some(absent) = find(CapabilityLevel::Unavailable) {
        return Capability::unavailable(format!("{what} of activations: {}", absent.reason));
    }
    let is_complete = states.iter().all(|state| state.level == CapabilityLevel::Complete);
    Capability {
        level: if is_complete { CapabilityLevel::Complete } else { CapabilityLevel::Partial },
        source: format!("{} + {}", one.source, other.source).into(),
        reason: format!("{what} of activations: {}; {}", one.reason, other.reason).into(),
    }
}

/// Takes completeness away where something is missing, and says what.
fn lower(state: &mut Capability<'_>, missing: usize, what: &str) {
    if missing == 0 {
        return;
    }
    if state.level == CapabilityLevel::Complete {
        state.level = CapabilityLevel::Partial;
    }
    state.reason = format!("{}; {missing} {what}", state.reason).into();
}
