//! Memory: storage as the program allocates it, and numbers that the device reports.

use super::Totals;
use crate::trace::MemoryCategory;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Both planes; one without events is not there, and never zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory<'a> {
    /// From allocations and frees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical: Option<LogicalMemory<'a>>,
    /// From samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical: Option<PhysicalMemory<'a>>,
}

/// Storage, known by device and storage id. Tensors that share one are aliases of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalMemory<'a> {
    /// How many storages were allocated.
    pub storage_allocation_count: u64,
    /// How many of them were freed.
    pub matched_storage_free_count: u64,
    /// The sum of their bytes.
    pub total_allocated_bytes: u64,
    /// The first of the greatest points; none without an allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<LogicalMemoryPeak<'a>>,
    /// One point a timestamp, after all of its events.
    pub timeline: Vec<LogicalMemoryPoint<'a>>,
    /// Each storage, by start, then device, then id.
    pub lifetimes: Vec<StorageLifetime<'a>>,
    /// Each device.
    pub by_device: Vec<LogicalDeviceMemory<'a>>,
}

/// One storage, from its allocation to its free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLifetime<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// Its id there.
    pub storage_id: Cow<'a, str>,
    /// The tensors that had it, sorted.
    pub tensor_ids: Vec<Cow<'a, str>>,
    /// The span it was allocated in.
    pub allocation_span_id: Cow<'a, str>,
    /// The operation it was allocated by.
    pub op_name: Option<Cow<'a, str>>,
    /// Its size.
    pub bytes: u64,
    /// Dimensions, as it was allocated.
    pub shape: Cow<'a, [u64]>,
    /// Element type, as it was allocated.
    pub dtype: Cow<'a, str>,
    /// What it is for.
    pub category: MemoryCategory,
    /// When it was allocated.
    pub start_timestamp_ns: u64,
    /// When it was freed; none where it is live at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp_ns: Option<u64>,
}

/// What was live at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalMemoryPoint<'a> {
    /// The time.
    pub timestamp_ns: u64,
    /// Bytes on all devices.
    pub live_bytes: u64,
    /// Bytes by device.
    pub live_bytes_by_device: Totals<'a>,
    /// Bytes by category.
    pub live_bytes_by_category: Totals<'a>,
}

/// What was live at the greatest point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalMemoryPeak<'a> {
    /// The time.
    pub timestamp_ns: u64,
    /// Bytes on all devices.
    pub live_bytes: u64,
    /// Bytes by device.
    pub live_bytes_by_device: Totals<'a>,
    /// Bytes by category.
    pub live_bytes_by_category: Totals<'a>,
    /// The storages.
    pub live_allocations: Vec<StorageLifetime<'a>>,
}

/// Storage of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalDeviceMemory<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// How many storages were allocated.
    pub storage_allocation_count: u64,
    /// How many of them were freed.
    pub matched_storage_free_count: u64,
    /// The sum of their bytes.
    pub total_allocated_bytes: u64,
    /// The greatest sum of live bytes; none without an allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_live_bytes: Option<u64>,
    /// When it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_timestamp_ns: Option<u64>,
}

/// What devices reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalMemory<'a> {
    /// The samples, by time, then device.
    pub timeline: Vec<PhysicalMemoryPoint<'a>>,
    /// Each device.
    pub by_device: Vec<PhysicalDeviceMemory<'a>>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalMemoryPoint<'a> {
    /// When.
    pub timestamp_ns: u64,
    /// Of which device.
    pub device: Cow<'a, str>,
    /// Bytes in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Bytes that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Bytes that an allocator holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_bytes: Option<u64>,
    /// Bytes that the device has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
}

/// The samples of one device, at their extremes: the first of the greatest or least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalDeviceMemory<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// How many samples there are.
    pub sample_count: u64,
    /// How many say what is used.
    pub used_sample_count: u64,
    /// How many say what is free.
    pub free_sample_count: u64,
    /// How many say what is reserved.
    pub reserved_sample_count: u64,
    /// How many say what there is.
    pub capacity_sample_count: u64,
    /// Most in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_used_bytes: Option<u64>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_used_timestamp_ns: Option<u64>,
    /// Most reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_reserved_bytes: Option<u64>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_reserved_timestamp_ns: Option<u64>,
    /// Least free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_free_bytes: Option<u64>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_free_timestamp_ns: Option<u64>,
    /// The greatest capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_observed_capacity_bytes: Option<u64>,
}
