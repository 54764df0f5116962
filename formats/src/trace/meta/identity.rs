//! What has to be equal for two runs to be compared.

use super::error::{IdentityError, is_blank};
use serde::{Deserialize, Serialize};

/// What has to be equal for two runs to be compared; only the implementation may differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonIdentity {
    /// The implementation or build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation_id: Option<String>,
    /// The workload.
    pub workload_id: String,
    /// The model.
    pub model_id: String,
    /// Its configuration.
    pub config_id: String,
    /// The data.
    pub data_id: String,
    /// How random numbers are seeded.
    pub seed_policy: String,
    /// Samples in one forward pass.
    pub physical_batch: u64,
    /// Forward passes in one update.
    pub accumulation_steps: u64,
    /// Number formats.
    pub precision: String,
    /// What else the device does.
    pub device_state: String,
    /// The pair that this run is one half of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_id: Option<String>,
}

impl ComparisonIdentity {
    /// Holds that every text says something and that no count is zero.
    ///
    /// # Errors
    /// The first field that does not hold.
    pub fn check(&self) -> Result<(), IdentityError> {
        let required = [
            ("workload_id", &self.workload_id),
            ("model_id", &self.model_id),
            ("config_id", &self.config_id),
            ("data_id", &self.data_id),
            ("seed_policy", &self.seed_policy),
            ("precision", &self.precision),
            ("device_state", &self.device_state),
        ];
        let optional = [("implementation_id", &self.implementation_id), ("pair_id", &self.pair_id)];
        let declared =
            optional.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?)));
        if let Some((field, _)) = required.into_iter().chain(declared).find(|(_, v)| is_blank(v)) {
            return Err(IdentityError::Blank { field });
        }
        let counts = [
            ("physical_batch", self.physical_batch),
            ("accumulation_steps", self.accumulation_steps),
        ];
        match counts.into_iter().find(|&(_, count)| count == 0) {
            Some((field, _)) => Err(IdentityError::Zero { field }),
            None => Ok(()),
        }
    }
}
