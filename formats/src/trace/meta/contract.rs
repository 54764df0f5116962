//! How much of each plane a capture observes.

use super::GradientContract;
use super::error::{ContractError, LabelFault, is_blank};
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

words! {
    /// How much of a plane is observed, from least to most.
    #[derive(Default)]
    CoverageLevel {
        /// Nothing.
        #[default]
        None "none",
        /// Some of it.
        Partial "partial",
        /// All of it.
        Complete "complete",
    }
}

words! {
    /// What the captured step is a measurement of.
    #[derive(Default)]
    MeasurementScope {
        /// Nobody says.
        #[default]
        Unknown "unknown",
        /// The step with what profiling adds.
        ProfiledWork "profiled_work",
        /// The step as it runs in production.
        ProductionEquivalent "production_equivalent",
    }
}

/// How much of each plane a capture promises to observe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureContract {
    /// What the captured step is a measurement of.
    pub measurement_scope: MeasurementScope,
    /// Operations.
    pub operations: CoverageLevel,
    /// Operations whose output is an activation; all of them when each such output is also known as
    /// a tensor or an allocation.
    #[serde(default)]
    pub activations: CoverageLevel,
    /// Tensors.
    #[serde(default)]
    pub tensors: CoverageLevel,
    /// Gradients.
    #[serde(default)]
    pub gradients: CoverageLevel,
    /// Which gradients all of them are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_contract: Option<GradientContract>,
    /// Lifetimes of storages.
    pub logical_memory: CoverageLevel,
    /// Memory in use on the devices.
    pub physical_memory: CoverageLevel,
    /// Intervals on device clocks.
    pub device_timing: CoverageLevel,
    /// Names of spans, each of which is to be there once.
    #[serde(default)]
    pub required_semantic_labels: Vec<String>,
    /// Those of them that are to be seen on the GPU; all, when neither list has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_expected_semantic_labels: Vec<String>,
    /// Those of them that are not to be seen there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_only_semantic_labels: Vec<String>,
}

impl CaptureContract {
    /// Holds what a writer must hold before it opens a trace.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn check(&self) -> Result<(), ContractError> {
        self.check_labels()?;
        if let Some(error) = self.activations_fault() {
            return Err(error);
        }
        match (self.gradients, &self.gradient_contract) {
            (CoverageLevel::Complete, Some(contract)) => Ok(contract.check()?),
            (CoverageLevel::Complete, None) => Err(ContractError::NoGradientContract),
            (gradients, Some(_)) => Err(ContractError::UnusedGradientContract { gradients }),
            (_, None) => Ok(()),
        }
    }

    /// Why complete coverage of activations is not possible with the rest of the contract.
    #[must_use]
    pub fn activations_fault(&self) -> Option<ContractError> {
        if self.activations != CoverageLevel::Complete {
            return None;
        }
        if self.operations != CoverageLevel::Complete {
            return Some(ContractError::ActivationsWithoutOperations {
                operations: self.operations,
            });
        }
        let linked = self.tensors.max(self.logical_memory);
        (linked == CoverageLevel::None).then_some(ContractError::ActivationsWithoutTensors)
    }

    /// The required labels that are to be seen on the GPU.
    #[must_use]
    pub fn gpu_expected(&self) -> &[String] {
        if self.gpu_expected_semantic_labels.is_empty() && self.cpu_only_semantic_labels.is_empty()
        {
            &self.required_semantic_labels
        } else {
            &self.gpu_expected_semantic_labels
        }
    }

    fn check_labels(&self) -> Result<(), ContractError> {
        let required = distinct("required_semantic_labels", &self.required_semantic_labels)?;
        let gpu = ("gpu_expected_semantic_labels", &self.gpu_expected_semantic_labels);
        let cpu = ("cpu_only_semantic_labels", &self.cpu_only_semantic_labels);
        if gpu.1.is_empty() && cpu.1.is_empty() {
            return Ok(());
        }
        let mut classified = BTreeSet::new();
        for (list, labels) in [gpu, cpu] {
            for label in distinct(list, labels)? {
                let fault = if !required.contains(label) {
                    LabelFault::NotRequired
                } else if !classified.insert(label) {
                    LabelFault::InBoth
                } else {
                    continue;
                };
                return Err(ContractError::Label { list, label: label.to_owned(), fault });
            }
        }
        match required.difference(&classified).next() {
            Some(&label) => Err(ContractError::Unclassified { label: label.to_owned() }),
            None => Ok(()),
        }
    }
}

/// The labels of a list, none of which is blank or there twice.
fn distinct<'a>(
    list: &'static str,
    labels: &'a [String],
) -> Result<BTreeSet<&'a str>, ContractError> {
    let mut distinct = BTreeSet::new();
    for label in labels {
        let fault = if is_blank(label) {
            LabelFault::Blank
        } else if !distinct.insert(label.as_str()) {
            LabelFault::Twice
        } else {
            continue;
        };
        return Err(ContractError::Label { list, label: label.clone(), fault });
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|&label| label.to_owned()).collect()
    }

    fn fault(contract: &CaptureContract) -> Option<LabelFault> {
        match contract.check() {
            Err(ContractError::Label { fault, .. }) => Some(fault),
            _ => None,
        }
    }

    #[test]
    fn coverage_is_ordered_from_none_to_complete() {
        assert!(CoverageLevel::ALL.is_sorted());
        assert_eq!(CoverageLevel::ALL.first(), Some(&CoverageLevel::default()));
    }

    #[test]
    fn the_labels_of_both_classes_are_the_required_ones() {
        let mut contract =
            CaptureContract { required_semantic_labels: labels(&["a", "b"]), ..Default::default() };
        assert_eq!(contract.check(), Ok(()));
        assert_eq!(contract.gpu_expected(), ["a", "b"], "no class means the GPU's");
        contract.cpu_only_semantic_labels = labels(&["b"]);
        assert_eq!(contract.check(), Err(ContractError::Unclassified { label: "a".into() }));
        contract.gpu_expected_semantic_labels = labels(&["a"]);
        assert_eq!(contract.check(), Ok(()));
        assert_eq!(contract.gpu_expected(), ["a"]);
        contract.cpu_only_semantic_labels = labels(&["a", "b"]);
        assert_eq!(fault(&contract), Some(LabelFault::InBoth));
        contract.cpu_only_semantic_labels = labels(&["b", "c"]);
        assert_eq!(fault(&contract), Some(LabelFault::NotRequired));
        contract.cpu_only_semantic_labels = labels(&["b", "b"]);
        assert_eq!(fault(&contract), Some(LabelFault::Twice));
        contract.required_semantic_labels = labels(&["a", " \u{a0}"]);
        assert_eq!(fault(&contract), Some(LabelFault::Blank));
    }

    #[test]
    fn complete_activations_need_operations_and_tensors_or_storages() {
        let mut contract =
            CaptureContract { activations: CoverageLevel::Complete, ..Default::default() };
        let operations = CoverageLevel::None;
        let without = ContractError::ActivationsWithoutOperations { operations };
        assert_eq!(contract.check(), Err(without));
        contract.operations = CoverageLevel::Complete;
        assert_eq!(contract.check(), Err(ContractError::ActivationsWithoutTensors));
        contract.logical_memory = CoverageLevel::Partial;
        assert_eq!(contract.check(), Ok(()));
    }

    #[test]
    fn complete_gradients_and_their_contract_go_together() {
        let contract = CaptureContract { gradients: CoverageLevel::Complete, ..Default::default() };
        assert_eq!(contract.check(), Err(ContractError::NoGradientContract));
    }
}
