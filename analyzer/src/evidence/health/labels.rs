//! The contract's labels, each the name of one span.

use super::{HealthCode, Issues, Subject};
use std::collections::{HashMap, HashSet};

/// Each required label is the name of exactly one span.
pub(super) fn check_required(subject: &Subject<'_>, issues: &mut Issues) {
    let required = &subject.trace.run.capture_contract.required_semantic_labels;
    let mut counts: HashMap<&str, u64> = required.iter().map(|label| (&**label, 0)).collect();
    if !counts.is_empty() {
        for span in &subject.trace.spans {
            if let Some(count) = counts.get_mut(&*span.name) {
                *count = count.saturating_add(1);
            }
        }
    }
    let mut declared = HashSet::new();
    for label in required {
        if label.trim().is_empty() {
            let message = "required_semantic_labels: one is blank: expected the name of a span";
            issues.add(HealthCode::EmptyRequiredSemanticLabel, message);
        }
        if !declared.insert(&**label) {
            let message = format!("required_semantic_labels: {label:?} is there twice");
            issues.add(HealthCode::DuplicateRequiredSemanticLabel, message);
        }
        let count = counts.get(&**label).copied().unwrap_or(0);
        if count != 1 {
            let message = format!(
                "required_semantic_labels: {count} spans are named {label:?}: expected exactly one"
            );
            issues.add(HealthCode::RequiredSemanticLabelCardinality, message);
        }
    }
}

/// Where labels are divided into those of the GPU and the rest, each required one has one class.
pub(super) fn check_classes(subject: &Subject<'_>, issues: &mut Issues) {
    let contract = &subject.trace.run.capture_contract;
    let classes = [
        ("gpu_expected_semantic_labels", &contract.gpu_expected_semantic_labels),
        ("cpu_only_semantic_labels", &contract.cpu_only_semantic_labels),
    ];
    if classes.iter().all(|(_, labels)| labels.is_empty()) {
        return;
    }
    let required: HashSet<&str> =
        contract.required_semantic_labels.iter().map(|label| &**label).collect();
    let mut classified = HashSet::new();
    for (class, labels) in classes {
        let mut of_class = HashSet::new();
        for label in labels.iter().map(|label| &**label) {
            if label.trim().is_empty() {
                let message = format!("{class}: one is blank: expected the name of a span");
                issues.add(HealthCode::EmptySemanticLabelClassification, message);
            }
            if !of_class.insert(label) {
                let message = format!("{class}: {label:?} is there twice");
                issues.add(HealthCode::DuplicateSemanticLabelClassification, message);
            }
            if !required.contains(label) {
                let message = format!("{class}: {label:?} is not among required_semantic_labels");
                issues.add(HealthCode::UnrequiredSemanticLabelClassification, message);
            }
            if !classified.insert(label) {
                let message = format!("semantic labels: {label:?} is in a class already");
                issues.add(HealthCode::OverlappingSemanticLabelClassification, message);
            }
        }
    }
    if classified != required {
        let message = "gpu_expected_semantic_labels and cpu_only_semantic_labels: expected each of \
                       required_semantic_labels in one of them, and no other";
        issues.add(HealthCode::IncompleteSemanticLabelPartition, message);
    }
}
