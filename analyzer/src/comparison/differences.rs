//! In which fields two runs differ.

use super::Run;
use serde::Serialize;
use std::fmt;
use tmrun_formats::trace::{CaptureContract, ComparisonIdentity, GradientContract, TraceRun};

/// The longest value that a message shows.
const LONGEST: usize = 120;

/// The fields in which one run differs from another, each with both values.
#[derive(Debug, Default)]
pub(super) struct Differences(Vec<String>);

impl Differences {
    /// In what has to be equal of how two runs were captured.
    pub(super) fn of_captures(run: &Run, first: &Run) -> Self {
        let mut all = Self::default();
        let (TraceRun { capture_contract: a, .. }, TraceRun { capture_contract: b, .. }) =
            (&run.meta, &first.meta);
        macro_rules! fields {
            ($($field:ident)*) => {
                $(all.see(stringify!($field), &run.meta.$field, &first.meta.$field);)*
            };
        }
        fields!(entrypoint phase device timing_mode warmup_steps capture_step);
        if a != b {
            all.see_contracts(a, b, [run, first]);
        }
        fields!(measured_region_device_synchronized);
        all
    }

    fn see_contracts(&mut self, a: &CaptureContract, b: &CaptureContract, runs: [&Run; 2]) {
        let before = self.0.len();
        macro_rules! fields {
            ($($field:ident)*) => {
                $(if self.see(concat!("capture_contract.", stringify!($field)), &a.$field, &b.$field) {
                    self.blame(stringify!($field), runs);
                })*
            };
        }
        fields!(measurement_scope operations activations tensors gradients);
        let digest = |contract: &CaptureContract| {
            let contract = contract.gradient_contract.as_ref();
            contract.map(|GradientContract { manifest_sha256, .. }| manifest_sha256.clone())
        };
        let field = "capture_contract.gradient_contract.manifest_sha256";
        if self.see(field, &digest(a), &digest(b)) {
            self.blame("gradients", runs);
        }
        fields!(logical_memory physical_memory device_timing required_semantic_labels);
        fields!(gpu_expected_semantic_labels cpu_only_semantic_labels);
        if self.0.len() == before {
            self.0.push("capture_contract.gradient_contract has other families".to_owned());
        }
    }

    /// In the conditions of two runs, which are all of their identities but implementation and pair.
    pub(super) fn of_conditions(a: &ComparisonIdentity, b: &ComparisonIdentity) -> Self {
        let mut all = Self::default();
        macro_rules! fields {
            ($($field:ident)*) => {
                $(all.see(concat!("comparison_identity.", stringify!($field)), &a.$field, &b.$field);)*
            };
        }
        fields!(workload_id model_id config_id data_id seed_policy physical_batch);
        fields!(accumulation_steps precision device_state);
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they differ in this field.
    fn see<T: PartialEq + Serialize>(&mut self, field: &str, found: &T, expected: &T) -> bool {
        if found == expected {
            return false;
        }
        self.0.push(format!("{field} is {}, expected {}", shown(found), shown(expected)));
        true
    }

    /// Says of the last difference that it is a promise which was not kept, where it is one.
    fn blame(&mut self, plane: &str, runs: [&Run; 2]) {
        let Some(difference) = self.0.last_mut() else { return };
        let refuted = runs.into_iter().flat_map(|run| run.refuted.iter().map(move |it| (run, it)));
        for (run, refuted) in refuted.filter(|(_, refuted)| refuted.plane == plane) {
            let told = format!(" (refuted in {:?}: {})", run.meta.run_id, refuted.because);
            difference.push_str(&told);
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// A value as it stands in JSON, cut where it is long.
fn shown(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => text.get(..end).map_or_else(String::new, |start| format!("{start}…")),
        None => text,
    }
}
