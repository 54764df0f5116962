//! Operations that produce activations, and what each of them costs.

use super::Capability;
use crate::words::words;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The activations of the measured region. Every cost has a capability of its own; they are not
/// added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activations<'a> {
    /// What counts as one, for people.
    pub definition: Cow<'a, str>,
    /// Whether they are all there.
    pub coverage: Capability<'a>,
    /// Whether host times may be compared.
    pub host_time: Capability<'a>,
    /// Whether device times may.
    pub device_time: Capability<'a>,
    /// Whether sizes by shape may.
    pub dense_output: Capability<'a>,
    /// Whether storage may.
    pub logical_memory: Capability<'a>,
    /// Whether samples of the device can be laid to an activation.
    pub physical_memory_attribution: Capability<'a>,
    /// How many storages of activations belong to no single operation.
    pub unattributed_activation_storages: u64,
    /// Each of them, in the order of the trace.
    pub operations: Vec<Activation<'a>>,
}

/// One operation whose output is an activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation<'a> {
    /// Its span, where that is of kind `op` and has one operation; else `<span>/op/<index>`.
    pub id: Cow<'a, str>,
    /// The span it is in.
    pub span_id: Cow<'a, str>,
    /// The how manieth of the span's operations it is, from zero.
    pub op_index: u64,
    /// Its name.
    pub name: Cow<'a, str>,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tensor_id: Option<Cow<'a, str>>,
    /// Dimensions of that.
    pub shape: Cow<'a, [u64]>,
    /// Element type of that.
    pub dtype: Cow<'a, str>,
    /// Device of that.
    pub device: Cow<'a, str>,
    /// How long the call took on the host.
    pub observed_host_duration_ns: u64,
    /// How long devices took; only where the span holds nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_timings: Vec<ActivationTiming<'a>>,
    /// Elements by size of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dense_output_bytes: Option<u64>,
    /// Storage that is this operation's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_allocated_bytes: Option<u64>,
    /// How many storages that are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_storage_count: Option<u64>,
    /// The sum of their lives inside the measured region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_storage_live_duration_ns: Option<u64>,
    /// The sum of bytes times life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_byte_nanoseconds: Option<ByteNanoseconds>,
    /// What of it is live when the measured region ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_retained_bytes_at_measured_end: Option<u64>,
    /// Why it is an activation, in the order of the enumeration.
    pub classification_sources: Vec<ActivationSource>,
}

/// An operation's time on one clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationTiming<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// The clock.
    pub clock_id: Cow<'a, str>,
    /// What its intervals came from, sorted.
    pub backends: Vec<Cow<'a, str>>,
    /// The streams they were on, sorted.
    pub streams: Vec<Cow<'a, str>>,
    /// How many there are.
    pub interval_count: u64,
    /// How long their union is.
    pub busy_ns: u64,
}

words! {
    /// What made an operation's output an activation.
    ActivationSource {
        /// A tensor event of that category has its id.
        TensorOutput "tensor_output",
        /// A storage of that category is this operation's alone.
        LogicalStorage "logical_storage",
    }
}

/// Bytes times nanoseconds: a decimal string in JSON, because it outgrows 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteNanoseconds(pub u128);

impl Serialize for ByteNanoseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ByteNanoseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        found.parse().map(Self).map_err(|_| {
            D::Error::custom(format_args!(
                "expected a 128-bit integer as a string, found {found:?}"
            ))
        })
    }
}
