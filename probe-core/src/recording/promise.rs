//! What a run promises, as frames: the contract of its capture, and what makes it comparable.

use tmrun_formats::trace::{
    CaptureContract, ComparisonIdentity, CoverageLevel, GradientFamilyExpectation, MeasurementScope,
};
use tmrun_formats::wire::{
    ComparisonIdentityV1, ContractV1, Frame, GradientEntryV1, GradientFamilyV1, LabelV1,
};

/// Hands the frames of a contract to `each`: the contract, then its lists, each in order.
pub(super) fn contract_frames<'c>(contract: &'c CaptureContract, each: impl FnMut(Frame<'c>)) {
    let labels = contract.required_semantic_labels.iter();
    let labels = labels.map(|text| Frame::Label(LabelV1 { text, list: list_of(contract, text) }));
    let gradients = contract.gradient_contract.as_ref();
    let entries = gradients.into_iter().flat_map(|gradients| &gradients.expected);
    let entries = entries.map(|entry| {
        let (root, key, family) = (&entry.root, &entry.key, &entry.family);
        Frame::GradientEntry(GradientEntryV1 { root, key, family })
    });
    let families = gradients.into_iter().flat_map(|gradients| &gradients.families);
    let families = families.map(|family| {
        Frame::GradientFamily(GradientFamilyV1 {
            family: &family.family,
            expectation: expectation(family.expectation),
            min_present: family.min_present as u64,
        })
    });
    core::iter::once(Frame::Contract(levels(contract)))
        .chain(labels)
        .chain(entries)
        .chain(families)
        .for_each(each);
}

fn levels(contract: &CaptureContract) -> ContractV1 {
    ContractV1 {
        measurement_scope: match contract.measurement_scope {
            MeasurementScope::Unknown => 0,
            MeasurementScope::ProfiledWork => 1,
            MeasurementScope::ProductionEquivalent => 2,
        },
        operations: coverage(contract.operations),
        activations: coverage(contract.activations),
        tensors: coverage(contract.tensors),
        gradients: coverage(contract.gradients),
        logical_memory: coverage(contract.logical_memory),
        physical_memory: coverage(contract.physical_memory),
        device_timing: coverage(contract.device_timing),
    }
}

const fn coverage(level: CoverageLevel) -> u8 {
    match level {
        CoverageLevel::None => 0,
        CoverageLevel::Partial => 1,
        CoverageLevel::Complete => 2,
    }
}

const fn expectation(expectation: GradientFamilyExpectation) -> u8 {
    match expectation {
        GradientFamilyExpectation::Active => 0,
        GradientFamilyExpectation::Inactive => 1,
        GradientFamilyExpectation::DataConditional => 2,
    }
}

/// The list that a required label is in. (The contract was checked: in one, or both are empty.)
fn list_of(contract: &CaptureContract, label: &String) -> u8 {
    if contract.gpu_expected_semantic_labels.contains(label) {
        1
    } else if contract.cpu_only_semantic_labels.contains(label) {
        2
    } else {
        0
    }
}

/// The frame of an identity.
pub(super) fn identity_frame(identity: &ComparisonIdentity) -> Frame<'_> {
    Frame::ComparisonIdentity(ComparisonIdentityV1 {
        implementation_id: identity.implementation_id.as_deref(),
        workload_id: &identity.workload_id,
        model_id: &identity.model_id,
        config_id: &identity.config_id,
        data_id: &identity.data_id,
        seed_policy: &identity.seed_policy,
        physical_batch: identity.physical_batch,
        accumulation_steps: identity.accumulation_steps,
        precision: &identity.precision,
        device_state: &identity.device_state,
        pair_id: identity.pair_id.as_deref(),
    })
}
